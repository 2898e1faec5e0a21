// The client for commands, which have nothing else to do: it waits for the response.
//
// Connections stay open from one request to the next. One thread.
#pragma once

#include "net/event_loop.h"
#include "net/http/client/http_client.h"
#include "net/resolver.h"
#include <sluice/clock.h>
#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <memory>

namespace sluice::net {

class BlockingHttpClient {
 public:
  // The clock outlives it.
  [[nodiscard]] static Parsed<std::unique_ptr<BlockingHttpClient>> create(
      const Clock& clock, const HttpClientOptions& options = {});
  BlockingHttpClient(const BlockingHttpClient&) = delete;
  BlockingHttpClient& operator=(const BlockingHttpClient&) = delete;
  ~BlockingHttpClient() = default;

  [[nodiscard]] HttpResult fetch(const HttpOrigin& origin, const ClientRequest& request);
  void pause(Nanos time);

 private:
  BlockingHttpClient(std::unique_ptr<EventLoop> loop, const HttpClientOptions& options);
  void on_done(const HttpResult& result);
  void on_pause_over() { loop_->stop(); }

  std::unique_ptr<EventLoop> loop_;
  Resolver resolver_;
  Timer pause_;
  HttpClient client_;
  HttpCall call_;
  HttpResult result_;
};

}  // namespace sluice::net
