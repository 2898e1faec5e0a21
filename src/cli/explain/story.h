// What the engine went through for one request, told again slowly.
#pragma once

#include "app/config/serve_configuration.h"
#include "cli/explain/explained_request.h"
#include "cli/explain/route_story.h"
#include "embed/offline_engine.h"
#include "engine/lists.h"
#include "engine/op.h"
#include "engine/overrides.h"
#include "identity/identifier.h"
#include "rules/rule.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

// One part of what a rule counts by.
struct StoryValue {
  std::string part;           // user, header.x-team
  std::string value;          // empty: missing, or ambiguous
  std::string instead;        // what stands for a missing one: "ip 192.0.2.1", "shared"
  bool is_ambiguous = false;  // it is sent twice, differently
};

// How one limit fared.
struct StoryLimit {
  const engine::LimitOutcome* outcome = nullptr;
  bool by_from = false;  // the amount is what the request brought along
  bool by_override = false;
};

// One rule's part in the decision.
struct RuleStory {
  const rules::Rule* rule = nullptr;
  std::string_view mismatch;  // empty: it matched
  bool lost = false;          // a more specific rule of its group won
  std::string not_asked;      // why, for people; empty: it was, or it did not come to that
  std::vector<StoryValue> key;
  std::string tier;                              // whose limits these are; empty: the rule's own
  const engine::Override* changed_by = nullptr;  // null: nothing
  std::uint32_t cost = 1;
  std::vector<StoryLimit> limits;

  [[nodiscard]] bool matched() const noexcept { return mismatch.empty() && !lost; }
  [[nodiscard]] bool asked() const noexcept { return matched() && not_asked.empty(); }
};

// Views into what it was made of.
struct Story {
  std::string path;
  std::string decoded_path;  // with slashes for escaped ones; empty: there is no such reading
  std::string host;
  identity::Identity client;
  std::string address;
  const engine::ListEntry* listed = nullptr;  // that decided; null: none did
  std::vector<RuleStory> rules;
  RouteStory route;
};

struct StoryParts {
  const embed::OfflineEngine& engine;
  const app::ServeConfig& serve;  // routes, for the gateway's part
  const identity::Identifier& identifier;
  const engine::Lists& lists;
  const RequestView& request;
  const engine::Op& op;
  Now now;
};
// The client is known as long as the scratch is not used again.
[[nodiscard]] Story story_of(const StoryParts& parts, identity::IdentifierScratch& scratch);

// Whether the gateway answers 400 to what the rules let pass: servers could read the path in
// another way than the routes do.
[[nodiscard]] inline bool fails_at_routes(const Story& story, const engine::Op& op) noexcept {
  return op.action == engine::Action::pass && story.route.is_ambiguous;
}

// Whether a limit had a word in the decision, so that there are numbers to tell.
[[nodiscard]] bool has_decision(const engine::Op& op) noexcept;

}  // namespace sluice::cli
