// One connection of the client, with at most one request on it.
//
//     starting -> looking up -> connecting -> exchanging -> idle -> starting -> exchanging ...
//
// A response is read while the request is still being written: a server may reject an upload. One
// thread; its pool owns it.
#pragma once

#include "net/event_loop.h"
#include "net/http/body_reader.h"
#include "net/http/client/http_call.h"
#include "net/http/http_response.h"
#include "net/http/response_parser.h"
#include "net/intrusive_list.h"
#include "net/resolver.h"
#include "net/stream.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::net {

class ClientConnection : public ListHook {
 public:
  explicit ClientConnection(ClientPool& pool);
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;
  ~ClientConnection();

  // Only while it has no request. Everything else happens later, by the loop.
  void start(HttpCall& call);
  // The request is of no more interest; this is about to end.
  void forget_call() noexcept { call_ = nullptr; }
  // Behind a response, for the next request.
  void wait_idle(Nanos time) noexcept;
  // Nothing came since then, not even the end.
  [[nodiscard]] bool is_usable() const noexcept { return stream_ && stream_->is_silent(); }

 private:
  enum class Phase : std::uint8_t { starting, looking_up, connecting, exchanging, idle };
  // What is to be done next; `over` means that nothing of this may be touched.
  enum class Step : std::uint8_t { again, wait, over };

  void begin();
  void look_up();
  void on_resolved(const Resolution& found);
  void connect_to_next();
  void begin_exchange();
  void on_stream();
  void on_timer();
  [[nodiscard]] Step step();
  [[nodiscard]] Step establish();
  [[nodiscard]] Step exchange();
  [[nodiscard]] Step hear_unasked();
  [[nodiscard]] bool write_request();
  [[nodiscard]] Step read_response();
  [[nodiscard]] Step take_headers();
  void take_head();
  [[nodiscard]] Step take_body();
  [[nodiscard]] bool deliver(std::string_view piece);
  [[nodiscard]] bool is_quiet() noexcept;
  Step complete();
  // The connection is; there may be another address, or another attempt.
  Step broken(HttpFailure::Kind kind, const std::string& why);
  Step broken(const IoResult& result);
  Step fail(HttpFailure::Kind kind, const std::string& why);

  ClientPool& pool_;
  Task begin_;
  Timer timer_;  // of connecting, and of idleness
  Task next_turn_;
  Lookup lookup_;
  std::optional<Stream> stream_;
  std::vector<SocketAddress> addresses_;  // not yet tried
  Phase phase_ = Phase::starting;
  bool is_reused_ = false;  // it has carried a response before
  bool* ended_ = nullptr;   // set when this ends inside a callback

  HttpCall* call_ = nullptr;
  std::size_t sent_ = 0;  // of the request
  bool is_write_broken_ = false;
  std::string in_;  // came, but makes sense only with more behind it
  bool has_headers_ = false;
  bool has_heard_ = false;  // anything of the response
  std::array<HeaderView, kHeadersMax> headers_;
  std::array<HeaderView, 64> trailers_;
  ResponseParser parser_;
  BodyReader reader_;
  bool keep_alive_ = false;
  HttpResponse response_;
};

}  // namespace sluice::net
