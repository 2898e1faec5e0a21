#include "limiter/limiter_inside.h"
#include "store/binding.h"
#include "store/local/table_impl.h"
#include <sluice/core/compiled_limit.h>
#include <sluice/core/limit_text.h>
#include <sluice/limiter.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sched.h>
#include <stdexcept>
#include <thread>
#include <utility>

namespace sluice {
namespace {

const SystemClock kSystemClock;

// Kinds of the parts of a library's key; they are part of the digest: never change them.
constexpr std::uint8_t kLimiterName = 1;
constexpr std::uint8_t kLimitNumber = 2;
constexpr std::uint8_t kKey = 3;

Parsed<std::vector<Limit>> parse_all(std::span<const std::string_view> texts) {
  std::vector<Limit> limits;
  for (const std::string_view text : texts) {
    Parsed<Limit> limit = core::parse_limit(text, std::nullopt);
    if (!limit) return tl::unexpected(std::move(limit.error()));
    limits.push_back(*std::move(limit));
  }
  return limits;
}

std::optional<Diagnostic> wrong_with(std::span<const Limit> limits) {
  if (limits.empty()) {
    return Diagnostic{.message = "a limiter needs a limit", .remedy = "give one, as in 100/1s"};
  }
  if (limits.size() > Limiter::kLimitsMax) {
    return Diagnostic{
        .message = fmt::format("{} limits are too many for one limiter", limits.size()),
        .remedy = fmt::format("use at most {}, or several limiters", Limiter::kLimitsMax)};
  }
  for (const Limit& limit : limits) {
    Parsed<core::CompiledLimit> sense = core::compile(limit);
    if (!sense) return std::move(sense.error());
  }
  return std::nullopt;
}

template <class T>
T or_throw(Parsed<T> parsed) {
  if (!parsed) throw std::invalid_argument{parsed.error().text()};
  return *std::move(parsed);
}

}  // namespace

// ---- construction -----------------------------------------------------------------------------

Parsed<Limiter> Limiter::make(std::span<const Limit> limits, LimiterOptions options) {
  if (std::optional<Diagnostic> wrong = wrong_with(limits)) return tl::unexpected(*wrong);
  if (!options.table) {
    TableOptions own = options.own_table;
    if (own.clock == nullptr) own.clock = options.clock;
    // Another thread may not be able to read the caller's own clock.
    if (options.clock != nullptr && options.own_table.clock == nullptr) own.background = false;
    Parsed<std::shared_ptr<CounterTable>> table = CounterTable::open(own);
    if (!table) return tl::unexpected(std::move(table.error()));
    options.table = *std::move(table);
  }

  auto inside = std::make_unique<Inside>();
  inside->clock = options.clock != nullptr ? options.clock : &kSystemClock;
  inside->options = std::move(options);
  inside->limits.assign(limits.begin(), limits.end());
  store::LocalStore& store = inside->store();
  for (std::size_t i = 0; i < limits.size(); ++i) {
    Parsed<store::LimitNumber> number = store.use(limits[i], inside->clock->now());
    if (!number) return tl::unexpected(std::move(number.error()));
    inside->numbers.push_back(*number);
    KeyDigest fixed{store.secret()};
    fixed.add(kLimiterName, inside->options.name).add(kLimitNumber, std::to_string(i));
    inside->hashers.emplace_back(fixed, kKey);
  }
  if (inside->options.thread_leases) {
    const unsigned desks = std::max(std::thread::hardware_concurrency(), 1U);
    for (unsigned i = 0; i < desks; ++i) {
      inside->desks.push_back(std::make_unique<Desk>(store, desks));
    }
  }
  return Limiter{std::move(inside)};
}

namespace {

Limiter made_or_thrown(std::span<const Limit> limits, LimiterOptions options) {
  if (const auto wrong = wrong_with(limits)) throw std::invalid_argument{wrong->text()};
  Parsed<Limiter> limiter = Limiter::make(limits, std::move(options));
  if (!limiter) throw std::runtime_error{limiter.error().text()};
  return *std::move(limiter);
}

}  // namespace

Limiter::Limiter(std::string_view limit, LimiterOptions options)
    : Limiter(std::initializer_list<std::string_view>{limit}, std::move(options)) {}

Limiter::Limiter(std::initializer_list<std::string_view> limits, LimiterOptions options)
    : Limiter(std::span<const Limit>{or_throw(parse_all({limits.begin(), limits.size()}))},
              std::move(options)) {}

Limiter::Limiter(const Limit& limit, LimiterOptions options)
    : Limiter(std::span{&limit, 1}, std::move(options)) {}

Limiter::Limiter(std::span<const Limit> limits, LimiterOptions options)
    : Limiter(made_or_thrown(limits, std::move(options))) {}

Limiter::Limiter(std::unique_ptr<Inside> inside) noexcept : inside_(std::move(inside)) {}
Limiter::Limiter(Limiter&& other) noexcept = default;
Limiter& Limiter::operator=(Limiter&& other) noexcept = default;
Limiter::~Limiter() = default;

// ---- asking -----------------------------------------------------------------------------------

Decision Limiter::Inside::decide_one(const store::Check& check, Now now) const noexcept {
  if (!desks.empty()) {
    Desk& desk = *desks[static_cast<std::size_t>(std::max(::sched_getcpu(), 0)) % desks.size()];
    if (!desk.taken.test_and_set(std::memory_order_acquire)) {
      const store::ThreadCache::Use use{.remember_refusals = true, .thread_leases = true};
      const Decision decision = desk.worker.decide(check, use, now).decision;
      desk.taken.clear(std::memory_order_release);
      return decision;
    }
  }
  return store().decide(check, now).decision;
}

Decision Limiter::Inside::decide(std::string_view key, Cost cost, Now now,
                                 std::span<store::Answer> answers) const noexcept {
  std::array<store::Check, kLimitsMax> checks;
  for (std::size_t i = 0; i < limits.size(); ++i) checks[i] = check(i, key, cost);
  const auto all = std::span{checks}.first(limits.size());
  if (limits.size() == 1) {
    answers[0] = store().decide(checks[0], now);
  } else {
    (void)store().decide_all(all, now, answers);
  }
  return store::binding_decision(answers.first(limits.size()));
}

bool Limiter::allow(std::string_view key, Now now) {
  const bool plain = inside_->limits.size() == 1 && inside_->desks.empty();
  if (!plain || inside_->options.observer != nullptr) return check(key, 1, now).allowed();
  return inside_->store().admits(inside_->check(0, key, 1), now);
}

Decision Limiter::check(std::string_view key, Cost cost, Now now) {
  Decision decision;
  if (inside_->limits.size() == 1) {
    decision = inside_->decide_one(inside_->check(0, key, cost), now);
  } else {
    std::array<store::Answer, kLimitsMax> answers;
    decision = inside_->decide(key, cost, now, answers);
  }
  inside_->tell(key, cost, decision);
  return decision;
}

void Limiter::check(std::span<const Request> requests, std::span<Decision> decisions, Now now) {
  if (inside_->limits.size() > 1) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      decisions[i] = check(requests[i].key, requests[i].cost, now);
    }
    return;
  }
  // Digests of some keys, then a prefetch of their memory, then, meanwhile, the digests of the next
  // keys.
  constexpr std::size_t kAtOnce = 16;
  struct Round {
    std::array<std::string_view, kAtOnce> keys;
    std::array<std::uint64_t, kAtOnce> digests;
    std::size_t size = 0;
  };
  std::array<Round, 2> rounds;
  const auto prepare = [&](std::size_t from, Round& round) {
    round.size = std::min(kAtOnce, requests.size() - std::min(from, requests.size()));
    for (std::size_t i = 0; i < round.size; ++i) round.keys[i] = requests[from + i].key;
    inside_->hashers[0].batch_low(std::span{round.keys}.first(round.size), round.digests);
    for (std::size_t i = 0; i < round.size; ++i)
      inside_->store().prefetch({.low = round.digests[i]});
  };
  prepare(0, rounds[0]);
  store::Answer answer;
  std::size_t turn = 0;
  for (std::size_t from = 0; from < requests.size(); turn ^= 1U) {
    const Round& round = rounds[turn];
    prepare(from + round.size, rounds[turn ^ 1U]);
    for (std::size_t i = 0; i < round.size; ++i, ++from) {
      const store::Check check{.key = {.low = round.digests[i]},
                               .limit = inside_->numbers[0],
                               .cost = requests[from].cost,
                               .change = inside_->options.on_change,
                               .on_table_full = inside_->options.on_table_full};
      inside_->store().decide(check, now, answer);
      decisions[from] = answer.decision;
      inside_->tell(requests[from].key, requests[from].cost, decisions[from]);
    }
  }
}

bool Limiter::check_all(std::span<const Ask> asks, std::span<Decision> decisions, Now now) {
  constexpr std::size_t kChecksMax = store::Table::kChecksMax;
  std::array<store::Check, kChecksMax> checks;
  std::array<store::Answer, kChecksMax> answers;
  std::size_t count = 0;
  for (const Ask& ask : asks) {
    const Inside& inside = *ask.limiter->inside_;
    if (inside.options.table != asks.front().limiter->inside_->options.table) {
      throw std::invalid_argument{"limiters of one request have to share a table"};
    }
    if (count + inside.limits.size() > kChecksMax) {
      throw std::invalid_argument{fmt::format("a request can have {} limits at most", kChecksMax)};
    }
    for (std::size_t i = 0; i < inside.limits.size(); ++i) {
      checks[count++] = inside.check(i, ask.key, ask.cost);
    }
  }
  if (count == 0) return true;
  const bool admitted = asks.front().limiter->inside_->store().decide_all(
      std::span{checks}.first(count), now, std::span{answers}.first(count));
  std::size_t from = 0;
  for (std::size_t i = 0; i < asks.size(); ++i) {
    const Inside& inside = *asks[i].limiter->inside_;
    const auto own = std::span{answers}.subspan(from, inside.limits.size());
    decisions[i] = store::binding_decision(own);
    inside.tell(asks[i].key, asks[i].cost, decisions[i]);
    from += own.size();
  }
  return admitted;
}

// ---- corrections ------------------------------------------------------------------------------

Reservation Limiter::reserve(std::string_view key, Cost cost, Now now) {
  std::array<store::Answer, kLimitsMax> answers;
  Reservation reservation{.decision = inside_->decide(key, cost, now, answers), .ticket = {}};
  inside_->tell(key, cost, reservation.decision);
  if (!reservation.decision.allowed()) return reservation;
  Ticket& ticket = reservation.ticket;
  ticket.count_ = inside_->limits.size();
  for (std::size_t i = 0; i < ticket.count_; ++i) {
    const Digest digest{.low = inside_->hashers[i].low(key)};
    ticket.charges_[i] = {.key = {digest.low, digest.high},
                          .limit = answers[i].charge.limit,
                          .receipt = answers[i].charge.receipt};
  }
  return reservation;
}

void Limiter::refund(const Ticket& ticket, Cost amount, Now now) {
  for (std::size_t i = 0; i < ticket.count_; ++i) {
    const Ticket::Charge& charge = ticket.charges_[i];
    const store::Check check{.key = {.low = charge.key[0], .high = charge.key[1]},
                             .limit = charge.limit,
                             .cost = amount,
                             .change = inside_->options.on_change};
    inside_->store().refund(check, {.limit = charge.limit, .receipt = charge.receipt}, now);
  }
}

Decision Limiter::charge(std::string_view key, Cost cost, Now now) {
  std::array<store::Answer, kLimitsMax> answers;
  for (std::size_t i = 0; i < inside_->limits.size(); ++i) {
    answers[i] = inside_->store().force(inside_->check(i, key, cost), now);
  }
  const Decision decision =
      store::binding_decision(std::span{answers}.first(inside_->limits.size()));
  inside_->tell(key, cost, decision);
  return decision;
}

Ticket Limiter::renew(const Ticket& ticket, Now now) {
  Ticket renewed = ticket;
  for (std::size_t i = 0; i < std::min(ticket.count_, inside_->limits.size()); ++i) {
    Ticket::Charge& charge = renewed.charges_[i];
    // Other charges need no renewal, and it is harmless if they have expired.
    if (inside_->limits[i].algorithm != Algorithm::concurrency) continue;
    const store::Check check{.key = {.low = charge.key[0], .high = charge.key[1]},
                             .limit = charge.limit,
                             .cost = charge.receipt.cost,
                             .change = inside_->options.on_change};
    const store::Charge lease =
        inside_->store().renew(check, {.limit = charge.limit, .receipt = charge.receipt}, now);
    if (lease.receipt.cost == 0) return {};
    charge.limit = lease.limit;
    charge.receipt = lease.receipt;
  }
  return renewed;
}

bool Limiter::forget(std::string_view key) {
  bool was_there = false;
  for (const KeyHasher& hasher : inside_->hashers) {
    was_there |= inside_->store().forget(hasher(key));
  }
  return was_there;
}

// ---- about itself -----------------------------------------------------------------------------

Now Limiter::now() const noexcept { return inside_->clock->now(); }
const std::vector<Limit>& Limiter::limits() const noexcept { return inside_->limits; }
const std::shared_ptr<CounterTable>& Limiter::table() const noexcept {
  return inside_->options.table;
}
std::uint64_t Limiter::most_admitted(std::size_t limit) const noexcept {
  return core::most_admitted(inside_->limits[limit]);
}
std::uint64_t Limiter::early_rejections() const noexcept {
  const auto desks = static_cast<unsigned>(inside_->desks.size());
  if (desks == 0 || inside_->limits.size() > 1) return 0;
  return std::uint64_t{store::ThreadCache::lease_size(inside_->limits[0], desks)} * desks;
}
std::uint64_t Limiter::fingerprint(std::string_view key, std::size_t limit) const noexcept {
  return store::LocalStore::fingerprint_of(inside_->hashers[limit](key));
}

}  // namespace sluice
