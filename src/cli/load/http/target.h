// Where requests go: http://host:port/path as people write it.
#pragma once

#include "net/endpoint.h"
#include <sluice/diagnostic.h>

#include <string>
#include <string_view>

namespace sluice::cli {

struct HttpTarget {
  bool tls = false;
  net::Endpoint endpoint;  // an address or a name, with a port
  std::string host;        // as the Host line says it: without the usual port, if none was given
  std::string path_and_query = "/";

  [[nodiscard]] static Parsed<HttpTarget> parse(std::string_view url);

  // What a certificate has to bear.
  [[nodiscard]] std::string name() const;
};

}  // namespace sluice::cli
