// Whether an address could be listened on, found without listening.
#pragma once

#include "net/endpoint.h"
#include <sluice/diagnostic.h>

#include <optional>

namespace sluice::net {

// Why listen_on() would fail at this moment.
struct CannotListen {
  bool is_in_use = false;
  bool is_not_permitted = false;  // to this process; another user may be
  Diagnostic what;
};
// Nothing if it would not. No connection is taken from a server that listens there, and the file of
// a Unix socket is neither made nor removed.
[[nodiscard]] std::optional<CannotListen> why_not_listen(const Endpoint& endpoint);

}  // namespace sluice::net
