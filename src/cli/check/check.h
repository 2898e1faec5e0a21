// `sluice check`: is this file good, and what does each of its rules promise?
#pragma once

#include "cli/exit_code.h"

#include <string>

namespace sluice::cli {

struct CheckOptions {
  std::string file;
  bool json = false;
  bool offline = false;            // do not open the files that it names
  bool print_schema = false;       // of the file's grammar, instead
  bool print_keys_schema = false;  // of a key file's
  bool print_reference = false;    // every key of it, in Markdown
};

[[nodiscard]] ExitCode check(const CheckOptions& options);

}  // namespace sluice::cli
