#include "net/http/client/blocking_client.h"

#include <utility>

namespace sluice::net {

Parsed<std::unique_ptr<BlockingHttpClient>> BlockingHttpClient::create(
    const Clock& clock, const HttpClientOptions& options) {
  auto loop = EventLoop::create(clock);
  if (!loop) return tl::unexpected(std::move(loop.error()));
  return std::unique_ptr<BlockingHttpClient>{new BlockingHttpClient{*std::move(loop), options}};
}

BlockingHttpClient::BlockingHttpClient(std::unique_ptr<EventLoop> loop,
                                       const HttpClientOptions& options)
    : loop_(std::move(loop)),
      pause_(Callback<>::to<&BlockingHttpClient::on_pause_over>(*this)),
      client_(*loop_, resolver_, options),
      call_(Callback<const HttpResult&>::to<&BlockingHttpClient::on_done>(*this)) {}

HttpResult BlockingHttpClient::fetch(const HttpOrigin& origin, const ClientRequest& request) {
  client_.send(origin, request, call_);
  loop_->run();
  return std::move(result_);
}

void BlockingHttpClient::on_done(const HttpResult& result) {
  result_ = result;
  loop_->stop();
}

void BlockingHttpClient::pause(Nanos time) {
  loop_->set(pause_, time);
  loop_->run();
}

}  // namespace sluice::net
