#include "cli/load/http/findings.h"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace sluice::cli {

ClientFindings find_clients(const Tally& tally) noexcept {
  const std::vector<std::uint32_t>& clients = tally.admitted_by_client;
  const auto [least, most] = std::ranges::minmax_element(clients);
  const auto sum = std::accumulate(clients.begin(), clients.end(), std::uint64_t{0});
  const auto first_most = std::ranges::find(clients, *most);
  return {.busiest = static_cast<std::uint64_t>(first_most - clients.begin()) + 1,
          .most = *most,
          .least = *least,
          .mean = static_cast<double>(sum) / static_cast<double>(clients.size())};
}

std::optional<Verdict> judge(const HttpPlan& plan, const Tally& tally) noexcept {
  if (!plan.expect) return std::nullopt;
  const Nanos time =
      std::max(tally.last_over - std::min(tally.first_sent, tally.last_over), Nanos{0});
  return Verdict{.most_allowed = plan.expect->most_in(time),
                 .most_admitted = find_clients(tally).most};
}

bool kept_schedule(const Tally& tally) noexcept {
  return tally.lateness.percentile(0.99) <= kLatenessMax;
}

std::optional<double> limit_per_second(const HttpPlan& plan, const Tally& tally) {
  const auto clients = static_cast<double>(plan.clients.clients());
  if (plan.expect) return plan.expect->per_second() * clients;
  const auto& stated = tally.policies.policies();
  if (stated.empty()) return std::nullopt;
  return std::ranges::min_element(stated, {}, &StatedPolicy::per_second)->per_second() * clients;
}

double per_second(double count, Nanos time) noexcept {
  const double seconds = std::chrono::duration<double>(time).count();
  return seconds > 0 ? count / seconds : 0;
}

}  // namespace sluice::cli
