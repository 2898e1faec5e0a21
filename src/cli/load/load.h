// sluice load: traffic against a limiter, and what came of it.
#pragma once

#include "cli/exit_code.h"
#include "cli/limit_options.h"

#include <optional>
#include <string>

namespace sluice::cli {

struct LoadOptions {
  LimitOptions limit;
  // Retry-until-allowed harness: batches of T requests started at R per second, as T@R,T@R,...
  std::optional<std::string> batches;
  std::optional<std::string> retry;
  // Constant rate instead: every request tries once.
  std::optional<std::string> rate;
  std::optional<std::string> duration;
  std::optional<std::string> keys;
  std::optional<std::string> hold;
  std::optional<std::string> seed;
  bool virtual_time = false;
  bool json = false;
};

inline constexpr const char* kDefaultBatches =
    "10@1,20@2,50@5,100@10,200@20,250@25,500@50,1000@100";

[[nodiscard]] ExitCode load(const LoadOptions& options);

}  // namespace sluice::cli
