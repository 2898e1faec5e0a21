#include "engine/envoy_snapshot.h"

#include <chrono>
#include <utility>

namespace sluice::engine {
namespace {

// Where the nodes have a common store, they count together. A caller whose request fails decides by
// its own setting (Envoy: failure_mode_deny), as with envoyproxy/ratelimit.
constexpr Sharing kSharing{.mode = Mode::automatic, .on_failure = OnFailure::closed};

// Kinds of parts in digests, distinct from those of rules. Keys depend on them: never change.
enum class EnvoyKeyPart : std::uint8_t { domain = 110, key = 111, value = 112, unit = 113 };

KeyDigest& add(KeyDigest& digest, EnvoyKeyPart part, std::string_view text) noexcept {
  return digest.add(static_cast<std::uint8_t>(part), text);
}

Limit counter_of(rules::EnvoyUnit unit) {
  return {.algorithm = Algorithm::fixed_window,
          .amount = EnvoySnapshot::kCountMax,
          .period = std::chrono::seconds{rules::seconds_of(unit)},
          .align = Align::epoch,
          .count_rejected = true};  // a sum beyond the maximum stays there
}

// All values that a shared wildcard matches are counted as one. A key spelled like the whole
// pattern also reaches its node, and is not a match of the wildcard.
std::string_view counted_value(const DescriptorEntry& entry,
                               const rules::EnvoyLevel* level) noexcept {
  const bool shared = level != nullptr && level->share_threshold &&
                      rules::matches_composite(level->composite, entry.key, entry.value);
  return shared ? std::string_view{level->value_pattern} : entry.value;
}

}  // namespace

EnvoySnapshot::EnvoySnapshot(std::shared_ptr<const rules::EnvoyRules> rules, EnvoyModes modes,
                             store::Limits& registry) noexcept
    : rules_(std::move(rules)),
      modes_(modes),
      registry_(registry),
      secret_((registry.is_local(kSharing) ? std::nullopt : registry.shared_secret())
                  .value_or(registry.secret())) {}

EnvoySnapshot::~EnvoySnapshot() {
  for (const store::LimitNumber number : std::span{counters_}.first(used_)) {
    registry_.stop_using(number);
  }
}

Parsed<std::shared_ptr<const EnvoySnapshot>> EnvoySnapshot::make(
    std::shared_ptr<const rules::EnvoyRules> rules, EnvoyModes modes, store::Limits& registry,
    Now now) {
  std::shared_ptr<EnvoySnapshot> snapshot{new EnvoySnapshot{std::move(rules), modes, registry}};
  Parsed<void> used = snapshot->use_counters(now);
  if (!used) return tl::unexpected(std::move(used.error()));
  return snapshot;
}

Parsed<void> EnvoySnapshot::use_counters(Now now) {
  for (; used_ < kUnits; ++used_) {
    const auto unit = static_cast<rules::EnvoyUnit>(used_ + 1);
    Parsed<store::LimitNumber> number = registry_.use(counter_of(unit), kSharing, now);
    if (!number) return tl::unexpected(std::move(number.error()));
    counters_[used_] = *number;
  }
  return {};
}

Digest EnvoySnapshot::key(std::string_view domain, std::span<const DescriptorEntry> entries,
                          rules::EnvoyUnit unit, const rules::EnvoyLimit* limit) const noexcept {
  KeyDigest digest{secret_};
  add(digest, EnvoyKeyPart::domain, domain);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const rules::EnvoyLevel* level = limit != nullptr ? &limit->levels[i] : nullptr;
    add(digest, EnvoyKeyPart::key, entries[i].key);
    add(digest, EnvoyKeyPart::value, counted_value(entries[i], level));
  }
  const char number = static_cast<char>(unit);
  return add(digest, EnvoyKeyPart::unit, {&number, 1}).finish();
}

}  // namespace sluice::engine
