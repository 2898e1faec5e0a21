#include "store/redis/call_codec.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

namespace sluice::store {
namespace {

constexpr std::int64_t kExactMax = (std::int64_t{1} << 53U) - 1;
constexpr std::size_t kReplyHead = 2;
constexpr std::size_t kNumbersPerLimit = 9;

std::int64_t to_micros(WallTime time) noexcept { return time.time_since_epoch().count() / 1'000; }

void add_head(CallArguments& to, std::string_view operation, SharedSequence number) {
  to.clear();
  to.add(operation);
  if (number.session == 0) {
    to.add("-");
  } else {
    std::array<char, 16> digits{};
    fmt::format_to(digits.begin(), "{:016x}", number.session);
    to.add(std::string_view{digits.data(), digits.size()});
  }
  to.add(static_cast<std::int64_t>(number.sequence));
}

void add_field(CallArguments& to, FieldId field) {
  std::array<char, 8> digits{};
  fmt::format_to(digits.begin(), "{:08x}", field);
  to.add(std::string_view{digits.data(), digits.size()});
}

// The previous, the current and the next window, as the node sees it.
void add_edges(CallArguments& to, const SharedLimit& limit, WallTime wall) {
  const core::CalendarGrid* const calendar = limit.calendar();
  if (calendar == nullptr) return to.add("-");
  const core::Window current = calendar->window_at(wall);
  const core::Window previous = calendar->window_at(current.start - Nanos{1});
  const core::Window next = calendar->window_at(current.end);
  std::array<char, 4 * 20 + 3> text{};
  const auto end =
      fmt::format_to(text.begin(), "{} {} {} {}", to_micros(previous.start),
                     to_micros(current.start), to_micros(next.start), to_micros(next.end));
  to.add(std::string_view{text.data(), static_cast<std::size_t>(end - text.begin())});
}

void add_check(CallArguments& to, const SharedCheck& check, Cost cost, std::string_view mode,
               WallTime wall) {
  add_field(to, check.field);
  to.add(check.limit->text);
  to.add(to_string(check.change));
  to.add(std::int64_t{cost});
  to.add(mode);
  add_edges(to, *check.limit, wall);
}

void add_charge(CallArguments& to, const SharedCharge& charge) {
  to.add(charge.mark);
  to.add(charge.ticks);
  to.add(std::int64_t{charge.cost});
  to.add(charge.edition);
}

void write_refunds(CallArguments& to, std::string_view operation,
                   std::span<const Refunding> refunds, SharedSequence number) {
  add_head(to, operation, number);
  append_refunds(to, refunds);
}

void write_charges(CallArguments& to, std::string_view operation,
                   std::span<const SharedCheck> checks, SharedSequence number, WallTime wall) {
  add_head(to, operation, number);
  for (const SharedCheck& check : checks) add_check(to, check, check.cost, "charge", wall);
}

Error nonsense() noexcept {
  return {.code = Errc::invalid_argument, .transient = false, .where = "reply of a Redis function"};
}

bool in_range(std::int64_t number, std::int64_t least, std::int64_t most) noexcept {
  return number >= least && number <= most;
}

Nanos from_micros(std::int64_t micros) noexcept { return Nanos{micros * 1'000}; }

// False: no function returns this for a limit with this capacity.
bool read_answer(std::span<const std::int64_t> numbers, Cost capacity, SharedAnswer& answer) {
  const auto [verdict, remaining, reset, retry, delay, mark, ticks, charged, edition] =
      std::array<std::int64_t, kNumbersPerLimit>{numbers[0], numbers[1], numbers[2],
                                                 numbers[3], numbers[4], numbers[5],
                                                 numbers[6], numbers[7], numbers[8]};
  const bool possible = in_range(verdict, 0, 2) && in_range(remaining, 0, capacity) &&
                        in_range(reset, 0, kExactMax) && in_range(retry, -1, kExactMax) &&
                        in_range(delay, 0, kExactMax) && in_range(mark, -kExactMax, kExactMax) &&
                        in_range(ticks, 0, kExactMax) && in_range(charged, 0, UINT32_MAX) &&
                        in_range(edition, 0, kExactMax);
  if (!possible) return false;
  answer = {
      .decision = {.verdict = static_cast<Verdict>(verdict),
                   .limit = capacity,
                   .remaining = static_cast<std::uint64_t>(remaining),
                   .reset_after = from_micros(reset),
                   .retry_after = std::nullopt,
                   .delay = from_micros(delay)},
      .charge = {
          .mark = mark, .ticks = ticks, .edition = edition, .cost = static_cast<Cost>(charged)}};
  if (retry >= 0) answer.decision.retry_after = from_micros(retry);
  return true;
}

}  // namespace

std::string shared_key(const Digest& key) {
  return fmt::format("{}{{{:016x}{:016x}}}", kKeyPrefix, key.high, key.low);
}

void CallArguments::clear() noexcept {
  bytes_.clear();
  ends_.clear();
}

void CallArguments::add(std::string_view text) {
  bytes_ += text;
  ends_.push_back(bytes_.size());
}

void CallArguments::add(std::int64_t number) {
  fmt::format_to(std::back_inserter(bytes_), "{}", number);
  ends_.push_back(bytes_.size());
}

std::string_view CallArguments::operator[](std::size_t i) const noexcept {
  const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
  return std::string_view{bytes_}.substr(begin, ends_[i] - begin);
}

void write_decide(CallArguments& to, std::span<const SharedCheck> checks, WallTime wall) {
  add_head(to, "decide", {});
  for (const SharedCheck& check : checks) {
    add_check(to, check, check.cost, check.probe ? "probe" : "charge", wall);
  }
}

void write_peek(CallArguments& to, std::span<const SharedCheck> checks, WallTime wall) {
  add_head(to, "peek", {});
  for (const SharedCheck& check : checks) add_check(to, check, 0, "probe", wall);
}

void write_charge(CallArguments& to, std::span<const SharedCheck> checks, SharedSequence number,
                  WallTime wall) {
  write_charges(to, "charge", checks, number, wall);
}

void write_settle(CallArguments& to, std::span<const SharedCheck> checks, SharedSequence number,
                  WallTime wall) {
  write_charges(to, "settle", checks, number, wall);
}

void write_correct(CallArguments& to, const SharedCheck& check, const SharedCharge& charge,
                   SharedSequence number, WallTime wall) {
  add_head(to, "correct", number);
  add_check(to, check, check.cost, "charge", wall);
  add_charge(to, charge);
}

void write_refund(CallArguments& to, std::span<const Refunding> refunds, SharedSequence number) {
  write_refunds(to, "refund", refunds, number);
}

void append_refunds(CallArguments& to, std::span<const Refunding> refunds) {
  for (const Refunding& refund : refunds) {
    add_field(to, refund.field);
    to.add(std::int64_t{refund.amount});
    add_charge(to, refund.charge);
  }
}

void write_release(CallArguments& to, std::span<const Refunding> leases, SharedSequence number) {
  write_refunds(to, "release", leases, number);
}

void write_renew(CallArguments& to, std::span<const Refunding> leases, SharedSequence number) {
  write_refunds(to, "renew", leases, number);
}

void write_reserve(CallArguments& to, const Reservation& reservation, SharedSequence number,
                   WallTime wall) {
  add_head(to, "reserve", number);
  add_check(to, reservation.check, reservation.check.cost, reservation.seat ? "seat" : "lease",
            wall);
  to.add(static_cast<std::int64_t>(reservation.cap));
  to.add(reservation.duration.count() / 1'000);
}

void write_give_back(CallArguments& to, const GivingBack& lease, SharedSequence number) {
  add_head(to, "give_back", number);
  add_field(to, lease.field);
  to.add(static_cast<std::int64_t>(lease.sequence));
  to.add(std::int64_t{lease.amount});
}

Result<SharedReply> read_reply(std::span<const std::int64_t> numbers,
                               std::span<const Cost> capacities, std::span<SharedAnswer> answers) {
  if (numbers.size() < kReplyHead || !in_range(numbers[0], 0, 3) ||
      !in_range(numbers[1], 0, kExactMax)) {
    return tl::unexpected(nonsense());
  }
  const SharedReply reply{.status = static_cast<ReplyStatus>(numbers[0]),
                          .server_time = WallTime{from_micros(numbers[1])}};
  const std::span<const std::int64_t> rest = numbers.subspan(kReplyHead);
  const bool answered = reply.status == ReplyStatus::rejected || reply.status == ReplyStatus::done;
  const std::size_t limits = answered ? capacities.size() : 0;
  if (rest.size() != limits * kNumbersPerLimit) return tl::unexpected(nonsense());
  for (std::size_t i = 0; i < limits; ++i) {
    const auto of_limit = rest.subspan(i * kNumbersPerLimit, kNumbersPerLimit);
    if (!read_answer(of_limit, capacities[i], answers[i])) return tl::unexpected(nonsense());
  }
  return reply;
}

}  // namespace sluice::store
