#include "rules/parse_limits.h"

#include "base/duration.h"
#include "base/text.h"
#include "rules/formats.h"
#include "rules/rule_grammar.h"
#include "rules/words.h"
#include <sluice/core/compiled_limit.h>
#include <sluice/core/limit_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace sluice::rules {
namespace {

using config::Node;
using config::Reader;

std::optional<Nanos> duration_of(const Node* node) {
  if (node == nullptr) return std::nullopt;
  const Parsed<Nanos> parsed = parse_duration(node->text);
  return parsed ? std::optional{*parsed} : std::nullopt;
}

// The options that rules and limits have in common.
template <class Options>
void read_options(const Reader& reader, Options& options) {
  options.burst = reader.number("burst");
  if (const Node* node = reader.find("refill")) {
    options.refill = meaning_of(kRefillWords, node->text);
  }
  if (const Node* node = reader.find("align")) options.align = meaning_of(kAlignWords, node->text);
  if (const Node* node = reader.find("timezone")) options.timezone = node->text;
  options.bucket_width = duration_of(reader.find("bucket_width"));
}

// ---- plain text

Parsed<Limit> plain_limit(const Node& node, const LimitDefaults& defaults) {
  Parsed<Limit> limit = core::parse_limit(node.text, defaults.algorithm);
  if (!limit) return limit;
  if (defaults.burst) limit->burst = defaults.burst;
  if (defaults.refill) limit->refill = defaults.refill;
  if (defaults.align) limit->align = defaults.align;
  if (defaults.timezone) limit->timezone = defaults.timezone;
  if (defaults.bucket_width) limit->bucket_width = defaults.bucket_width;
  return limit;
}

// ---- map

std::optional<AmountFrom> parse_from(const Node& map, const ParseContext& context) {
  const Reader reader{map, from_section(), context.checked};
  const Node* claim = reader.find("claim");
  const Node* attribute = reader.find("attribute");
  const Node* header = reader.find("header");
  const auto max = reader.number("max");
  if (!max) return std::nullopt;
  if (claim != nullptr) return AmountFrom{AmountFrom::Kind::claim, claim->text, *max};
  if (attribute != nullptr) return AmountFrom{AmountFrom::Kind::attribute, attribute->text, *max};
  if (header == nullptr) return std::nullopt;
  return AmountFrom{AmountFrom::Kind::header, lower_case(header->text), *max};
}

// Nothing if the amount itself is wrong.
std::optional<Limit> parse_amount(const Reader& reader, const ParseContext& context) {
  std::optional<Algorithm> algorithm;
  const Node* algorithm_node = reader.find("algorithm");
  if (algorithm_node != nullptr) algorithm = meaning_of(kAlgorithmWords, algorithm_node->text);
  if (const Node* rate = reader.find("rate")) {
    const Parsed<Limit> limit = core::parse_limit(rate->text, algorithm);
    if (limit) return *limit;
    context.diagnostics.error(*rate, limit.error());
    return std::nullopt;
  }
  const auto max_concurrent = reader.number("max_concurrent");
  if (!max_concurrent) return std::nullopt;
  if (algorithm && algorithm != Algorithm::concurrency) {
    context.diagnostics.error(
        *algorithm_node, fmt::format("{} does not count requests in flight", to_string(*algorithm)),
        "leave 'algorithm' out, or write 'rate' instead of 'max_concurrent'");
    return std::nullopt;
  }
  Limit limit{.algorithm = Algorithm::concurrency, .amount = *max_concurrent};
  limit.slot_ttl = duration_of(reader.find("slot_ttl"));
  return limit;
}

std::optional<RuleLimit> map_limit(const Node& node, const ParseContext& context) {
  const Reader reader{node, limit_section(), context.checked};
  std::optional<Limit> limit = parse_amount(reader, context);
  RuleLimit result;
  result.name = reader.text("name");
  if (const Node* from = reader.find("from")) result.from = parse_from(*from, context);
  if (!limit) return std::nullopt;
  const std::optional<Align> calendar = limit->align;  // of a period as `month`
  read_options(reader, *limit);
  if (!limit->align) limit->align = calendar;
  result.limit = *std::move(limit);
  return result;
}

// ---- checks

Diagnostic named(const Limit& limit, const Diagnostic& problem) {
  return {fmt::format("limit {}: {}", core::rate_text(limit), problem.message), problem.remedy};
}

bool prove(const RuleLimit& limit, const Node& node, const LimitDefaults& defaults,
           const ParseContext& context) {
  if (limit.limit.max_delay && limit.limit.algorithm != Algorithm::leaky_bucket) {
    context.diagnostics.error(
        node,
        fmt::format("limit {}: {} cannot queue requests, as action: {{queue}} asks for",
                    core::rate_text(limit.limit), to_string(limit.limit.algorithm)),
        "choose algorithm: leaky_bucket, or another 'action'");
    return false;
  }
  if (auto problem = context.prover.check(limit.limit)) {
    if (!node.is_map() && defaults.any_for_plain_text()) {
      problem->remedy += (problem->remedy.empty() ? "" : ", or ") +
                         std::string{"write it as a map, which takes none of the rule's options"};
    }
    context.diagnostics.error(node, named(limit.limit, *problem));
    return false;
  }
  if (!limit.from) return true;
  Limit largest = limit.limit;
  largest.amount = limit.from->max;
  if (const auto problem = context.prover.check(largest)) {
    const Node* from = node.find("from");
    const Node* max = from == nullptr ? nullptr : from->find("max");
    context.diagnostics.error(max == nullptr ? node : *max,
                              fmt::format("max: {}", problem->message), problem->remedy);
    return false;
  }
  return true;
}

std::optional<RuleLimit> parse_one(const Node& node, const LimitDefaults& defaults,
                                   const ParseContext& context) {
  std::optional<RuleLimit> result;
  if (node.is_map()) {
    result = map_limit(node, context);
  } else {
    Parsed<Limit> limit = plain_limit(node, defaults);
    if (limit) {
      result = RuleLimit{.limit = *std::move(limit)};
    } else {
      context.diagnostics.error(node, limit.error());
    }
  }
  if (!result) return std::nullopt;
  Limit& limit = result->limit;
  limit.count_rejected = defaults.count_rejected && limit.algorithm != Algorithm::concurrency;
  limit.max_delay = defaults.max_delay;
  result->place = node.place();
  if (!prove(*result, node, defaults, context)) return std::nullopt;
  return result;
}

}  // namespace

std::optional<Diagnostic> LimitProver::check(const Limit& limit) {
  const auto compiled = [&]() -> std::optional<Diagnostic> {
    const Parsed<core::CompiledLimit> result = core::compile(limit);
    if (result) return std::nullopt;
    return result.error();
  };
  // An amount within its range does not affect a calendar window, everything else may.
  if (!limit.unit || limit.amount < 1 || limit.amount > core::kAmountMax) return compiled();
  const std::string calendar =
      fmt::format("{} {} {} {} {} {} {} {} {}", to_string(*limit.unit), limit.timezone.value_or(""),
                  to_string(limit.algorithm), limit.burst.value_or(0), limit.refill.has_value(),
                  limit.align ? to_string(*limit.align) : "", limit.bucket_width.has_value(),
                  limit.max_delay.has_value(), limit.count_rejected);
  const auto found = calendars_.find(calendar);
  return found != calendars_.end() ? found->second
                                   : calendars_.emplace(calendar, compiled()).first->second;
}

LimitDefaults parse_limit_defaults(const Reader& rule) {
  LimitDefaults defaults;
  if (const Node* node = rule.find("algorithm")) {
    defaults.algorithm = meaning_of(kAlgorithmWords, node->text);
  }
  read_options(rule, defaults);
  defaults.count_rejected = rule.flag("count_rejected", false);
  return defaults;
}

std::vector<RuleLimit> parse_limits(const Node& node, const LimitDefaults& defaults,
                                    const ParseContext& context) {
  std::vector<RuleLimit> limits;
  std::unordered_map<std::string, std::uint32_t> lines;  // of identities
  for (const Node* item : items_of(node, context.checked)) {
    std::optional<RuleLimit> limit = parse_one(*item, defaults, context);
    if (!limit) continue;
    const auto [first, is_new] = lines.emplace(limit_identity(*limit), limit->place.line);
    if (!is_new) {
      context.diagnostics.error(
          *item,
          limit->name.empty()
              ? fmt::format("limit {} would share its counter with the one in line {}",
                            core::rate_text(limit->limit), first->second)
              : fmt::format("the limit {} is already in line {}", quoted(limit->name),
                            first->second),
          limit->name.empty() ? "remove one of the two, or give each a name"
                              : "give it another name");
      continue;
    }
    limits.push_back(*std::move(limit));
  }
  return limits;
}

Tiers parse_tiers(const Node& map, const LimitDefaults& defaults, const ParseContext& context) {
  const Reader reader{map, tiers_section(), context.checked};
  Tiers tiers;
  tiers.by = reader.text("by");
  const Node* values = reader.find("values");
  if (values == nullptr) return tiers;
  if (values->size() == 0) {
    context.diagnostics.error(*values, "there is no tier in 'values'",
                              "leave 'tiers' out, or add one, as in {free: 10/1s}");
  }
  for (std::size_t i = 0; i < values->size(); ++i) {
    if (!context.checked.good(values->value(i))) continue;
    tiers.values.emplace_back(values->key(i).text,
                              parse_limits(values->value(i), defaults, context));
  }
  return tiers;
}

bool has_plain_text(const Node& limits) {
  if (!limits.is_list()) return !limits.is_map();
  const auto items = limits.items();
  return std::any_of(items.begin(), items.end(), [](const Node& item) { return !item.is_map(); });
}

std::string limit_identity(const RuleLimit& limit) {
  if (!limit.name.empty()) return "name " + limit.name;
  const Limit& numbers = limit.limit;
  const std::string period =
      numbers.unit ? std::string{to_string(*numbers.unit)} : format_duration(numbers.period);
  const Nanos eighth{(numbers.period.count() + core::kSlicesDefault - 1) / core::kSlicesDefault};
  const bool has_slices = numbers.algorithm == Algorithm::sliding_buckets;
  return fmt::format("{} {} {} {} {} {}", to_string(numbers.algorithm), period,
                     to_string(numbers.refill.value_or(Refill::continuous)),
                     to_string(numbers.align.value_or(Align::epoch)),
                     numbers.timezone.value_or("UTC"),
                     has_slices ? numbers.bucket_width.value_or(eighth).count() : 0);
}

}  // namespace sluice::rules
