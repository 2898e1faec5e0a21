#include "net/http/client/http_call.h"

#include "net/http/client/client_pool.h"

#include <fmt/format.h>

#include <utility>

namespace sluice::net {

HttpCall::HttpCall(Callback<const HttpResult&> on_done,
                   Callback<const HttpResponse&, std::string_view> on_body) noexcept
    : on_done_(on_done),
      on_body_(on_body),
      deadline_(Callback<>::to<&HttpCall::on_deadline>(*this)),
      report_(Callback<>::to<&HttpCall::on_failed>(*this)) {}

void HttpCall::detach() noexcept {
  deadline_.cancel();
  report_.cancel();
  unlink();
  client_ = nullptr;
  pool_ = nullptr;
  connection_ = nullptr;
}

void HttpCall::cancel() noexcept {
  ClientPool* const pool = pool_;
  ClientConnection* const connection = connection_;
  detach();
  if (pool != nullptr) pool->give_up(connection);
}

void HttpCall::on_failed() { finish(tl::unexpected(std::move(failure_))); }

void HttpCall::on_deadline() {
  const char* const what = connection_ == nullptr ? "no connection was free" : "no whole response";
  const HttpResult late =
      tl::unexpected(HttpFailure{.kind = HttpFailure::Kind::timeout,
                                 .message = fmt::format("{}: {} within {} ms", pool_->server(),
                                                        what, timeout_.count() / 1'000'000)});
  cancel();
  finish(late);
}

void HttpCall::finish(const HttpResult& result) {
  detach();
  const Callback<const HttpResult&> tell = on_done_;
  tell(result);
}

}  // namespace sluice::net
