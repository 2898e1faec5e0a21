#include "rules/formats.h"
#include "rules/rule_grammar.h"
#include "rules/words.h"
#include <sluice/core/compiled_limit.h>

namespace sluice::rules {
namespace {

using config::list_of;
using config::map_of;
using config::number;
using config::Section;
using config::Shape;
using config::text;
using config::word;

}  // namespace

Shape limits_shape() {
  const Shape one = text(kRateFormat) | number(1, core::kAmountMax) | map_of(limit_section);
  return one | list_of(one);
}

const Section& limit_section() {
  static const Section kSection{
      .name = "limit",
      .meaning = "One limit in full. It takes none of the rule's own options for limits.",
      .keys =
          {{.name = "rate",
            .shape = text(kRateFormat),
            .meaning = "An amount and a period; `day`, `week`, `month` and `year` without a number "
                       "are calendar windows.",
            .examples = {"100/1s", "1/90s", "1000/month"}},
           {.name = "max_concurrent",
            .shape = number(1, core::kAmountMax),
            .meaning = "Requests in flight, instead of a rate.",
            .examples = {"20"},
            .formerly = {"concurrent"}},
           {.name = "slot_ttl",
            .shape = text(kDurationFormat),
            .meaning = "A slot that is not given back, because its holder crashed, is free again "
                       "after one to two of these.",
            .fallback = "60s",
            .formerly = {"ttl"}},
           {.name = "burst",
            .shape = number(1, core::kAmountMax),
            .meaning = "How much may come at once, for the buckets.",
            .examples = {"20"}},
           {.name = "algorithm",
            .shape = word(words_of(kAlgorithmWords)),
            .meaning = "How it is counted.",
            .fallback = "token_bucket"},
           {.name = "refill",
            .shape = word(words_of(kRefillWords)),
            .meaning = "How a token bucket fills again.",
            .fallback = "continuous"},
           {.name = "align",
            .shape = word(words_of(kAlignWords)),
            .meaning = "Where a fixed window begins.",
            .fallback = "epoch"},
           {.name = "timezone",
            .shape = text(kTimezoneFormat),
            .meaning = "The time zone of a calendar window.",
            .fallback = "UTC",
            .examples = {"Europe/Berlin"}},
           {.name = "bucket_width",
            .shape = text(kDurationFormat),
            .meaning = "The width of a sub-window of `sliding_buckets`; by default an eighth of "
                       "the period.",
            .examples = {"1s"},
            .formerly = {"granularity"}},
           {.name = "name",
            .shape = text(kNameFormat),
            .meaning = "Tells limits of one rule apart; a named limit keeps its counters when its "
                       "period is edited."},
           {.name = "from",
            .shape = map_of(from_section),
            .meaning = "Takes the amount from the request; where that has none, `rate` or "
                       "`max_concurrent` holds.",
            .examples = {"{claim: requests_per_second, max: 1000}"}}},
      .exactly_one = {{"rate", "max_concurrent"}},
      .needs = {{"slot_ttl", "max_concurrent"}},
      .hints = {{"zone", kZoneRemedy},
                {"nodelay", kNoDelayRemedy},
                {"limit", "write rate: 100/1s"},
                {"amount", "write rate: 100/1s"},
                {"requests", "write rate: 100/1s"},
                {"period", "write rate: 100/1s"},
                {"unit", "write rate: 100/1s"},
                {"requests_per_unit", "write rate: 100/1s"},
                {"queue", "write action: {queue: {max_delay: 2s}} in the rule"},
                {"count_denied", "write 'count_rejected' in the rule"},
                {"count_rejected", "write 'count_rejected' in the rule"}}};
  return kSection;
}

const Section& from_section() {
  static const Section kSection{.name = "from",
                                .meaning = "Where an amount comes from.",
                                .keys = {{.name = "claim",
                                          .shape = text(kFieldNameFormat),
                                          .meaning = "A claim of a verified token."},
                                         {.name = "attribute",
                                          .shape = text(kFieldNameFormat),
                                          .meaning = "An attribute of the client's API key."},
                                         {.name = "header",
                                          .shape = text(kHeaderNameFormat),
                                          .meaning = "A header that a trusted proxy sets."},
                                         {.name = "max",
                                          .shape = number(1, core::kAmountMax),
                                          .meaning = "The largest amount that is accepted.",
                                          .required = true,
                                          .examples = {"1000"}}},
                                .exactly_one = {{"claim", "attribute", "header"}}};
  return kSection;
}

const Section& tiers_section() {
  static const Section kSection{
      .name = "tiers",
      .meaning = "Other limits for some clients; `limit` applies to all others.",
      .keys = {{.name = "by",
                .shape = text(kTierByFormat),
                .meaning =
                    "An attribute that the client cannot choose: `client.tier`, "
                    "`client.tenant`, `client.country`, `client.asn`, `client.authenticated`, "
                    "`claim.NAME` or `attribute.NAME` of an API key.",
                .required = true,
                .examples = {"client.tier"}},
               {.name = "values",
                .shape = map_of(tier_values_section),
                .meaning = "What the attribute can be, and the limits that replace all of `limit`.",
                .required = true,
                .examples = {"{free: 10/1s, paid: [1000/1s, 50000/1h]}"}}},
      .hints = {{"free", "write tiers: {by: client.tier, values: {free: 10/1s}}"}}};
  return kSection;
}

const Section& tier_values_section() {
  static const Section kSection{
      .name = "tier_values",
      .meaning = "Values of the attribute.",
      .keys = {},
      .others = config::OtherKeys{.what = "VALUE",
                                  .format = &kFieldNameFormat,
                                  .shape = limits_shape(),
                                  .meaning = "Limits, written as in `limit`."}};
  return kSection;
}

}  // namespace sluice::rules
