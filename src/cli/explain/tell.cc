#include "cli/explain/tell.h"

#include "base/duration.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "cli/decision_json.h"
#include "cli/rule_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::cli {
namespace {

std::string_view proof_text(identity::Proof proof) {
  switch (proof) {
    case identity::Proof::none: return "anonymous";
    case identity::Proof::good: return "authenticated";
    case identity::Proof::unknown: return "unknown key";
    case identity::Proof::invalid: return "invalid token";
    case identity::Proof::limited: return "too many failures";
    case identity::Proof::ambiguous: return "ambiguous credentials";
  }
  return {};
}

// What the gateway answers where the two readings of a path have different routes.
constexpr std::uint16_t kAmbiguousRouteStatus = 400;
constexpr std::string_view kAmbiguousRoute = "ambiguous_route";

// Bytes that a client chose: control characters are left out.
std::string shown(std::string_view value) {
  std::string text{value};
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = '?';
  }
  return text;
}

// ---- for people -------------------------------------------------------------------------------

std::string decision_text(const Decision& decision) {
  if (decision.verdict == Verdict::never) {
    return fmt::format("costs more than the {} there ever are", decision.limit);
  }
  std::string text = fmt::format("{} of {} left", decision.remaining, decision.limit);
  if (decision.reset_after > Nanos{0}) {
    text += fmt::format(", reset in {}", approximate_duration(decision.reset_after));
  }
  if (decision.retry_after) {
    text += fmt::format(", retry in {}", approximate_duration(*decision.retry_after));
  }
  if (decision.delay > Nanos{0}) {
    text += fmt::format(", queued for {}", approximate_duration(decision.delay));
  }
  return text;
}

std::string client_text(const Story& story) {
  std::string text = fmt::format("{}, {}", story.address, proof_text(story.client.proof));
  const auto add = [&text](std::string_view name, std::string_view value) {
    if (!value.empty()) text += fmt::format(", {} {}", name, value);
  };
  add("user", story.client.user);
  add("api_key", story.client.api_key);
  add("tenant", story.client.tenant);
  add("tier", story.client.tier);
  add("country", story.client.country);
  if (story.client.asn != 0) add("asn", std::to_string(story.client.asn));
  if (!story.client.why.empty()) text += fmt::format(" ({})", story.client.why);
  return text;
}

// No response is known, and rules may count by it.
std::string repeat_text(const Story& story, std::uint32_t repeat) {
  const bool counts_responses = std::ranges::any_of(story.rules, [](const RuleStory& one) {
    return one.mismatch.empty() && one.rule->count.has_value();
  });
  return fmt::format("the last of {} requests{}", repeat,
                     counts_responses ? "; the responses to the others are assumed to count" : "");
}

std::string key_text(const RuleStory& story) {
  std::string text;
  for (const StoryValue& one : story.key) {
    text += fmt::format(
        " {}={}", one.part,
        one.instead.empty() ? shown(one.value) : fmt::format("(missing, {})", one.instead));
  }
  return text;
}

std::string limit_line(const RuleStory& story, const StoryLimit& limit) {
  const engine::LimitOutcome& outcome = *limit.outcome;
  std::string by;
  if (limit.by_from || limit.by_override) by = fmt::format(", here {}", outcome.amount);
  if (limit.by_from) by += fmt::format(" by {}", outcome.limit->from->name);
  if (limit.by_override) {
    by += fmt::format(" by override {} (multiplier {})", story.changed_by->subject.written(),
                      format_thousandths(story.changed_by->permille));
  }
  return fmt::format("      {}{}: {}{}\n", limit_text(*outcome.limit), by,
                     outcome.decision.allowed() ? "" : "exceeded, ",
                     decision_text(outcome.decision));
}

std::string rule_lines(const RuleStory& story, const Output& output) {
  const auto passed_over = [&](std::string_view why) {
    return fmt::format("  {}-{} {}: {}\n", output.style(kDim), output.style(kPlain),
                       story.rule->name, why);
  };
  if (!story.mismatch.empty()) return passed_over(fmt::format("{} does not match", story.mismatch));
  if (story.lost) {
    return passed_over(
        fmt::format("another rule of group '{}' is more specific", story.rule->group));
  }
  if (!story.not_asked.empty()) return passed_over(story.not_asked);
  const bool shadow = story.rule->action.kind == rules::Action::Kind::shadow;
  std::string text =
      fmt::format("  {}+{} {} per {}{}\n", output.style(kGreen), output.style(kPlain),
                  story.rule->name, per_text(*story.rule), shadow ? ", shadow (log only)" : "");
  if (!story.key.empty()) text += fmt::format("      key {}\n", key_text(story));
  if (!story.tier.empty()) text += fmt::format("      tier {}\n", story.tier);
  if (story.cost != 1) text += fmt::format("      cost {}\n", story.cost);
  for (const StoryLimit& limit : story.limits) text += limit_line(story, limit);
  return text;
}

std::string listed_text(const engine::ListEntry& entry) {
  std::string text = fmt::format(" by {}", entry.subject.written());
  if (entry.expires) text += fmt::format(", expires {}", format_rfc3339(*entry.expires));
  if (!entry.note.empty()) text += fmt::format(" ({})", entry.note);
  return text;
}

std::string verdict_text(const Story& story, const engine::Op& op, const Output& output) {
  if (fails_at_routes(story, op)) {
    return fmt::format("{}rejected{} with {}: {}, after the rules allowed it", output.style(kRed),
                       output.style(kPlain), kAmbiguousRouteStatus, kAmbiguousRoute);
  }
  const bool passes = op.action == engine::Action::pass;
  std::string text = fmt::format("{}{}{}", output.style(passes ? kGreen : kRed),
                                 passes                              ? "allowed"
                                 : op.action == engine::Action::drop ? "dropped"
                                                                     : "rejected",
                                 output.style(kPlain));
  if (op.action == engine::Action::reject) text += fmt::format(" with {}", op.status);
  if (op.reason != engine::Reason::allowed) {
    text += fmt::format(": {}", engine::to_string(op.reason));
  }
  if (story.listed != nullptr) return text + listed_text(*story.listed);
  if (op.rule == nullptr) return text;
  if (op.reason == engine::Reason::ambiguous_value) {
    return text + fmt::format(", which {} counts by", op.rule->name);
  }
  if (!has_decision(op)) return text + fmt::format(", which {} wants", op.rule->name);
  if (passes) {
    return text +
           fmt::format(", most restrictive is {}, {}", op.rule->name, decision_text(op.decision));
  }
  if (op.reason == engine::Reason::blocked) {
    return text + fmt::format(" by {} for another {}", op.rule->name,
                              approximate_duration(op.decision.reset_after));
  }
  return text + fmt::format(" by {}, {}", op.rule->name, decision_text(op.decision));
}

// ---- for programs -----------------------------------------------------------------------------

std::string or_null(std::string_view text) {
  return text.empty() ? std::string{"null"} : json_string(text);
}

// "a,b" of what `one_of` makes of each.
template <class Range, class Make>
std::string joined(const Range& range, Make&& one_of) {
  std::string text;
  for (const auto& one : range) text += (text.empty() ? "" : ",") + one_of(one);
  return text;
}

std::string json_of(const Decision& decision) {
  return fmt::format(R"({{"allowed":{},{}}})", decision.allowed(), decision_members(decision));
}

std::string json_of(const StoryValue& one) {
  const bool is_told = one.instead.empty() && !one.is_ambiguous;
  return fmt::format(R"({{"part":{},"value":{},"missing":{},"instead":{},"ambiguous":{}}})",
                     json_string(one.part), is_told ? json_string(one.value) : "null",
                     !one.instead.empty(), or_null(one.instead), one.is_ambiguous);
}

std::string json_of(const StoryLimit& limit) {
  return fmt::format(R"({{"limit":{},"amount":{},"by_from":{},"by_override":{},"decision":{}}})",
                     json_string(limit_text(*limit.outcome->limit)), limit.outcome->amount,
                     limit.by_from, limit.by_override, json_of(limit.outcome->decision));
}

std::string json_of(const engine::Override* changed) {
  if (changed == nullptr) return "null";
  return fmt::format(R"({{"subject":{},"multiplier":{}}})", json_string(changed->subject.written()),
                     format_thousandths(changed->permille));
}

std::string json_of(const RuleStory& story) {
  return fmt::format(
      R"({{"name":{},"matched":{},"mismatch":{},"lost_in_group":{},"asked":{},"not_asked":{},)"
      R"("key":[{}],"tier":{},"override":{},"cost":{},"shadow":{},"limits":[{}]}})",
      json_string(story.rule->name), story.mismatch.empty(), or_null(story.mismatch), story.lost,
      story.asked(), or_null(story.not_asked),
      joined(story.key, [](const StoryValue& one) { return json_of(one); }), or_null(story.tier),
      json_of(story.changed_by), story.asked() ? std::to_string(story.cost) : "null",
      story.rule->action.kind == rules::Action::Kind::shadow,
      joined(story.limits, [](const StoryLimit& one) { return json_of(one); }));
}

std::string json_of(const engine::ListEntry* entry) {
  if (entry == nullptr) return "null";
  return fmt::format(
      R"({{"subject":{},"expires":{},"note":{}}})", json_string(entry->subject.written()),
      entry->expires ? json_string(format_rfc3339(*entry->expires)) : "null", or_null(entry->note));
}

std::string client_json(const Story& story) {
  const identity::Identity& client = story.client;
  return fmt::format(
      R"({{"address":{},"proof":{},"why":{},"user":{},"api_key":{},"tenant":{},"tier":{},)"
      R"("country":{},"asn":{}}})",
      json_string(story.address), json_string(proof_text(client.proof)), or_null(client.why),
      or_null(client.user), or_null(client.api_key), or_null(client.tenant), or_null(client.tier),
      or_null(client.country), client.asn != 0 ? std::to_string(client.asn) : "null");
}

}  // namespace

void tell(const ExplainedRequest& request, const Story& story, const engine::Op& op,
          std::uint32_t repeat, Output& output) {
  output.write(fmt::format("request   {} {}\n", request.method, request.target));
  output.write(fmt::format("path      {}\n", story.path));
  if (!story.decoded_path.empty()) {
    output.write(fmt::format("      or  {}\n", story.decoded_path));
  }
  output.write(fmt::format("host      {}\n", story.host));
  output.write(fmt::format("client    {}\n", client_text(story)));
  if (repeat > 1) output.write(fmt::format("repeat    {}\n", repeat_text(story, repeat)));
  output.write(story.rules.empty() ? "rules     none evaluated\n" : "rules\n");
  for (const RuleStory& rule : story.rules) output.write(rule_lines(rule, output));
  output.write(fmt::format("decision  {}\n", verdict_text(story, op, output)));
  if (story.route.has_gateway) {
    output.write(fmt::format("route     {}\n", route_text(story.route)));
  }
}

void tell_json(const ExplainedRequest& request, const Story& story, const engine::Op& op,
               Output& output) {
  constexpr std::array<std::string_view, 3> kActions{"pass", "reject", "drop"};
  const bool fails = fails_at_routes(story, op);
  const engine::Action action = fails ? engine::Action::reject : op.action;
  output.write(fmt::format(
      R"({{"request":{{"method":{},"target":{},"path":{},"decoded_path":{},"host":{}}},)"
      R"("client":{},"rules":[{}],"allowed":{},"action":{},"reason":{},"status":{},"listed":{},)"
      R"("rule":{},"decision":{},{}}})"
      "\n",
      json_string(request.method), json_string(request.target), json_string(story.path),
      or_null(story.decoded_path), json_string(story.host), client_json(story),
      joined(story.rules, [](const RuleStory& one) { return json_of(one); }),
      action == engine::Action::pass, json_string(kActions[static_cast<std::size_t>(action)]),
      json_string(fails ? kAmbiguousRoute : engine::to_string(op.reason)),
      fails ? kAmbiguousRouteStatus : op.status, json_of(story.listed),
      op.rule != nullptr ? json_string(op.rule->name) : "null",
      has_decision(op) ? json_of(op.decision) : "null", route_members(story.route)));
}

}  // namespace sluice::cli
