// URLs as people write them: http://127.0.0.1:9090, https://keys.example/jwks.json?v=2.
//
// Strict: no user or password, no fragment, no port 0, nothing but ASCII. A value.
#pragma once

#include "net/endpoint.h"
#include <sluice/diagnostic.h>

#include <string>
#include <string_view>

namespace sluice::net {

struct HttpUrl {
  bool is_tls = false;
  Endpoint endpoint;  // with a port
  std::string host;   // for Host, as written: without a port, if none was given
  std::string path_and_query = "/";

  // `what` is for messages: "'ftp://a' is no URL: ...".
  [[nodiscard]] static Parsed<HttpUrl> parse(std::string_view text, std::string_view what = "URL");
  // A server alone, without a path. Without a scheme http is meant; also unix:/run/server.sock.
  [[nodiscard]] static Parsed<HttpUrl> parse_server(std::string_view text);

  // That a certificate has to bear.
  [[nodiscard]] std::string name() const;
  // Without the path, for messages: http://127.0.0.1:9090.
  [[nodiscard]] std::string server() const;
};

}  // namespace sluice::net
