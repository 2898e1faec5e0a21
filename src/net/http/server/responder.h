// The handles by which a handler responds: at once, later, or little by little.
//
// Each stands for the one request its connection is at. A handle is inert from the moment the
// response is sent, the client is gone, the deadline has passed or the server gives the connection
// up; calls on an inert one do nothing. Move-only. A handle belongs to the thread of the server's
// loop and may outlive both request and server. Nothing is written from inside these calls: the
// loop does it at the end of the turn, so that handles may be used anywhere.
#pragma once

#include "net/http/http_response.h"
#include "net/http/server/http_request.h"
#include <sluice/time.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace sluice::net {

class HttpConnection;

// What both handles have in common.
class ResponseHandle {
 public:
  ResponseHandle(const ResponseHandle&) = delete;
  ResponseHandle& operator=(const ResponseHandle&) = delete;

  [[nodiscard]] bool is_open() const noexcept { return connection_ != nullptr; }
  // Called once, when the handle becomes inert by anything but its owner. The function may end
  // this handle, and use others, but not end the server. A client that has only closed its side of
  // the connection may be waiting for its response: it counts as gone where that is long-lived.
  void on_gone(std::function<void()> function) { on_gone_ = std::move(function); }

 protected:
  ResponseHandle() noexcept = default;
  explicit ResponseHandle(HttpConnection& connection) noexcept;
  ResponseHandle(ResponseHandle&& other) noexcept;
  ResponseHandle& operator=(ResponseHandle&& other) noexcept;
  ~ResponseHandle() = default;

  // The connection and this forget each other. Null if it is inert.
  HttpConnection* detach() noexcept;

  HttpConnection* connection_ = nullptr;  // which points back

 private:
  friend class HttpConnection;
  // By the connection; nothing of this is touched behind the call.
  void lose();

  std::function<void()> on_gone_;
};

struct StreamOptions {
  // Written whenever nothing else was for so long: keeps proxies from closing the connection, and
  // finds out whether the client is still there. Empty: never.
  std::string heartbeat;
  Nanos heartbeat_interval{std::chrono::seconds{15}};
};

// A response in pieces, chunked, for as long as its owner likes. To end it without finish() tells
// the client that it is incomplete.
class ResponseStream : public ResponseHandle {
 public:
  ResponseStream() noexcept = default;  // inert
  ResponseStream(const ResponseStream&) = delete;
  ResponseStream& operator=(const ResponseStream&) = delete;
  ResponseStream(ResponseStream&&) noexcept = default;
  ResponseStream& operator=(ResponseStream&& other) noexcept;
  ~ResponseStream();

  // False: the client reads too slowly, the server's `stream_bytes_max` is exceeded, and nothing of
  // this was taken. Later it may be; on_drained tells when.
  [[nodiscard]] bool write(std::string_view bytes);
  // Bytes that the client has not taken, with their framing.
  [[nodiscard]] std::size_t buffered() const noexcept;
  // Called every time the last of them is taken.
  void on_drained(std::function<void()> function) { on_drained_ = std::move(function); }
  // The response is complete.
  void finish();

 private:
  friend class HttpConnection;
  friend class Responder;
  using ResponseHandle::ResponseHandle;
  void abandon() noexcept;

  std::function<void()> on_drained_;
};

// The right, and the duty, to respond to one request. Ended without a response, it sends a 500.
class Responder : public ResponseHandle {
 public:
  Responder() noexcept = default;  // inert
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;
  Responder(Responder&&) noexcept = default;
  Responder& operator=(Responder&& other) noexcept;
  ~Responder();

  // Valid while this is open.
  [[nodiscard]] const HttpRequest& request() const noexcept;

  void send(HttpResponse response);
  // Unless a response was sent by then, or when the server drains, the client gets this one; the
  // default is 503 after the timeout of the route. For long polls: 304 after 30 seconds.
  void set_deadline(Nanos after, HttpResponse otherwise);
  // Sends status and headers; the body follows piece by piece, unless the method is HEAD: then the
  // stream is inert. Also if the server has as many long-lived responses as it may: the client
  // gets a 503.
  [[nodiscard]] ResponseStream stream(HttpResponse headers, const StreamOptions& options = {});

 private:
  friend class HttpConnection;
  using ResponseHandle::ResponseHandle;
  void abandon();
};

}  // namespace sluice::net
