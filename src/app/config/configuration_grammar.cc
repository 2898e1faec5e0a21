#include "app/config/configuration_grammar.h"

#include "app/config/configuration.h"
#include "app/config/serve_configuration.h"
#include "config/reference.h"
#include "config/schema.h"
#include "embed/config/api_key_grammar.h"
#include "embed/config/engine_grammar.h"

namespace sluice::app {

using config::map_of;
using config::Section;

const Section& configuration_section() {
  static const Section kSection = embed::configuration_section_with(serve_keys());
  return kSection;
}

config::Shape configuration_shape() { return map_of(configuration_section); }

std::string configuration_schema() {
  return config::json_schema(configuration_shape(),
                             {.id = "https://sluice.invalid/schema/configuration.json",
                              .title = "Configuration of Sluice"});
}

std::string configuration_reference() {
  return "# Configuration\n\nEvery key of the file. `sluice check --print-reference` prints this "
         "page; [rules.md](rules.md) is the\nplace to begin.\n\n" +
         config::reference_markdown(configuration_shape()) +
         "\n# API keys\n\nEvery key of the file that `clients.api_keys.file` names. `sluice keys` "
         "writes and lists it;\nsee [identity.md](identity.md#api-keys).\n\n" +
         config::reference_markdown(embed::key_file_shape());
}

}  // namespace sluice::app
