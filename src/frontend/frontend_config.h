// The configuration of one front end and the files opened for it: its part of the snapshot that a
// server publishes.
//
// A server keeps these parts side by side without knowing their content: only the front end that
// made a part casts it back. So a new protocol adds no field to the configuration, to the snapshot
// or to the code that carries them from file to worker. Immutable once a server has it.
#pragma once

#include "net/endpoint.h"
#include <sluice/diagnostic.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice::frontend {

struct FrontendConfig {
  std::vector<net::Endpoint> listen;  // in the order of the file; empty: it is off
  std::vector<std::string> files;     // read for it: a change of any is a reload

  virtual ~FrontendConfig() = default;
  // Whether the other configuration's sockets serve this one too. If not, it needs a restart.
  [[nodiscard]] virtual bool listens_like(const FrontendConfig& other) const {
    return listen == other.listen;
  }
  // A warning for the operator before a start.
  [[nodiscard]] virtual std::optional<Diagnostic> start_warning() const { return std::nullopt; }

 protected:
  FrontendConfig() = default;
  FrontendConfig(const FrontendConfig&) = default;
  FrontendConfig(FrontendConfig&&) = default;
  FrontendConfig& operator=(const FrontendConfig&) = default;
  FrontendConfig& operator=(FrontendConfig&&) = default;
};

// In the order in which the server lists its front ends.
using FrontendConfigs = std::vector<std::shared_ptr<const FrontendConfig>>;

}  // namespace sluice::frontend
