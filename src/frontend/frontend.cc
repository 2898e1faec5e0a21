#include "frontend/frontend.h"

#include "config/formats.h"

#include <utility>

namespace sluice::frontend {

const config::Format kEndpointFormat{"ENDPOINT", "^(unix:.+|.*:[0-9]+)$",
                                     config::mistake_of<net::Endpoint::parse>};

net::Endpoint read_endpoint(const config::Node& node, std::string key, config::NamedFiles& files) {
  net::Endpoint endpoint = net::Endpoint::parse(node.text).value();
  files.add(node, std::move(key), endpoint.text());
  return endpoint;
}

}  // namespace sluice::frontend
