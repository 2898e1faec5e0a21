// `sluice replay --rules`: a log through a whole configuration, on the log's own time.
#pragma once

#include "cli/exit_code.h"
#include "cli/replay/access_log.h"

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::cli {

struct RulesReplayOptions {
  std::string trace = "-";
  std::string rules;
  std::string diff;                      // another configuration; empty: none
  std::optional<std::uint64_t> changes;  // of --diff, to be shown; 0: all
  std::optional<LogFormat> format;       // absent: by the first line
  bool strict = false;                   // a line that cannot be read is an error
  bool json = false;                     // an object for each request, or for each that changes
};

[[nodiscard]] ExitCode replay_rules(const RulesReplayOptions& options);

}  // namespace sluice::cli
