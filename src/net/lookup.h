// Names of hosts to addresses, as the machine is set up to find them. Blocks, maybe for seconds.
#pragma once

#include <sluice/address.h>
#include <sluice/diagnostic.h>

#include <string>
#include <vector>

namespace sluice::net {

using Addresses = std::vector<IpAddress>;

// At least one, in the order of preference, each once.
[[nodiscard]] Parsed<Addresses> look_up(const std::string& name);

}  // namespace sluice::net
