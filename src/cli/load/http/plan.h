// What to do to a server: everything that the command line says, checked and understood.
#pragma once

#include "cli/load/http/client_spread.h"
#include "cli/load/http/expectation.h"
#include "cli/load/http/request_template.h"
#include "cli/load/load.h"
#include "cli/load/schedule.h"
#include "net/http/client/http_url.h"
#include "net/socket_address.h"
#include "net/tls_client.h"
#include <sluice/diagnostic.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace sluice::cli {

// Immutable once made.
struct HttpPlan {
  std::string url;
  net::HttpUrl target;
  std::shared_ptr<const net::TlsClient> tls;  // null: plain
  std::string method;
  RequestTemplate request;
  std::optional<Schedule> schedule;  // nothing: closed loop
  Nanos duration{0};
  Nanos timeout{0};
  std::size_t connections = 1;  // at least one per thread
  std::size_t threads = 1;
  ClientShares clients;
  std::uint64_t seed = 1;
  std::optional<Expectation> expect;

  // That the schedule starts; of a closed loop, 0.
  [[nodiscard]] std::uint64_t requests() const noexcept {
    return schedule ? schedule->starts_within(duration) : 0;
  }
};

[[nodiscard]] Parsed<HttpPlan> make_http_plan(const LoadOptions& options);

}  // namespace sluice::cli
