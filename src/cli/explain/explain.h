// `sluice explain`: one request through a configuration, step by step.
#pragma once

#include "app/config/configuration.h"
#include "cli/exit_code.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::cli {

struct ExplainOptions {
  std::string request;                                // "GET /v1/x", or the path alone
  std::vector<std::vector<std::string>> descriptors;  // "key=value"; alone: for Envoy's trees
  std::string config;                                 // file
  std::vector<std::string> headers;                   // "name: value"
  std::string ip = "127.0.0.1";
  std::string host = "localhost";
  std::string domain;
  std::uint32_t repeat = 1;  // decide it so many times and explain the last
  bool json = false;
};

[[nodiscard]] ExitCode explain(const ExplainOptions& options);

// The part of it that is for descriptors without a request.
[[nodiscard]] ExitCode explain_descriptors(const ExplainOptions& options,
                                           const app::Configuration& configuration);

}  // namespace sluice::cli
