// The upstream of the demonstration: responds with what it was asked.
//
// One thread of its own, from its making to its end; on a free port of the loopback.
#pragma once

#include "net/endpoint.h"
#include <sluice/clock.h>
#include <sluice/diagnostic.h>

#include <memory>

namespace sluice::cli {

class EchoServer {
 public:
  [[nodiscard]] static Parsed<std::unique_ptr<EchoServer>> start(const Clock& clock);
  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;
  ~EchoServer();

  [[nodiscard]] const net::Endpoint& endpoint() const noexcept;

 private:
  class Inside;
  explicit EchoServer(std::unique_ptr<Inside> inside) noexcept;
  std::unique_ptr<Inside> inside_;
};

}  // namespace sluice::cli
