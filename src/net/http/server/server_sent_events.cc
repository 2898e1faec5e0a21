#include "net/http/server/server_sent_events.h"

#include <algorithm>
#include <utility>

namespace sluice::net {
namespace {

void put_line(std::string& text, std::string_view field, std::string_view value) {
  text.append(field).append(": ");
  std::ranges::copy_if(value, std::back_inserter(text),
                       [](char c) { return c != '\r' && c != '\n' && c != '\0'; });
  text += '\n';
}

}  // namespace

std::string format_event(const ServerSentEvent& event) {
  std::string text;
  if (!event.id.empty()) put_line(text, "id", event.id);
  if (!event.event.empty()) put_line(text, "event", event.event);
  // A line ends with CR LF, LF or CR.
  std::string_view rest = event.data;
  while (true) {
    const std::size_t end = std::min(rest.find_first_of("\r\n"), rest.size());
    put_line(text, "data", rest.substr(0, end));
    if (end == rest.size()) break;
    rest.remove_prefix(end + (rest.substr(end).starts_with("\r\n") ? 2 : 1));
  }
  return text + "\n";
}

ResponseStream begin_events(Responder responder, Nanos heartbeat_interval) {
  return responder.stream(
      {.status = 200,
       .headers = {{"content-type", "text/event-stream"}, {"cache-control", "no-store"}},
       .body = {}},
      {.heartbeat = ":\n\n", .heartbeat_interval = heartbeat_interval});
}

}  // namespace sluice::net
