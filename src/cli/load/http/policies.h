// Limits as a server states them in its responses.
//
// Reads RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers: a list of structured fields,
// "name";q=100;w=1. Parameters that are not known are passed over, and so are items that cannot be
// read: what the server says is its own affair.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

struct StatedPolicy {
  std::string name;
  std::uint64_t quota = 0;
  std::uint64_t window_seconds = 0;  // above 0
  std::uint64_t answers = 0;         // that stated it

  [[nodiscard]] double per_second() const noexcept {
    return static_cast<double>(quota) / static_cast<double>(window_seconds);
  }
};

// Those of one header; without the ones that have no window, as limits on requests in flight.
[[nodiscard]] std::vector<StatedPolicy> parse_policies(std::string_view value);

// The limits stated in a run. Most responses repeat the previous one, which costs a comparison.
// One thread.
class PolicyBook {
 public:
  void note(std::string_view value);
  void add(const PolicyBook& other);

  // In the order in which they were first seen. Beyond kMost, others are not kept.
  [[nodiscard]] const std::vector<StatedPolicy>& policies() const noexcept { return policies_; }

  static constexpr std::size_t kMost = 32;

 private:
  [[nodiscard]] StatedPolicy* find_or_add(const StatedPolicy& policy);

  std::vector<StatedPolicy> policies_;
  std::string last_value_;
  std::vector<std::size_t> last_;  // which policies that value names
};

}  // namespace sluice::cli
