#include "rules/rule_grammar.h"

#include "config/reference.h"
#include "config/schema.h"
#include "rules/formats.h"
#include "rules/words.h"
#include <sluice/core/compiled_limit.h>

namespace sluice::rules {
namespace {

using config::any_list_of;
using config::flag;
using config::list_of;
using config::map_of;
using config::number;
using config::Section;
using config::text;
using config::word;

// With more rules an edit would take minutes.
constexpr std::uint64_t kRulesMax = 1'000'000;

}  // namespace

const Section& rules_file_section() {
  static const Section kSection{
      .name = "rules_file",
      .meaning = "A file of rules.",
      .keys = {{.name = "rules",
                .shape = any_list_of(map_of(rule_section)),
                .meaning = "All rules whose `match` holds apply together.",
                .required = true,
                .examples = {"[{name: api, per: ip, limit: 100/1s}]"}},
               {.name = "unmatched",
                .shape = word(words_of(kUnmatchedWords)),
                .meaning = "What happens to a request that no enforcing rule matches: allow it, or "
                           "reject it with 503.",
                .fallback = "allow",
                .hints = {{"deny", "write reject"},
                          {"block", "write reject"},
                          {"pass", "write allow"}}},
               {.name = "case_insensitive_paths",
                .shape = flag() | list_of(text(kHostFormat)),
                .meaning = "Whether servers read `/LOGIN` as `/login`: all of them, or the listed "
                           "hosts. Paths are then compared in lower case.",
                .fallback = "false",
                .examples = {"[intranet.example.com]"},
                .formerly = {"ignore_case"}},
               {.name = "ignore_path_parameters",
                .shape = flag() | list_of(text(kHostFormat)),
                .meaning = "Whether servers read `/login;x=1` as `/login`, as servlet containers "
                           "do: all of them, or the listed hosts. Paths are then compared without "
                           "everything behind a semicolon.",
                .fallback = "false",
                .examples = {"[intranet.example.com]"},
                .formerly = {"ignore_parameters"}},
               {.name = "escaped_slashes",
                .shape = word(words_of(kEscapedSlashesWords)) | map_of(escaped_slashes_section),
                .meaning = "What `%2F` and `%5C` in a path mean. `decode`: a slash or an ordinary "
                           "character, since servers differ; rules that match either reading "
                           "apply, and the request is rejected with 400 if the two have different "
                           "upstreams. `keep`: an ordinary character, where servers tell `/a%2Fb` "
                           "from `/a/b`. `reject`: the request is rejected with 400.",
                .fallback = "decode",
                .examples = {"reject", "{hosts: {git.example.com: keep}}"}},
               {.name = "max_rules",
                .shape = number(1, kRulesMax) | map_of(max_rules_section),
                .meaning = "How many rules there may be, in total and in one domain. A file with "
                           "more is rejected, and the rules in force stay.",
                .fallback = "10000",
                .examples = {"50000", "{total: 50000, per_domain: 1000}"},
                .formerly = {"rules_max"}}},
      .hints = {{"limits", "write a list of rules under 'rules', each with its 'limit'"},
                {"descriptors",
                 "a file of envoyproxy/ratelimit is loaded by rules_from: {envoy: "
                 "DIR}"},
                {"domain", "write 'domain' in each rule"},
                {"default", "write unmatched: allow or unmatched: reject"}}};
  return kSection;
}

const Section& escaped_slashes_section() {
  static const Section kSection{
      .name = "escaped_slashes",
      .meaning = "What `%2F` and `%5C` in a path mean, by host.",
      .keys = {{.name = "default",
                .shape = word(words_of(kEscapedSlashesWords)),
                .meaning = "For hosts that are not listed.",
                .fallback = "decode"},
               {.name = "hosts",
                .shape = map_of(escaped_slashes_hosts_section),
                .meaning = "For single hosts; of several that match, the most specific one.",
                .examples = {"{git.example.com: keep, '*.example.com': reject}"}}},
      .at_least_one = {{"default", "hosts"}}};
  return kSection;
}

const Section& escaped_slashes_hosts_section() {
  static const Section kSection{
      .name = "escaped_slashes_hosts",
      .meaning = "What `%2F` and `%5C` in a path mean on single hosts.",
      .keys = {},
      .others = config::OtherKeys{.what = "HOST",
                                  .format = &kHostFormat,
                                  .shape = word(words_of(kEscapedSlashesWords)),
                                  .meaning = "A host, or `*.example.com` for all below it."}};
  return kSection;
}

const Section& max_rules_section() {
  static const Section kSection{.name = "max_rules",
                                .meaning = "How many rules there may be.",
                                .keys = {{.name = "total",
                                          .shape = number(1, kRulesMax),
                                          .meaning = "In all domains together.",
                                          .fallback = "10000",
                                          .formerly = {"all"}},
                                         {.name = "per_domain",
                                          .shape = number(1, kRulesMax),
                                          .meaning = "In each domain.",
                                          .fallback = "10000"}},
                                .at_least_one = {{"total", "per_domain"}}};
  return kSection;
}

const Section& rule_section() {
  static const Section kSection{
      .name = "rule",
      .meaning =
          "Which requests it applies to (`match`), what gets its own counter (`per`), how much "
          "(`limit`).",
      .keys =
          {{.name = "name",
            .shape = text(kNameFormat),
            .meaning = "Unique in its domain; appears in headers, metrics and logs. A renamed rule "
                       "starts with new counters.",
            .required = true,
            .examples = {"api-per-user"}},
           {.name = "domain",
            .shape = text(kDomainFormat),
            .meaning = "Namespace of the rule; the domain of Envoy's requests.",
            .fallback = "default"},
           {.name = "match",
            .shape = map_of(match_section),
            .meaning = "Which requests it applies to; without it, all.",
            .examples = {"{path: /v1/**}"}},
           {.name = "per",
            .shape = text(kPerFormat) | any_list_of(text(kPerFormat)),
            .meaning =
                "What gets its own counter: `user`, `api_key`, `tenant`, `ip` (IPv6 as /64), "
                "`ip/N`, `ip/N/M`, `country`, `asn`, `method`, `route`, `path.ID`, `header.X`, "
                "`query.X`, `claim.X`, `attribute.X` (of an API key), `descriptor.X`, or several "
                "of them together.",
            .fallback = "[]",
            .examples = {"user", "[tenant, path.id]"}},
           {.name = "on_missing",
            .shape = word(words_of(kOnMissingWords)),
            .meaning = "When a value of `per` is absent: count by address instead, skip the rule, "
                       "count all such requests together, or reject with 403.",
            .fallback = "ip",
            .hints = {{"ignore", "write skip"},
                      {"deny", "write reject"},
                      {"refuse", "write reject"}},
            .formerly = {"missing"}},
           {.name = "limit",
            .shape = limits_shape(),
            .meaning = "One limit or several, all of which must admit the request.",
            .required = true,
            .examples = {"100/1s", "[100/1s, {rate: 10000/1h, algorithm: sliding_counter}]"}},
           {.name = "burst",
            .shape = number(1, core::kAmountMax),
            .meaning = "For limits written as plain text: how much may come at once."},
           {.name = "algorithm",
            .shape = word(words_of(kAlgorithmWords)),
            .meaning = "For limits written as plain text: how they are counted.",
            .fallback = "token_bucket"},
           {.name = "refill",
            .shape = word(words_of(kRefillWords)),
            .meaning = "For limits written as plain text: how a token bucket fills again.",
            .fallback = "continuous"},
           {.name = "align",
            .shape = word(words_of(kAlignWords)),
            .meaning = "For limits written as plain text: where a fixed window begins.",
            .fallback = "epoch"},
           {.name = "timezone",
            .shape = text(kTimezoneFormat),
            .meaning = "For limits written as plain text: the time zone of calendar windows.",
            .fallback = "UTC"},
           {.name = "bucket_width",
            .shape = text(kDurationFormat),
            .meaning = "For limits written as plain text: the width of a sub-window.",
            .formerly = {"granularity"}},
           {.name = "tiers",
            .shape = map_of(tiers_section),
            .meaning = "Other limits for some clients.",
            .examples = {"{by: client.tier, values: {free: 10/1s}}"}},
           {.name = "cost",
            .shape = number(1, kCostMax) | map_of(cost_section),
            .meaning = "How much of the limit a request takes.",
            .fallback = "1",
            .examples = {"{header: x-cost, max: 100}"}},
           {.name = "count",
            .shape = map_of(count_section),
            .meaning = "Which responses count; without it, every request does.",
            .examples = {"{status: [401, 403]}"}},
           {.name = "action",
            .shape = word(words_of(kActionWords)) | map_of(action_section),
            .meaning =
                "What happens to a request that exceeds the limit: `reject` it with 429, `drop` "
                "its connection without a response, `shadow` (log only), or a map that says more.",
            .fallback = "reject",
            .examples = {"{queue: {max_delay: 2s, max_queued: 50}}"},
            .hints = {{"queue", "write action: {queue: {max_delay: 2s}}"},
                      {"delay", "write action: {queue: {max_delay: 2s}}"},
                      {"deny", "write reject"},
                      {"refuse", "write reject"},
                      {"block", "write reject, and block: {duration: 15m}"},
                      {"close", "write drop"}},
            .formerly = {"over"}},
           {.name = "block",
            .shape = map_of(block_section),
            .meaning = "A client that is rejected too often stays rejected for a while.",
            .examples = {"{duration: 15m, threshold: 3}"}},
           {.name = "group",
            .shape = text(kNameFormat),
            .meaning = "Of the rules of one group that match, only the most specific applies."},
           {.name = "before_auth",
            .shape = flag(),
            .meaning = "Evaluated before keys and tokens are verified, and counts every attempt.",
            .fallback = "false"},
           {.name = "count_rejected",
            .shape = flag(),
            .meaning = "Whether rejected requests count, too.",
            .fallback = "false",
            .formerly = {"count_denied"}},
           {.name = "on_change",
            .shape = word(words_of(kOnChangeWords)),
            .meaning = "What becomes of the counters when the limit is edited.",
            .fallback = "keep"},
           {.name = "on_table_full",
            .shape = word(words_of(kOnTableFullWords)),
            .meaning = "What happens to a key that the table has no room for: counted in cells "
                       "that several keys share, allowed untracked, or rejected.",
            .fallback = "approximate",
            .hints = {{"forgive", "write allow"}, {"refuse", "write reject"}},
            .formerly = {"no_room"}},
           {.name = "thread_leases",
            .shape = flag(),
            .meaning = "Lets each thread lease a part of a hot counter; may reject slightly early. "
                       "Not with `count`: leased units cannot be refunded.",
            .fallback = "false",
            .formerly = {"scale"}},
           {.name = "mode",
            .shape = word(words_of(kModeWords)),
            .meaning = "How several nodes share the limit.",
            .fallback = "auto",
            .hints = {{"strict", "write exact"},
                      {"memory", "write local"},
                      {"blacklist", "write deny_list"}}},
           {.name = "tolerance",
            .shape = text(kPercentFormat),
            .meaning = "How far several nodes together may overrun the limit.",
            .fallback = "5%",
            .examples = {"0.5%"}},
           {.name = "on_failure",
            .shape = word(words_of(kOnFailureWords)),
            .meaning =
                "When the nodes cannot reach what they share: spend this node's share, reject, "
                "or admit.",
            .fallback = "share",
            .hints = {{"fail_open", "write open"},
                      {"fail_closed", "write closed"},
                      {"allow", "write open"},
                      {"deny", "write closed"}}}},
      .hints = {{"zone", kZoneRemedy},
                {"nodelay", kNoDelayRemedy},
                {"rate", "write limit: 100/1s"},
                {"limits", "write 'limit', which can be a list"},
                {"key", "write 'per'"},
                {"by", "write 'per'"},
                {"path", "write match: {path: ...}"},
                {"location", "write match: {path: /x/**}"},
                {"method", "write match: {method: ...}"},
                {"host", "write match: {host: ...}"},
                {"status",
                 "write action: {reject: {status: ...}} for the response, or count: {status: ...}"},
                {"queue", "write action: {queue: {max_delay: 2s}}"},
                {"shadow", "write action: shadow"},
                {"shadow_mode", "write action: shadow"},
                {"fail_open", "write on_failure: open"},
                {"fail_closed", "write on_failure: closed"},
                {"concurrent", "write limit: {max_concurrent: 20}"},
                {"max_concurrent", "write limit: {max_concurrent: 20}"},
                {"ttl", "write limit: {max_concurrent: 20, slot_ttl: 60s}"},
                {"slot_ttl", "write limit: {max_concurrent: 20, slot_ttl: 60s}"},
                {"period", "write limit: 100/1s"},
                {"window", "write limit: 100/1s"},
                {"unit", "write limit: 100/1s"},
                {"requests_per_unit", "write limit: 100/1s"}}};
  return kSection;
}

config::Shape rules_file_shape() { return map_of(rules_file_section); }

std::string rules_schema() {
  return config::json_schema(rules_file_shape(),
                             {.id = "urn:sluice:rules", .title = "Rules of Sluice"});
}

std::string rules_reference_markdown() { return config::reference_markdown(rules_file_shape()); }

}  // namespace sluice::rules
