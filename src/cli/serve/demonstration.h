// What `sluice serve` runs without a file: an echo server, a configuration in front of it, and keys
// that everybody may know.
//
// The configuration is a file in a folder of its own, so that people can look at it, and change it
// while it is in force. The folder goes with the demonstration.
#pragma once

#include "cli/serve/echo_server.h"
#include <sluice/clock.h>
#include <sluice/diagnostic.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace sluice::cli {

class Demonstration {
 public:
  [[nodiscard]] static Parsed<std::unique_ptr<Demonstration>> begin(const Clock& clock);
  Demonstration(const Demonstration&) = delete;
  Demonstration& operator=(const Demonstration&) = delete;
  ~Demonstration();

  [[nodiscard]] std::string file() const { return (folder_ / "sluice.yaml").string(); }

  // What to type, for listeners at these addresses.
  [[nodiscard]] std::string what_to_try(std::string_view gateway, std::string_view admin) const;

 private:
  Demonstration(std::filesystem::path folder, std::unique_ptr<EchoServer> echo) noexcept;

  std::filesystem::path folder_;
  std::unique_ptr<EchoServer> echo_;
};

}  // namespace sluice::cli
