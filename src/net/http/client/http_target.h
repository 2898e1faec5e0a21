// A server, as people name it: http://127.0.0.1:9090, or unix:/run/sluice/admin.sock.
#pragma once

#include "net/endpoint.h"
#include <sluice/diagnostic.h>

#include <string>
#include <string_view>

namespace sluice::net {

struct HttpTarget {
  Endpoint endpoint;
  std::string host;  // for Host
  std::string text;  // for messages

  // Without a scheme, http is meant; without a port, 80. No path: that is part of a question.
  [[nodiscard]] static Parsed<HttpTarget> parse(std::string_view text);
};

}  // namespace sluice::net
