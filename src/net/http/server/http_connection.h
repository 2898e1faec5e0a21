// One client of the server, and the request that it is at.
//
//     handshake -> idle -> headers -> body -> handled -> responding -> idle ...
//                                                     -> streaming -> responding
//
// The headers stay where they were read until the response is written, since views point into
// them; the body is decoded into a text of its own. Only the loop and the server end a connection,
// never a handle. One thread.
#pragma once

#include "net/acceptor.h"
#include "net/event_loop.h"
#include "net/http/body_reader.h"
#include "net/http/http_response.h"
#include "net/http/request_parser.h"
#include "net/http/server/http_request.h"
#include "net/http/server/http_routes.h"
#include "net/http/server/responder.h"
#include "net/intrusive_list.h"
#include "net/stream.h"
#include "net/tls_server.h"
#include <sluice/time.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::net {

class HttpServer;

class HttpConnection : public ListHook {
 public:
  HttpConnection(HttpServer& server, Peer peer);
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;
  ~HttpConnection();

  // False: it is of no use and may be destroyed.
  [[nodiscard]] bool open(FileDescriptor descriptor, std::shared_ptr<const TlsServer> tls);
  // As soon as the request has its response.
  void drain();
  // The server drains, or has come to trust other clients than at the handshake.
  [[nodiscard]] bool is_leaving() const noexcept;

  // When the client last took some bytes of a response, or was given one.
  [[nodiscard]] MonoTime last_progress() const noexcept { return last_progress_; }

 private:
  friend class ResponseHandle;
  friend class ResponseStream;
  friend class Responder;
  enum class Phase : std::uint8_t {
    handshake,
    idle,
    headers,
    body,
    handled,
    responding,  // all of the response is there
    streaming,
    cut,  // its stream was abandoned
  };
  // What is to be done next.
  enum class Step : std::uint8_t { again, wait, gone };

  // Called by handles, which are inert afterwards, except after write_piece.
  void respond(HttpResponse response, bool has_length = true);
  void respond_for_nobody();
  void set_deadline(Nanos after, HttpResponse otherwise);
  [[nodiscard]] bool begin_stream(HttpResponse headers, const StreamOptions& options);
  [[nodiscard]] bool write_piece(std::string_view bytes);
  [[nodiscard]] std::size_t unwritten() const noexcept { return out_.size() - written_; }
  void finish_stream();
  void cut_stream();

  void drive();
  void on_timer();
  void run(Step next);
  [[nodiscard]] Step step();
  [[nodiscard]] Step shake_hands();
  [[nodiscard]] Step wait_for_request();
  [[nodiscard]] Step read_headers();
  [[nodiscard]] Step begin_request(std::size_t head_bytes);
  void describe_request();
  [[nodiscard]] HttpResponse mismatch() const;
  [[nodiscard]] std::optional<HttpResponse> rejection();
  [[nodiscard]] Step read_body();
  [[nodiscard]] Step read_more();
  [[nodiscard]] Step handle();
  [[nodiscard]] Step next_request();
  [[nodiscard]] bool is_gone() const noexcept;
  [[nodiscard]] bool is_outdated() const noexcept;
  [[nodiscard]] const char* lost_trust() const noexcept;

  [[nodiscard]] Step fail(std::uint16_t status, const char* why);
  [[nodiscard]] Step reject(HttpResponse response);
  [[nodiscard]] Step expire();
  void set_response(HttpResponse response, bool has_length = true);
  [[nodiscard]] bool write_headers(const HttpResponse& response, const BodyFraming& framing);
  [[nodiscard]] Step write_response();
  [[nodiscard]] Step write_stream();
  [[nodiscard]] Step beat();
  // Done once nothing is left.
  [[nodiscard]] IoResult write_some();
  void append_piece(std::string_view bytes);
  void note_progress() noexcept;
  [[nodiscard]] bool enter_long_lived() noexcept;
  [[nodiscard]] HttpResponse too_many_long_lived() const;
  void leave_long_lived() noexcept;
  void run_later() noexcept;

  HttpServer& server_;
  const Peer peer_;
  Stream stream_;
  Timer timer_;
  Task next_turn_;
  Phase phase_ = Phase::handshake;
  bool keep_alive_ = true;
  bool is_calling_ = false;     // the handler, which may respond from inside
  bool is_long_lived_ = false;  // and counted as such
  std::uint32_t requests_ = 0;
  MonoTime request_began_;
  MonoTime last_progress_;
  std::string tls_subject_;
  WallTime certificate_until_ = kWallTimeEnd;  // the client's expires; without one, never
  TlsServer::ClientTrust client_trust_{};

  // The request.
  std::unique_ptr<char[]> buffer_;  // null while idle
  std::size_t buffer_bytes_ = 0;
  std::size_t head_end_ = 0;  // 0: not read yet
  std::size_t end_ = 0;       // of the bytes read
  std::array<HeaderView, kHeadersMax> headers_;
  std::array<HeaderView, 16> trailers_;
  RequestParser parser_;
  BodyReader reader_;
  std::size_t body_bytes_max_ = 0;
  std::string body_;
  RouteMatch match_;
  HttpRequest request_;

  // The response.
  ResponseHandle* handle_ = nullptr;         // which points back
  std::unique_ptr<HttpResponse> otherwise_;  // of the deadline; null: 503
  std::string out_;                          // headers, and pieces of streams
  std::string out_body_;                     // behind that
  std::size_t written_ = 0;                  // of both
  StreamOptions stream_options_;
  bool is_chunked_ = false;
  std::size_t unsent_ =
      0;  // at the last heartbeat; 0: all was taken, or something was written since
};

}  // namespace sluice::net
