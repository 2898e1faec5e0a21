// One request of the client, and what becomes of it.
#pragma once

#include "net/callback.h"
#include "net/event_loop.h"
#include "net/http/http_response.h"
#include "net/intrusive_list.h"
#include <sluice/time.h>

#include <tl/expected.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::net {

class ClientConnection;
class ClientPool;
class HttpClient;

// Host and Content-Length are added; a Host among the headers takes the place of the URL's.
struct ClientRequest {
  std::string method = "GET";
  std::string path = "/";  // with the query
  HttpHeaders headers;
  std::string body;
  std::optional<Nanos> timeout;  // else that of the client; for long polls
};

// Why there is no response.
struct HttpFailure {
  enum class Kind : std::uint8_t {
    invalid_request,  // it cannot be written
    overloaded,       // too many requests wait for a connection
    name,             // it cannot be resolved
    connect,
    tls,        // also: the certificate is not trusted
    timeout,    // of the whole request
    closed,     // before the response was complete
    malformed,  // no response of HTTP/1.1
    too_large,
  };
  Kind kind = Kind::closed;
  std::string message;  // begins with the server: "https://a.example: ..."
};

using HttpResult = tl::expected<HttpResponse, HttpFailure>;

// No callback comes once it is gone or cancelled; that takes effect at once, in whatever state
// connection and request are. Callbacks may use it for another request, or end it or the client.
// One thread; not movable.
class HttpCall : ListHook {
 public:
  explicit HttpCall(Callback<const HttpResult&> on_done) noexcept
      : HttpCall(on_done, Callback<const HttpResponse&, std::string_view>{}) {}
  // With a second callback that is given the body as it comes, beside status and headers; the
  // response then has none, and its size no limit. For streams.
  HttpCall(Callback<const HttpResult&> on_done,
           Callback<const HttpResponse&, std::string_view> on_body) noexcept;
  HttpCall(const HttpCall&) = delete;
  HttpCall& operator=(const HttpCall&) = delete;
  ~HttpCall() { cancel(); }

  void cancel() noexcept;
  [[nodiscard]] bool is_waiting() const noexcept { return client_ != nullptr; }

 private:
  friend class ClientConnection;
  friend class ClientPool;
  friend class HttpClient;
  friend class List<HttpCall>;

  void on_failed();
  void on_deadline();
  void detach() noexcept;
  // Last of all: the callback may end this.
  void finish(const HttpResult& result);

  const Callback<const HttpResult&> on_done_;
  const Callback<const HttpResponse&, std::string_view> on_body_;
  HttpClient* client_ = nullptr;            // null: no request is in flight
  ClientPool* pool_ = nullptr;              // where it waits, or its connection is; null: it failed
  ClientConnection* connection_ = nullptr;  // null: it waits for one
  Timer deadline_;
  Task report_;
  HttpFailure failure_;  // to be reported

  std::string method_;
  std::string bytes_;  // of the request
  Nanos timeout_{0};
};

}  // namespace sluice::net
