// `sluice check`: is this file good, and what does each of its rules promise?
#pragma once

#include "cli/exit_code.h"

#include <string>

namespace sluice::cli {

struct CheckOptions {
  std::string file;
  bool json = false;
  bool offline = false;            // look at nothing else than the file
  bool start = false;              // whether a server could start now
  bool print_schema = false;       // of the file's grammar, instead
  bool print_keys_schema = false;  // of a key file's
  bool print_reference = false;    // every key of it, in Markdown
};

[[nodiscard]] ExitCode check(const CheckOptions& options);

}  // namespace sluice::cli
