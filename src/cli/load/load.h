// sluice load: traffic against a limiter, and what came of it.
#pragma once

#include "cli/exit_code.h"
#include "cli/limit_options.h"

#include <optional>
#include <string>
#include <vector>

namespace sluice::cli {

// Of runs against a URL.
struct HttpLoadOptions {
  std::optional<std::string> connections;
  std::optional<std::string> threads;
  std::optional<std::string> timeout;
  std::optional<std::string> clients;
  std::optional<std::string> spread;
  std::optional<std::string> keys_file;
  std::optional<std::string> method;
  std::vector<std::string> headers;
  std::optional<std::string> body;
  std::optional<std::string> body_size;
  std::optional<std::string> ca_file;
  std::optional<std::string> expect;
  std::optional<std::string> svg;
  bool insecure = false;
  bool closed = false;
};

struct LoadOptions {
  std::optional<std::string> url;  // nothing: a limiter in this process
  HttpLoadOptions http;
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
