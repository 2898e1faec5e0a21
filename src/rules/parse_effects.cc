#include "rules/parse_effects.h"

#include "base/duration.h"
#include "base/text.h"
#include "rules/formats.h"
#include "rules/parse_match.h"
#include "rules/rule_grammar.h"
#include "rules/words.h"
#include <sluice/core/compiled_limit.h>

#include <fmt/format.h>

#include <algorithm>

namespace sluice::rules {
namespace {

using config::Node;
using config::Reader;

constexpr Nanos kBlockMin = std::chrono::seconds{1};

std::uint32_t small(const std::optional<std::uint64_t>& number, std::uint32_t fallback) noexcept {
  return number ? static_cast<std::uint32_t>(*number) : fallback;
}

void parse_method_costs(const Node& map, CostRule& cost, const ParseContext& context) {
  if (map.size() == 0) {
    context.diagnostics.error(map, "there is no method in 'method'", "add one, as in {POST: 5}");
  }
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (!context.checked.good(map.value(i))) continue;
    std::string method = upper_case(map.key(i).text);
    const bool repeated = std::any_of(cost.by_method.begin(), cost.by_method.end(),
                                      [&](const auto& one) { return one.first == method; });
    if (repeated) {
      context.diagnostics.error(map.key(i), fmt::format("{} has a cost already", quoted(method)),
                                "remove one of the two");
    }
    cost.by_method.emplace_back(std::move(method),
                                static_cast<std::uint32_t>(config::number_of(map.value(i))));
  }
}

void parse_statuses(const Reader& reader, Count& count) {
  for (const Node* item : reader.list("status")) {
    if (const auto range = parse_status(item->text)) count.statuses.push_back(*range);
  }
  for (const Node* item : reader.list("grpc_status")) {
    const auto number = parse_number(item->text);
    count.grpc_statuses.push_back(number ? static_cast<std::uint8_t>(*number)
                                         : meaning_of(kGrpcWords, item->text));
  }
}

}  // namespace

CostRule parse_cost(const Node& node, const ParseContext& context) {
  CostRule cost;
  if (node.is_scalar()) {
    cost.constant = static_cast<std::uint32_t>(config::number_of(node));
    return cost;
  }
  const Reader reader{node, cost_section(), context.checked};
  cost.constant = small(reader.number("default"), 1);
  cost.max = small(reader.number("max"), 1);
  if (const Node* header = reader.find("header")) {
    cost.kind = CostRule::Kind::header;
    cost.name = lower_case(header->text);
  } else if (const Node* query = reader.find("query")) {
    cost.kind = CostRule::Kind::query;
    cost.name = query->text;
  } else if (const Node* methods = reader.find("method")) {
    cost.kind = CostRule::Kind::method;
    parse_method_costs(*methods, cost, context);
    if (const Node* max = reader.find("max")) {
      context.diagnostics.error(*max, "'max' has no effect on costs by method", "leave it out");
    }
  }
  return cost;
}

Count parse_count(const Node& map, const ParseContext& context) {
  const Reader reader{map, count_section(), context.checked};
  Count count;
  parse_statuses(reader, count);
  if (const Node* header = reader.find("header")) {
    std::vector<NamedMatch> headers = parse_header_matches(*header, context);
    if (headers.size() == 1) {
      count.header = std::move(headers.front());
    } else if (context.checked.good(*header) && (!header->is_map() || header->size() != 1)) {
      context.diagnostics.error(*header, "a response is told by one header",
                                "name one, as in {x-login: failed}");
    }
  }
  count.after = meaning_of(kWhenWords, reader.text("when", "request"));
  return count;
}

namespace {

// The headers have to fit a buffer, beside the headers of every response.
void parse_headers(const Node& headers, const ParseContext& context, Action& action) {
  constexpr std::size_t kBytesMax = std::size_t{16} << 10U;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < headers.size(); ++i) {
    if (!context.checked.good(headers.value(i))) continue;
    action.headers.emplace_back(lower_case(headers.key(i).text), headers.value(i).text);
    bytes += headers.key(i).text.size() + headers.value(i).text.size();
  }
  if (bytes <= kBytesMax) return;
  context.diagnostics.error(headers, fmt::format("the headers have {} bytes in all", bytes),
                            fmt::format("use at most {}", kBytesMax));
}

void parse_queue(const Node& map, const ParseContext& context, Action& action) {
  const Reader reader{map, queue_section(), context.checked};
  action.kind = Action::Kind::queue;
  action.max_queued = small(reader.number("max_queued"), action.max_queued);
  const Node* max_delay = reader.find("max_delay");
  const Parsed<Nanos> delay = parse_duration(max_delay == nullptr ? "" : max_delay->text);
  if (delay) action.max_delay = *delay;
  if (action.max_delay > Nanos{0} && action.max_delay <= core::kDelayMax) return;
  if (max_delay != nullptr) {
    context.diagnostics.error(
        *max_delay, fmt::format("a max_delay of {} is out of range", quoted(max_delay->text)),
        fmt::format("use more than 0s and at most {}", format_duration(core::kDelayMax)));
  }
  action.max_delay = std::chrono::seconds{1};  // so that the limits are checked all the same
}

void parse_reject(const Node& map, const ParseContext& context, Action& action) {
  const Reader reader{map, reject_section(), context.checked};
  action.status = static_cast<std::uint16_t>(reader.number("status").value_or(429));
  action.body = reader.text("body");
  if (const Node* headers = reader.find("headers")) parse_headers(*headers, context, action);
}

}  // namespace

Action parse_action(const Node& node, const ParseContext& context) {
  Action action;
  if (node.is_scalar()) {
    action.kind = meaning_of(kActionWords, node.text);
    return action;
  }
  const Reader reader{node, action_section(), context.checked};
  if (const Node* queue = reader.find("queue")) parse_queue(*queue, context, action);
  if (const Node* reject = reader.find("reject")) parse_reject(*reject, context, action);
  return action;
}

Block parse_block(const Node& map, const ParseContext& context) {
  const Reader reader{map, block_section(), context.checked};
  Block block;
  block.threshold = small(reader.number("threshold"), 1);
  if (const Node* duration = reader.find("duration")) {
    const Parsed<Nanos> parsed = parse_duration(duration->text);
    if (parsed) block.duration = *parsed;
    if (block.duration < kBlockMin || block.duration > core::kPeriodMax) {
      context.diagnostics.error(
          *duration, fmt::format("a block of {} is out of range", quoted(duration->text)),
          fmt::format("use {} to {}", format_duration(kBlockMin),
                      format_duration(core::kPeriodMax)));
    }
  }
  return block;
}

}  // namespace sluice::rules
