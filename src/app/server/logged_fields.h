// What the access log writes of requests, and what it hides, as the configuration in force has it.
#pragma once

#include "app/config/configuration.h"
#include "frontend/access_log/access_record.h"

namespace sluice::app {

// Names are those that rules ask for, so that `sluice replay --rules` can decide by the log what
// the gateway decided by the request; secrets are also where clients put their API keys. The form
// is the default one.
[[nodiscard]] frontend::AccessFormat::Options logged_fields(const Configuration& configuration);

}  // namespace sluice::app
