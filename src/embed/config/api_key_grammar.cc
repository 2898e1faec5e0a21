#include "embed/config/api_key_grammar.h"

#include "base/rfc3339.h"
#include "config/formats.h"
#include "config/schema.h"
#include "identity/api_keys.h"
#include "rules/formats.h"

#include <limits>

namespace sluice::embed {

using config::any_list_of;
using config::flag;
using config::Format;
using config::map_of;
using config::mistake_of;
using config::number;
using config::Section;
using config::text;

const Format kHashFormat{"HASH", "^(hmac-)?sha256:[0-9A-Fa-f]{64}$",
                         identity::api_key_hash_mistake};

const Format kInstantFormat{"INSTANT",
                            "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}"
                            "([.][0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$",
                            mistake_of<parse_rfc3339>};

const Section& attributes_section() {
  static const Section kSection{
      .name = "attributes",
      .meaning =
          "Further attributes of the user. Maps may be nested: `plan: {seats: 5}` is "
          "the attribute `plan.seats`.",
      .keys = {},
      .others = config::OtherKeys{.what = "ATTRIBUTE",
                                  .format = &rules::kFieldNameFormat,
                                  .shape = text() | flag() |
                                           number(0, std::numeric_limits<std::uint64_t>::max()) |
                                           map_of(attributes_section),
                                  .meaning = "Its value."}};
  return kSection;
}

const Section& key_section() {
  static const Section kSection{
      .name = "key",
      .meaning = "One API key, known by its hash; `sluice keys create` writes one.",
      .keys = {{.name = "name",
                .shape = text(),
                .meaning = "Unique, and public: appears in metrics and logs, and is what `per: "
                           "api_key` counts by.",
                .required = true,
                .examples = {"acme-production"}},
               {.name = "hash",
                .shape = text(kHashFormat),
                .meaning = "`sha256:` or `hmac-sha256:` and the hash of the key in hexadecimal "
                           "digits; never the key itself.",
                .required = true,
                .examples = {"sha256:"
                             "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}},
               {.name = "user",
                .shape = text(),
                .meaning = "The user that holds it; several keys may belong to one user.",
                .examples = {"acme"}},
               {.name = "tenant",
                .shape = text(),
                .meaning = "The tenant of that user.",
                .examples = {"acme-corp"}},
               {.name = "tier",
                .shape = text(),
                .meaning = "The plan of that user; `tiers` of rules use it.",
                .examples = {"paid"}},
               {.name = "attributes",
                .shape = map_of(attributes_section),
                .meaning = "Further attributes of that user.",
                .examples = {"{plan: {seats: 5}, beta: true}"}},
               {.name = "expires",
                .shape = text(kInstantFormat),
                .meaning = "From this instant on the key is invalid.",
                .examples = {"2030-01-01T00:00:00Z"}}},
      .hints = {{"key", "write its hash instead; 'sluice keys create' makes both"},
                {"secret", "write its hash instead; 'sluice keys create' makes both"}}};
  return kSection;
}

const Section& key_file_section() {
  static const Section kSection{.name = "key_file",
                                .meaning =
                                    "The file that `clients.api_keys.file` names. JSON is "
                                    "read as well, since it is YAML.",
                                .keys = {{.name = "keys",
                                          .shape = any_list_of(map_of(key_section)),
                                          .meaning = "All API keys.",
                                          .required = true}}};
  return kSection;
}

config::Shape key_file_shape() { return map_of(key_file_section); }

std::string key_file_schema() {
  return config::json_schema(key_file_shape(), {.id = "https://sluice.invalid/schema/keys.json",
                                                .title = "API keys of Sluice"});
}

}  // namespace sluice::embed
