#include "rules/formats.h"
#include "rules/rule_grammar.h"

namespace sluice::rules {
namespace {

using config::flag;
using config::list_of;
using config::map_of;
using config::number;
using config::Section;
using config::Shape;
using config::text;

constexpr std::uint64_t kAsnMax = 4'294'967'295;

Shape header_match_shape() {
  return text(kHeaderNameFormat) | list_of(text(kHeaderNameFormat)) | map_of(header_match_section);
}

Shape field_match_shape() {
  return text(kFieldNameFormat) | list_of(text(kFieldNameFormat)) | map_of(field_match_section);
}

Shape value_match_shape() { return text() | map_of(text_match_section); }

}  // namespace

const Section& text_match_section() {
  static const Section kSection{
      .name = "text_match",
      .meaning = "What a text must be.",
      .keys = {{.name = "exact", .shape = text(), .meaning = "This and nothing else."},
               {.name = "prefix", .shape = text(), .meaning = "What it begins with."},
               {.name = "regex",
                .shape = text(kRegexFormat),
                .meaning = "An expression of RE2 that the whole text must match.",
                .examples = {"'v[12]'"}},
               {.name = "present",
                .shape = flag(),
                .meaning = "It only has to be there; always `true`.",
                .examples = {"true"}}},
      .exactly_one = {{"exact", "prefix", "regex", "present"}},
      .hints = {{"contains", "write regex: '.*TEXT.*'"}, {"suffix", "write regex: '.*TEXT'"}}};
  return kSection;
}

const Section& header_match_section() {
  static const Section kSection{
      .name = "header_match",
      .meaning = "Names of headers, in any case, and what each must hold. All of them must.",
      .keys = {},
      .others = config::OtherKeys{.what = "HEADER",
                                  .format = &kHeaderNameFormat,
                                  .shape = value_match_shape(),
                                  .meaning = "The text that it must be, or a map that says more."}};
  return kSection;
}

const Section& field_match_section() {
  static const Section kSection{
      .name = "field_match",
      .meaning =
          "Names of query fields, cookies, attributes or descriptor entries, and what each must "
          "hold. All of them must.",
      .keys = {},
      .others = config::OtherKeys{.what = "FIELD",
                                  .format = &kFieldNameFormat,
                                  .shape = value_match_shape(),
                                  .meaning = "The text that it must be, or a map that says more."}};
  return kSection;
}

const Section& match_section() {
  static const Section kSection{
      .name = "match",
      .meaning =
          "Which requests a rule applies to. All keys must match, and of a list any one item.",
      .keys = {{.name = "method",
                .shape = one_or_list(text(kMethodFormat)),
                .meaning = "The method of the request.",
                .examples = {"[GET, POST]"}},
               {.name = "host",
                .shape = one_or_list(text(kHostFormat)),
                .meaning = "The host without its port; `*.example.com` for all below it.",
                .examples = {"api.example.com"}},
               {.name = "path",
                .shape = one_or_list(text(kPathFormat)),
                .meaning = "A template: `*` and `{name}` stand for one segment, a final `**` for "
                           "whatever follows.",
                .examples = {"/v1/users/{id}", "/v1/**"}},
               {.name = "header",
                .shape = header_match_shape(),
                .meaning = "Headers that must be there, or what they must hold.",
                .examples = {"{x-plan: free}", "{user-agent: {prefix: curl/}}"}},
               {.name = "query",
                .shape = field_match_shape(),
                .meaning = "Query fields that must be there, or what they must hold."},
               {.name = "cookie",
                .shape = field_match_shape(),
                .meaning = "Cookies that must be there, or what they must hold."},
               {.name = "ip",
                .shape = one_or_list(text(kAddressFormat)),
                .meaning = "The address of the client.",
                .examples = {"[10.0.0.0/8, '::1']"}},
               {.name = "country",
                .shape = one_or_list(text(kCountryFormat)),
                .meaning = "The country of that address.",
                .examples = {"[DE, \"NO\"]"}},
               {.name = "asn",
                .shape = one_or_list(number(1, kAsnMax)),
                .meaning = "The autonomous system of that address.",
                .examples = {"64512"}},
               {.name = "tier",
                .shape = one_or_list(text()),
                .meaning = "The tier of the client, as its key or token says."},
               {.name = "tenant",
                .shape = one_or_list(text()),
                .meaning = "The tenant of the client, as its key or token says."},
               {.name = "attribute",
                .shape = field_match_shape(),
                .meaning = "Attributes that the client's API key must have, or what they must "
                           "hold.",
                .examples = {"{plan: gold}"}},
               {.name = "authenticated",
                .shape = flag(),
                .meaning = "Whether the client is authenticated."},
               {.name = "descriptor",
                .shape = field_match_shape(),
                .meaning = "Entries of an Envoy descriptor that must be there, or what they must "
                           "hold.",
                .examples = {"{generic_key: login}"}}},
      .hints = {
          {"client", "write ip, country, asn, tier, tenant, attribute or authenticated in match"},
          {"url", "write 'path', and 'host' if it matters"},
          {"uri", "write 'path', and 'host' if it matters"},
          {"user", "count per user with 'per: user'"}}};
  return kSection;
}

}  // namespace sluice::rules
