#include "support/awkward_store.h"

#include <algorithm>
#include <atomic>

namespace sluice::testing {
namespace {

using store::LimitNumber;

constexpr LimitNumber kNumbersEach = 1'000'000;

// No two instances give out the same numbers, as long as a process makes less than four thousand.
LimitNumber next_first_number() {
  static std::atomic<LimitNumber> instances{0};
  return store::kLimitNumbers + 1 + instances.fetch_add(1) % 4'000 * kNumbersEach;
}

std::uint64_t part_of(std::uint64_t amount, std::uint64_t nodes) {
  return std::max<std::uint64_t>(amount / nodes, 1);
}

}  // namespace

AwkwardLimits::AwkwardLimits(store::Limits& local, store::Limits& shared, std::uint64_t nodes,
                             const std::function<void(const std::string&)>& misuse)
    : local_(local), shared_(shared), nodes_(nodes), first_(next_first_number()), misuse_(misuse) {}

Parsed<LimitNumber> AwkwardLimits::use(const Limit& limit, const Sharing& sharing, Now now) {
  return use_by(&Limits::use, limit, sharing, now);
}

Parsed<LimitNumber> AwkwardLimits::use_for_request(const Limit& limit, const Sharing& sharing,
                                                   Now now) {
  return use_by(&Limits::use_for_request, limit, sharing, now);
}

Parsed<LimitNumber> AwkwardLimits::use_by(Use by, const Limit& limit, const Sharing& sharing,
                                          Now now) {
  const std::lock_guard lock{mutex_};
  if (is_local(sharing)) {
    Parsed<LimitNumber> number = (local_.*by)(limit, sharing, now);
    if (number) ++local_uses(*number);
    return number;
  }
  Parsed<LimitNumber> truth = (shared_.*by)(limit, sharing, now);
  if (!truth) return truth;
  const auto known = std::ranges::find_if(
      entries_, [&](const Entry& one) { return one.truth == *truth && one.sharing == sharing; });
  if (known != entries_.end()) {
    ++known->uses;
    return first_ + static_cast<LimitNumber>(known - entries_.begin());
  }
  Entry entry{.truth = *truth, .share = 0, .sharing = sharing, .uses = 1};
  Limit share = limit;
  share.amount = part_of(limit.amount, nodes_);
  if (limit.burst) share.burst = part_of(*limit.burst, nodes_);
  Parsed<LimitNumber> number = local_.use(share, sharing, now);
  if (!number) number = local_.use(limit, sharing, now);  // too slow when divided
  if (!number) return number;
  entry.share = *number;
  entries_.push_back(entry);
  return first_ + static_cast<LimitNumber>(entries_.size() - 1);
}

void AwkwardLimits::stop_using(LimitNumber number) noexcept {
  const std::lock_guard lock{mutex_};
  if (!store::is_shared(number)) {
    if (local_uses(number) == 0) return misuse_("a use was ended that had not begun");
    --local_uses(number);
    return local_.stop_using(number);
  }
  Entry* const of = entry(number);
  if (of == nullptr || of->uses == 0) return misuse_("a use was ended that had not begun");
  --of->uses;
  shared_.stop_using(of->truth);
}

bool AwkwardLimits::is_local(const Sharing& sharing) const noexcept {
  return sharing.mode == Mode::local;
}

std::optional<DigestSecret> AwkwardLimits::shared_secret() const noexcept {
  const std::lock_guard lock{mutex_};
  if (!secret_known_) return std::nullopt;
  return DigestSecret{.first = 0x0706050403020100, .second = 0x0f0e0d0c0b0a0908};
}

void AwkwardLimits::know_shared_secret(bool known) noexcept {
  const std::lock_guard lock{mutex_};
  secret_known_ = known;
}

AwkwardLimits::Entry* AwkwardLimits::entry(LimitNumber number) noexcept {
  if (number < first_ || number - first_ >= entries_.size()) return nullptr;
  return &entries_[number - first_];
}

std::uint64_t& AwkwardLimits::local_uses(LimitNumber number) {
  const auto known =
      std::ranges::find(local_uses_, number, [](const auto& one) { return one.first; });
  if (known != local_uses_.end()) return known->second;
  return local_uses_.emplace_back(number, 0).second;
}

std::optional<AwkwardLimits::Entry> AwkwardLimits::find(LimitNumber number) const noexcept {
  const std::lock_guard lock{mutex_};
  if (number < first_ || number - first_ >= entries_.size()) return std::nullopt;
  return entries_[number - first_];
}

bool AwkwardLimits::is_in_use(LimitNumber number) const noexcept {
  const std::lock_guard lock{mutex_};
  if (store::is_shared(number)) {
    if (number < first_ || number - first_ >= entries_.size()) return false;
    return entries_[number - first_].uses > 0;
  }
  const auto known =
      std::ranges::find(local_uses_, number, [](const auto& one) { return one.first; });
  return known != local_uses_.end() && known->second > 0;
}

std::uint64_t AwkwardLimits::uses() const noexcept {
  const std::lock_guard lock{mutex_};
  std::uint64_t sum = 0;
  for (const Entry& one : entries_) sum += one.uses;
  for (const auto& [number, uses] : local_uses_) sum += uses;
  return sum;
}

}  // namespace sluice::testing
