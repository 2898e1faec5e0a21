// The fields that the access log writes and hides, by the configuration in force.
#pragma once

#include "app/config/configuration.h"
#include "frontend/access_log/access_record.h"

namespace sluice::app {

// Logs the names that rules use, so that `sluice replay --rules` can decide by the log as the
// gateway decided by the request; secrets include the places of API keys. The form is the default
// one.
[[nodiscard]] frontend::AccessFormat::Options logged_fields(const Configuration& configuration);

}  // namespace sluice::app
