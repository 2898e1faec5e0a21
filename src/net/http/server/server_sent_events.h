// Server-sent events, as browsers' EventSource reads them: text/event-stream.
#pragma once

#include "net/http/server/responder.h"
#include <sluice/time.h>

#include <chrono>
#include <string>
#include <string_view>

namespace sluice::net {

struct ServerSentEvent {
  std::string_view event;  // its type; empty: "message"
  std::string_view data;   // any number of lines
  std::string_view id;     // which a client that comes back names in Last-Event-ID; may be empty
};

// The bytes of an event. Line ends and zeros in `event` and `id`, which have no place there, are
// left out.
[[nodiscard]] std::string format_event(const ServerSentEvent& event);

// Begins a stream of events, with comments as heartbeats.
[[nodiscard]] ResponseStream begin_events(Responder responder,
                                          Nanos heartbeat_interval = std::chrono::seconds{15});

}  // namespace sluice::net
