// Hears how requests ended, and what became of the servers that they were passed on to: metrics and
// the access log are behind it, so that front ends do not know them.
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
  std::optional<IpAddress> address;  // which of several that its name has
};

// Of a server that was asked for the first time on a connection, and failed.
struct ServerFailure {
  ServerPlace place;
  std::string_view what;
  std::string_view reason;  // of the system or of OpenSSL; may be empty
};

struct ServerEjection {
  ServerPlace place;
  Nanos lasts{0};
  std::uint32_t failures = 0;  // in a row, before it
};

// Called by the worker; returns at once.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  // Before the request is settled; views are good during the call.
  virtual void ended(const AccessRecord& record, Now now) noexcept = 0;
  // Of some decisions: all others do without asking the clock twice.
  virtual void decided(Nanos /*took*/) noexcept {}
  // One such request in as many says for whom it was forwarded, and its peer is not believed.
  virtual void ignored_forwarding() noexcept {}
  virtual void server_failed(const ServerFailure& /*failure*/, Now /*now*/) noexcept {}
  // Once, however often it fails again, until it recovers: until a request succeeds there.
  virtual void server_ejected(const ServerEjection& /*ejection*/) noexcept {}
  virtual void server_recovered(const ServerPlace& /*place*/) noexcept {}
};

}  // namespace sluice::frontend
