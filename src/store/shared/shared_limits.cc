#include "store/shared/shared_limits.h"

#include "store/shared/node_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sluice::store {
namespace {

constexpr LimitNumber kSharedBit = LimitNumber{1} << 31U;
// One less than 15 bits hold: the largest number there is stands for none.
constexpr std::uint32_t kGenerations = (1U << 15U) - 1;

LimitNumber number_of(std::size_t place, std::uint32_t generation) noexcept {
  return kSharedBit | (generation % kGenerations) << 16U | static_cast<LimitNumber>(place);
}

std::string_view to_string(Mode mode) noexcept {
  switch (mode) {
    case Mode::automatic: return "auto";
    case Mode::local: return "local";
    case Mode::exact: return "exact";
    case Mode::lease: return "lease";
    case Mode::writeback: return "writeback";
    case Mode::owner: return "owner";
    case Mode::broadcast: return "broadcast";
    case Mode::gossip: return "gossip";
    case Mode::leader: return "leader";
    case Mode::deny_list: return "deny_list";
  }
  return "unknown";
}

}  // namespace

static_assert(SharedLimits::kLimitsMax == std::size_t{1} << 16U, "16 bits of a number");

SharedLimits::SharedLimits(LocalStore& table, CompileLimit compile, std::uint32_t nodes)
    : local_(table),
      compile_(compile),
      places_(std::make_unique<std::atomic<const SharedTerms*>[]>(kLimitsMax)),
      nodes_(std::max(nodes, 1U)) {}

Parsed<LimitNumber> SharedLimits::use(const Limit& limit, const Sharing& sharing, Now now) {
  if (is_local(sharing)) return local_.use(limit, sharing, now);
  return use_shared(limit, sharing, kLimitsMax, now);
}

Parsed<LimitNumber> SharedLimits::use_for_request(const Limit& limit, const Sharing& sharing,
                                                  Now now) {
  if (is_local(sharing)) return local_.use_for_request(limit, sharing, now);
  return use_shared(limit, sharing, kLimitsMax / 4 * 3, now);
}

Parsed<LimitNumber> SharedLimits::use_shared(const Limit& limit, const Sharing& sharing,
                                             std::size_t places_max, Now now) {
  if (sharing.mode != Mode::automatic && sharing.mode != Mode::exact) {
    return mistake(fmt::format("mode {} is not available yet", to_string(sharing.mode)),
                   "use exact, or local");
  }
  auto compiled = compile_(limit);
  if (!compiled) return tl::unexpected(std::move(compiled.error()));
  const std::lock_guard guard{mutex_};
  // `automatic` and `exact` are one mode today.
  std::string identity =
      fmt::format("{} {} {} {}", secret_.has_value(), static_cast<int>(sharing.on_failure),
                  sharing.tolerance_permille, (*compiled)->identity);
  note_unused(now);
  if (const auto found = by_identity_.find(identity); found != by_identity_.end()) {
    Place& place = tenants_[found->second];
    ++place.users;
    place.unused_since.reset();
    return place.terms->number;
  }

  auto terms = std::make_unique<SharedTerms>();
  terms->sharing = sharing;
  terms->is_keyed = secret_.has_value();
  terms->limit = *std::move(compiled);
  const auto share = share_number(*terms, now);
  if (!share) return tl::unexpected(share.error());
  terms->share = *share;
  const auto free = free_place(places_max, now);
  if (!free) {
    if (*share != SharedTerms::kNoShare) local_.stop_using(*share);
    return mistake(fmt::format("more than {} different shared limits", places_max),
                   "let rules have the same limit, or use mode local");
  }
  Place& place = tenants_[*free];
  terms->number = number_of(*free, ++place.generation);
  place.identity = identity;
  place.terms = std::move(terms);
  place.users = 1;
  by_identity_.emplace(std::move(identity), *free);
  places_[*free].store(place.terms.get(), std::memory_order_release);  // pairs with find()
  return place.terms->number;
}

// The number of the share in the table. A share that no table can keep is none.
Parsed<LimitNumber> SharedLimits::share_number(const SharedTerms& terms, Now now) {
  if (terms.sharing.on_failure != OnFailure::share) return SharedTerms::kNoShare;
  const std::optional<Limit> share = share_of(terms.limit->limit, nodes_);
  if (!share) return SharedTerms::kNoShare;
  return local_.use(*share, Sharing{}, now);
}

void SharedLimits::stop_using(LimitNumber number) noexcept {
  if (!is_shared(number)) return local_.stop_using(number);
  const std::lock_guard guard{mutex_};
  const std::size_t index = number % kLimitsMax;
  if (find(number) == nullptr || tenants_[index].users == 0) return;
  if (--tenants_[index].users == 0) left_.push_back(index);
}

// There is no clock where a limit is let go, so the next registration starts the grace.
void SharedLimits::note_unused(Now now) {
  for (const std::size_t index : left_) {
    Place& place = tenants_[index];
    if (place.users == 0 && !place.unused_since) place.unused_since = now.mono;
  }
  left_.clear();
  std::erase_if(retired_,
                [now](const Retired& retired) { return now.mono - retired.since >= kGrace; });
}

// New places first: a number is then found for as long as possible.
std::optional<std::size_t> SharedLimits::free_place(std::size_t places_max, Now now) {
  if (tenants_.size() < places_max) {
    tenants_.emplace_back();
    return tenants_.size() - 1;
  }
  std::optional<std::size_t> oldest;
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    const auto& since = tenants_[i].unused_since;
    if (!since || now.mono - *since < kGrace) continue;
    if (!oldest || *since < *tenants_[*oldest].unused_since) oldest = i;
  }
  if (oldest) vacate(*oldest, now);
  return oldest;
}

void SharedLimits::vacate(std::size_t index, Now now) noexcept {
  Place& place = tenants_[index];
  places_[index].store(nullptr, std::memory_order_release);
  const LimitNumber share = place.terms->share;
  if (share != SharedTerms::kNoShare) local_.stop_using(share);
  by_identity_.erase(place.identity);
  retired_.push_back({.terms = std::move(place.terms), .since = now.mono});
  place.unused_since.reset();
}

void SharedLimits::set_nodes(std::uint32_t nodes, Now now) {
  const std::lock_guard guard{mutex_};
  nodes_ = std::max(nodes, 1U);
  for (Place& place : tenants_) {
    if (place.terms == nullptr) continue;
    const Parsed<LimitNumber> share = share_number(*place.terms, now);
    // A share of the old size might be too large. The table gives a number away only long after its
    // last user has gone, so decisions that have just read the old one are safe.
    const LimitNumber before = place.terms->share.exchange(share.value_or(SharedTerms::kNoShare),
                                                           std::memory_order_acq_rel);
    if (before != SharedTerms::kNoShare) local_.stop_using(before);
  }
}

std::optional<DigestSecret> SharedLimits::shared_secret() const noexcept {
  const std::lock_guard guard{mutex_};
  return secret_;
}

void SharedLimits::set_shared_secret(DigestSecret secret) noexcept {
  const std::lock_guard guard{mutex_};
  secret_ = secret;
}

}  // namespace sluice::store
