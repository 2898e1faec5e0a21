#include "app/config/limit_room.h"

#include "engine/overrides.h"
#include "store/local/mapping.h"

#include <fmt/format.h>

#include <set>
#include <string>

namespace sluice::app {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20U;
constexpr std::size_t kEnvoyCounters = 7;  // one for each unit, whatever the trees say

// Equal for limits that are the same to the table.
std::string text_of(const Limit& limit) {
  const auto optional = [](const auto& value) -> std::int64_t {
    return value ? static_cast<std::int64_t>(*value) : -1;
  };
  const auto nanos = [](const std::optional<Nanos>& value) -> std::int64_t {
    return value ? value->count() : -1;
  };
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}", static_cast<int>(limit.algorithm),
                     limit.amount, limit.period.count(), optional(limit.burst),
                     optional(limit.refill), optional(limit.align), optional(limit.unit),
                     limit.timezone.value_or(""), nanos(limit.bucket_width), nanos(limit.max_delay),
                     nanos(limit.slot_ttl), limit.count_rejected);
}

// All that a snapshot of the rules asks the table for.
class Limits {
 public:
  Limits(const Configuration& configuration, WallTime now) {
    for (const rules::Rule& rule : configuration.rules.rules) {
      std::set<std::uint32_t> multipliers{1000};
      for (const engine::Override& one : configuration.exceptions.overrides) {
        if (one.holds(now) && engine::is_per(rule, one.subject.kind))
          multipliers.insert(one.permille);
      }
      for (const std::uint32_t multiplier : multipliers) add(rule, multiplier);
      if (!rule.block) continue;
      add_count(rule.block->duration, rule.block->threshold);
      add_count(rule.block->duration, 1);
    }
  }
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }

 private:
  void add(const rules::Rule& rule, std::uint32_t permille) {
    const auto add_all = [&](const std::vector<rules::RuleLimit>& limits) {
      for (const rules::RuleLimit& one : limits) {
        all_.insert(text_of(engine::multiplied(one.limit, permille)));
      }
    };
    add_all(rule.limits);
    if (!rule.tiers) return;
    for (const auto& [tier, limits] : rule.tiers->values) add_all(limits);
  }
  void add_count(Nanos period, std::uint64_t amount) {
    all_.insert(text_of({.algorithm = Algorithm::fixed_window,
                         .amount = amount,
                         .period = period,
                         .align = Align::first_request}));
  }

  std::set<std::string> all_;
};

// In whole mebibytes.
std::string memory_for(std::size_t limits) {
  std::size_t mebibytes = limits * sizeof(store::LimitRecord) * store::kLimitsPart / kMebibyte + 1;
  while (store::Mapping::limits_within(mebibytes * kMebibyte) < limits) ++mebibytes;
  return fmt::format("{}MiB", mebibytes);
}

}  // namespace

std::size_t distinct_limits(const Configuration& configuration, WallTime now) {
  return Limits{configuration, now}.size() + (configuration.envoy ? kEnvoyCounters : 0);
}

Parsed<void> check_room(const Configuration& configuration, WallTime now) {
  const std::size_t needed = distinct_limits(configuration, now);
  const std::size_t memory = configuration.state.memory;
  const std::size_t room = store::Mapping::limits_within(memory);
  if (needed <= room) return {};
  return mistake(fmt::format("the rules have {} different limits, and {}MiB of memory hold {}",
                             needed, memory / kMebibyte, room),
                 fmt::format("write state: {{memory: {}}}, or use fewer different limits",
                             memory_for(needed)));
}

}  // namespace sluice::app
