// `sluice keys`: API keys in a file, made and listed without a server.
#pragma once

#include "cli/exit_code.h"

#include <optional>
#include <string>
#include <vector>

namespace sluice::cli {

struct CreateKeyOptions {
  std::string name;
  std::string user;
  std::string tenant;
  std::string tier;
  std::vector<std::string> attributes;  // "name=value"
  std::optional<std::string> expires;   // RFC 3339, or how long from now
  std::optional<std::string> file;      // to add it to; none: only print it
  std::string secret_file;              // hash it under this secret
  bool json = false;
};

struct ListKeysOptions {
  std::string file;
  bool json = false;
};

[[nodiscard]] ExitCode create_key(const CreateKeyOptions& options);
[[nodiscard]] ExitCode list_keys(const ListKeysOptions& options);

}  // namespace sluice::cli
