// Receives the outcome of requests and of the servers that they were forwarded to. Metrics and the
// access log are behind it, so that front ends do not depend on them.
#pragma once

#include "frontend/access_log/access_record.h"
#include <sluice/address.h>
#include <sluice/time.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::frontend {

struct ServerPlace {
  std::string_view upstream;
  std::string_view server;           // host:port
  std::optional<IpAddress> address;  // if its name has several
};

// A failure of a server. A stale idle connection is none.
struct ServerFailure {
  ServerPlace place;
  std::string_view what;
  std::string_view reason;  // from the system or OpenSSL; may be empty
};

struct ServerEjection {
  ServerPlace place;
  Nanos lasts{0};
  std::uint32_t failures = 0;  // consecutive, before it
};

// Called by the worker; returns at once.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  // Before the request is settled; views are valid during the call.
  virtual void ended(const AccessRecord& record, Now now) noexcept = 0;
  // For a sample of decisions: the others do without reading the clock twice.
  virtual void decided(Nanos /*took*/) noexcept {}
  // Of the same sample: the request has forwarding headers from an untrusted peer.
  virtual void ignored_forwarding() noexcept {}
  virtual void server_failed(const ServerFailure& /*failure*/, Now /*now*/) noexcept {}
  // Once until it recovers, however often it fails: until a request succeeds there.
  virtual void server_ejected(const ServerEjection& /*ejection*/) noexcept {}
  virtual void server_recovered(const ServerPlace& /*place*/) noexcept {}
};

}  // namespace sluice::frontend
