// What a seed draws: rules, and the requests of clients.
#pragma once

#include "engine/overrides.h"
#include "rules/rule.h"
#include "sim/ledger.h"
#include "sim/random.h"
#include <sluice/time.h>

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::sim {

// The rules of a run, in the editions that it goes through.
struct DrawnRules {
  std::vector<std::vector<rules::Rule>> editions;  // at least one
  std::vector<engine::Override> overrides;         // of all editions
  std::vector<RuleTraits> traits;                  // by number
};

// Four to seven rules: all algorithms that can be shared turn up in the course of the seeds, as do
// several limits of a rule, local, shared and shadow rules, refunds by status, tiers, edits, each
// policy for outages. Amounts are such that the traffic below exceeds many of them.
[[nodiscard]] DrawnRules draw_rules(Stream& stream);

// One line for each rule.
[[nodiscard]] std::vector<std::string> described(const DrawnRules& rules);

struct DrawnRequest {
  std::string user;
  std::string tenant;
  std::string tier;
  std::string path;
  std::string cost;  // a header
  Nanos takes{0};    // until the upstream responds
  std::uint16_t status = 200;
  std::uint32_t corrected_cost = 0;  // 0: never
  Nanos leaves_after{0};             // the client; 0: it waits
  bool is_cut_off = false;           // no response arrives
};

// Few users send most requests.
[[nodiscard]] DrawnRequest draw_request(Stream& stream);
// Of a user that has never been heard of.
[[nodiscard]] DrawnRequest fresh_request(std::uint64_t number);

}  // namespace sluice::sim
