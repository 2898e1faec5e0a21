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

constexpr std::uint64_t kWaitingMax = 1'000'000;
constexpr std::uint64_t kRefusalsMax = 1'000'000;

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
          "Which responses count: those that match any of the keys. The cost is reserved with "
          "the request and given back when the response does not match.",
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

const Section& over_section() {
  static const Section kSection{
      .name = "over",
      .meaning =
          "What happens to a request over the limit, in full. With `queue` it is held until it "
          "fits, and answered as below when that takes too long.",
      .keys = {{.name = "status",
                .shape = number(400, 599),
                .meaning = "The status of the answer.",
                .fallback = "429"},
               {.name = "body",
                .shape = text(kBodyFormat),
                .meaning = "The body of the answer, instead of a problem document."},
               {.name = "headers",
                .shape = map_of(over_headers_section),
                .meaning = "Headers of the answer, besides those of every refusal.",
                .examples = {"{x-docs: \"https://example.com/limits\"}"}},
               {.name = "queue",
                .shape = text(kDurationFormat),
                .meaning = "The longest time that a request is held; for `leaky_bucket`.",
                .examples = {"2s"}},
               {.name = "waiting",
                .shape = number(1, kWaitingMax),
                .meaning = "At most so many requests are held at once, those of all keys together.",
                .fallback = "1000"}},
      .at_least_one = {{"status", "body", "headers", "queue"}},
      .needs = {{"waiting", "queue"}},
      .hints = {{"reject", "write over: reject, or over: {status: 429}"},
                {"shadow", "write over: shadow"},
                {"drop", "write over: drop"},
                {"delay", "write over: {queue: 2s}"}}};
  return kSection;
}

const Section& over_headers_section() {
  static const Section kSection{.name = "over_headers",
                                .meaning = "Headers of an answer.",
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
          "A penalty: whoever was refused too often is refused for a while, whatever the limit "
          "says.",
      .keys = {{.name = "for",
                .shape = text(kDurationFormat),
                .meaning = "How long the block lasts; blocked requests do not extend it.",
                .required = true,
                .examples = {"15m"}},
               {.name = "after",
                .shape = number(1, kRefusalsMax),
                .meaning = "How many refusals by this rule it takes.",
                .fallback = "1"}},
      .hints = {{"duration", "write for: 15m"}, {"time", "write for: 15m"}}};
  return kSection;
}

}  // namespace sluice::rules
