// One connection of the load generator, with at most one request on it.
//
// A connection that is closed opens with the next request, whose time that takes; so every request
// has one ending, and a server that hangs up shows. No buffers: answers are read into the bench's,
// and only what is incomplete is kept. One thread; not movable.
#pragma once

#include "cli/load/http/request_template.h"
#include "cli/load/http/tally.h"
#include "net/http/body_reader.h"
#include "net/http/response_parser.h"
#include "net/intrusive_list.h"
#include "net/stream.h"
#include "net/tls_client.h"
#include <sluice/clock.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

class LoadConnection;

// What the connections of one thread share: where they go, and room to work in.
struct LoadBench {
  net::EventLoop& loop;
  net::SocketAddress address;
  std::shared_ptr<const net::TlsClient> tls;  // null: plain
  std::string host;                           // that a certificate has to bear
  std::string method;
  const RequestTemplate& request;
  Nanos timeout;
  net::Callback<const net::ResponseHead&> on_head;  // views last for this call
  net::Callback<LoadConnection&, Ending> on_end;    // the connection may be used again

  std::vector<char> buffer = std::vector<char>(65536);
  std::string rendered;
  std::array<HeaderView, net::kHeadersMax> headers{};
  std::array<HeaderView, 16> trailers{};
  net::ResponseParser parser{headers};
};

struct LoadRequest {
  MonoTime due;
  std::uint64_t client = 0;
};

class LoadConnection : public net::ListHook {
 public:
  explicit LoadConnection(LoadBench& bench) noexcept;

  // Ahead of the first request. If it fails, that one will find out.
  void open();
  [[nodiscard]] bool is_opening() const noexcept { return state_ == State::opening; }
  void stop_opening() noexcept;

  // Only while there is none. The ending may come from inside this call.
  void send(const LoadRequest& request, MonoTime now);
  [[nodiscard]] bool is_under_way() const noexcept {
    return state_ == State::connecting || state_ == State::busy;
  }
  // As if it had never been; no ending comes.
  void abandon() noexcept;

  [[nodiscard]] const LoadRequest& request() const noexcept { return request_; }
  [[nodiscard]] MonoTime sent() const noexcept { return sent_; }

  // For the owner of idle connections.
  MonoTime free_since;

 private:
  enum class State : std::uint8_t {
    closed,
    opening,     // without a request
    idle,        // open, without a request
    connecting,  // for its request
    busy,        // the request is being written or answered
  };

  void on_ready();
  void hear_unasked();
  void on_timeout();
  void connect();
  void go_on_connecting();
  void fail_to_connect();
  void write_request();
  [[nodiscard]] std::size_t write_some(std::string_view bytes);
  void go_on();
  void read_answer();
  [[nodiscard]] bool take(std::string_view bytes);
  [[nodiscard]] bool take_head(std::string_view& bytes);
  [[nodiscard]] bool take_body(std::string_view bytes);
  void end_of_input();
  void finish();
  void fail(LoadError error);
  void close() noexcept;

  LoadBench& bench_;
  net::Stream stream_;
  net::Timer timer_;
  State state_ = State::closed;
  LoadRequest request_;
  MonoTime sent_;

  std::string unsent_;        // of the request
  std::string pending_;       // of the response: received, but incomplete
  std::uint16_t status_ = 0;  // of the response with complete headers; 0: none
  bool keep_alive_ = false;
  net::BodyReader body_;
};

}  // namespace sluice::cli
