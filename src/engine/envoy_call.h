// Requests to a service like envoyproxy/ratelimit, and its responses.
//
// Plain data with views: a request points into its sender's buffer, a response into the rules that
// it was decided by. Nothing here allocates.
#pragma once

#include "rules/envoy_rules.h"
#include <sluice/request.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

namespace sluice::engine {

inline constexpr std::size_t kEnvoyDescriptorsMax = 32;

// A limit sent with the request; it replaces the rules' limit.
struct EnvoyOverride {
  std::uint32_t requests_per_unit = 0;
  rules::EnvoyUnit unit = rules::EnvoyUnit::unknown;
};

struct EnvoyDescriptor {
  std::span<const DescriptorEntry> entries;
  std::optional<EnvoyOverride> limit;
  std::optional<std::uint64_t> hits_addend;  // in place of the request's; 0 only reads
};

struct EnvoyRequest {
  std::string_view domain;
  std::span<const EnvoyDescriptor> descriptors;
  std::uint32_t hits_addend = 0;  // 0 means 1: senders leave it out
};

// The numbers of Envoy's messages.
enum class EnvoyCode : std::uint8_t { ok = 1, over_limit = 2 };

struct EnvoyCurrentLimit {
  std::uint32_t requests_per_unit = 0;
  rules::EnvoyUnit unit = rules::EnvoyUnit::unknown;
  std::string_view name;  // empty for a limit sent with the request

  friend bool operator==(const EnvoyCurrentLimit&, const EnvoyCurrentLimit&) = default;
};

inline constexpr std::uint32_t kEnvoyUnlimited = std::numeric_limits<std::uint32_t>::max();

// For a descriptor without a limit, only the code is set.
struct EnvoyStatus {
  EnvoyCode code = EnvoyCode::ok;
  std::optional<EnvoyCurrentLimit> current_limit;
  std::uint32_t limit_remaining = 0;  // after this request; kEnvoyUnlimited if unlimited
  std::chrono::seconds duration_until_reset{0};

  friend bool operator==(const EnvoyStatus&, const EnvoyStatus&) = default;
};

class EnvoyDecider;

class EnvoyResponse {
 public:
  [[nodiscard]] EnvoyCode overall_code() const noexcept { return overall_; }
  // One for each descriptor, in the order of the request.
  [[nodiscard]] std::span<const EnvoyStatus> statuses() const noexcept {
    return std::span{statuses_}.first(count_);
  }

 private:
  friend class EnvoyDecider;

  EnvoyCode overall_ = EnvoyCode::ok;
  std::size_t count_ = 0;
  std::array<EnvoyStatus, kEnvoyDescriptorsMax> statuses_;
};

}  // namespace sluice::engine
