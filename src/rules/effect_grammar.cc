#include "rules/formats.h"
#include "rules/rule_grammar.h"
#include "rules/words.h"

namespace sluice::rules {
namespace {

using config::list_of;
using config::map_of;
using config::number;
using config::Section;
using config::Shape;
using config::text;
using config::word;

constexpr std::uint64_t kQueuedMax = 1'000'000;
constexpr std::uint64_t kRejectionsMax = 1'000'000;

}  // namespace

const Section& cost_section() {
  static const Section kSection{
      .name = "cost",
      .meaning = "What a request costs, when that is not the same for all.",
      .keys = {{.name = "header",
                .shape = text(kHeaderNameFormat),
                .meaning = "A header that holds the cost."},
               {.name = "query",
                .shape = text(kFieldNameFormat),
                .meaning = "A query field that holds the cost."},
               {.name = "method",
                .shape = map_of(method_costs_section),
                .meaning = "A cost for each method.",
                .examples = {"{GET: 1, POST: 5}"}},
               {.name = "max",
                .shape = number(1, kCostMax),
                .meaning = "The cost of a header or query field is clamped to 1 up to this.",
                .examples = {"100"}},
               {.name = "default",
                .shape = number(1, kCostMax),
                .meaning = "The cost where the named one is absent or no number.",
                .fallback = "1"}},
      .exactly_one = {{"header", "query", "method"}},
      .needs = {{"header", "max"}, {"query", "max"}}};
  return kSection;
}

const Section& method_costs_section() {
  static const Section kSection{
      .name = "method_costs",
      .meaning = "Methods and their costs.",
      .keys = {},
      .others = config::OtherKeys{.what = "METHOD",
                                  .format = &kMethodFormat,
                                  .shape = number(1, kCostMax),
                                  .meaning = "What a request with this method costs."}};
  return kSection;
}

const Section& count_section() {
  static const Section kSection{
      .name = "count",
      .meaning =
          "Which responses count: any that match one of the keys. The cost is reserved with the "
          "request, and refunded when the response does not match.",
      .keys = {{.name = "status",
                .shape = one_or_list(number(100, 599) | text(kStatusFormat)),
                .meaning = "The status of the response, a range or a class of them.",
                .examples = {"[401, 403]", "500-599", "5xx"}},
               {.name = "grpc_status",
                .shape = one_or_list(number(0, 16) | word(words_of(kGrpcWords))),
                .meaning = "The status of a gRPC response.",
                .examples = {"[7, UNAUTHENTICATED]"}},
               {.name = "header",
                .shape = text(kHeaderNameFormat) | map_of(header_match_section),
                .meaning = "One header of the response that must be there, or what it must hold.",
                .examples = {"{x-login: failed}"}},
               {.name = "when",
                .shape = word(words_of(kWhenWords)),
                .meaning =
                    "`after` reserves nothing: the request must fit, and is charged when the "
                    "response is there. Parallel requests may then overrun the limit.",
                .fallback = "request"}},
      .at_least_one = {{"status", "grpc_status", "header"}}};
  return kSection;
}

const Section& action_section() {
  static const Section kSection{
      .name = "action",
      .meaning =
          "What happens to a request that exceeds the limit. With `queue` it waits until it fits, "
          "and is rejected if that takes longer than `max_delay`.",
      .keys = {{.name = "queue",
                .shape = map_of(queue_section),
                .meaning = "Queues requests over the limit; for `leaky_bucket`.",
                .examples = {"{max_delay: 2s}"}},
               {.name = "reject",
                .shape = map_of(reject_section),
                .meaning = "The response to rejected requests.",
                .examples = {"{status: 503}"}}},
      .at_least_one = {{"queue", "reject"}},
      .hints = {{"status", "write reject: {status: 429}"},
                {"body", "write reject: {body: TEXT}"},
                {"headers", "write reject: {headers: {NAME: VALUE}}"},
                {"waiting", "write queue: {max_delay: 2s, max_queued: 50}"},
                {"max_queued", "write queue: {max_delay: 2s, max_queued: 50}"},
                {"max_delay", "write queue: {max_delay: 2s}"},
                {"delay", "write queue: {max_delay: 2s}"},
                {"shadow", "write action: shadow"},
                {"drop", "write action: drop"}}};
  return kSection;
}

const Section& queue_section() {
  static const Section kSection{
      .name = "queue",
      .meaning = "Requests over the limit wait for their turn.",
      .keys = {{.name = "max_delay",
                .shape = text(kDurationFormat),
                .meaning = "The longest time that a request is queued.",
                .required = true,
                .examples = {"2s"}},
               {.name = "max_queued",
                .shape = number(1, kQueuedMax),
                .meaning = "How many requests are queued at once, those of all keys together.",
                .fallback = "1000",
                .formerly = {"waiting"}}},
      .hints = {{"delay", "write max_delay: 2s"},
                {"timeout", "write max_delay: 2s"},
                {"size", "write max_queued: 50"}}};
  return kSection;
}

const Section& reject_section() {
  static const Section kSection{
      .name = "reject",
      .meaning = "The response to a rejected request.",
      .keys = {{.name = "status",
                .shape = number(400, 599),
                .meaning = "Its status.",
                .fallback = "429"},
               {.name = "body",
                .shape = text(kBodyFormat),
                .meaning = "Its body, instead of a problem document."},
               {.name = "headers",
                .shape = map_of(reject_headers_section),
                .meaning = "Its headers, besides those of every rejection.",
                .examples = {"{x-docs: \"https://example.com/limits\"}"}}},
      .at_least_one = {{"status", "body", "headers"}}};
  return kSection;
}

const Section& reject_headers_section() {
  static const Section kSection{.name = "reject_headers",
                                .meaning = "Headers of a response.",
                                .keys = {},
                                .others = config::OtherKeys{.what = "HEADER",
                                                            .format = &kHeaderNameFormat,
                                                            .shape = text(kHeaderValueFormat),
                                                            .meaning = "Its value."}};
  return kSection;
}

const Section& block_section() {
  static const Section kSection{
      .name = "block",
      .meaning =
          "A penalty: a client that is rejected too often stays rejected for `duration`, whatever "
          "the limit says.",
      .keys = {{.name = "duration",
                .shape = text(kDurationFormat),
                .meaning = "How long the block lasts; blocked requests do not extend it.",
                .required = true,
                .examples = {"15m"},
                .formerly = {"for"}},
               {.name = "threshold",
                .shape = number(1, kRejectionsMax),
                .meaning = "How many rejections by this rule it takes.",
                .fallback = "1",
                .formerly = {"after"}}},
      .hints = {{"time", "write duration: 15m"}}};
  return kSection;
}

}  // namespace sluice::rules
