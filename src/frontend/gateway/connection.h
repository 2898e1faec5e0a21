// A client's connection, and its request in flight.
//
//     (announced) -> handshake -> idle -> head -> (waiting) -> (held) -> connecting -> relaying -+
//                                  ^          +-----------------------> answering ---------------+
//                                  +-------------------------------------------------------------+
//
// drive() runs as far as it can. It is called again by events on the client's stream or the
// upstream's, by a timer, and by the store. After each request, and after a fixed amount of a body,
// it yields and continues at the end of the next turn of the loop. So a client that pipelines
// requests or downloads without end is served no faster than clients with one request at a time. An
// idle connection has no buffer and no Exchange: the gateway provides both when a request begins.
//
// connection.cc has the lifetime and the phases, connection_arrival.cc the part before the first
// request, connection_request.cc the path from headers to decision, connection_forward.cc the
// forwarded headers, connection_upstream.cc the upstream side, connection_upload.cc the request on
// its way there, connection_answer.cc the gateway's own responses, connection_report.cc the reports
// to rules and log. One thread.
#pragma once

#include "engine/decider.h"
#include "engine/op.h"
#include "frontend/access_log/trace_context.h"
#include "frontend/gateway/body_pump.h"
#include "frontend/gateway/buffer_pool.h"
#include "frontend/gateway/routing.h"
#include "frontend/gateway/upstream.h"
#include "frontend/observer.h"
#include "frontend/responses/answers.h"
#include "net/acceptor.h"
#include "net/event_loop.h"
#include "net/http/request_parser.h"
#include "net/http/response_parser.h"
#include "net/intrusive_list.h"
#include "net/stream.h"
#include <sluice/request.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::gateway {

class Gateway;

[[nodiscard]] constexpr std::uint64_t bytes_within(Nanos time, std::uint64_t per_second) noexcept {
  return static_cast<std::uint64_t>(time / std::chrono::milliseconds{1}) * per_second / 1000;
}

// How many more proxies may forward a request. Empty: no Max-Forwards, or not a number.
[[nodiscard]] std::optional<std::uint64_t> max_forwards(
    std::span<const HeaderView> headers) noexcept;

// The client, for the log. Copied, since the identity is gone when the line is written.
struct LoggedClient {
  IpAddress address;
  std::uint32_t asn = 0;
  std::array<char, 2> country{};
  // In sequence, each cut to kNameBytes: user, api_key, tenant, tier. Long enough for token
  // subjects that are URLs, which differ only at their end.
  static constexpr std::size_t kNameBytes = 255;
  std::array<char, 4 * kNameBytes> names;
  std::array<std::uint8_t, 4> sizes{};

  void copy(const identity::Identity& client) noexcept;
  [[nodiscard]] std::string_view name(std::size_t number) const noexcept {
    return {names.data() + number * kNameBytes, sizes[number]};
  }
};

// All state of one request. Reused.
struct Exchange {
  Exchange(const net::HeadLimits& head, std::size_t headers)
      : request_headers(headers), request(request_headers, head), response(response_headers) {}

  std::uint32_t generation = 0;  // of the options that define its limits
  std::vector<HeaderView> request_headers;
  std::array<HeaderView, net::kHeadersMax> response_headers;
  std::array<HeaderView, 64> request_trailers;
  std::array<HeaderView, 64> response_trailers;
  net::RequestParser request;
  net::ResponseParser response;
  engine::Op op;
  bool decided = false;       // the op has to be settled
  bool body_skipped = false;  // not forwarded, and removed from the buffer
  bool in_flight = false;     // counted in Gateway::in_flight_
  bool held = false;          // counted in Gateway::queued_
  BodyPump upload;
  BodyPump download;
  Window from_server;
  std::unique_ptr<UpstreamConnection> upstream;
  BufferPool::Buffer server_buffer;
  BufferPool::Buffer request_buffer;  // the headers for the server
  BufferPool::Buffer answer_buffer;   // the headers, or a whole response, for the client
  std::shared_ptr<Routing> routing;   // in force when the headers were complete; null before
  UpstreamGroup* group = nullptr;
  bool has_two_routes = false;  // the two readings of its path have different routes
  UpstreamServer* tried = nullptr;
  UpstreamAddresses::Shared failed_at;  // address of that server; null: no failure
  MonoTime sought_by;                   // deadline of the server's lookup
  std::uint32_t attempts = 0;
  std::uint32_t retries = 0;
  bool wants_fresh = false;       // wants a connection without earlier requests
  bool heard_server = false;      // response bytes came on this connection
  bool reports_at_end = false;    // the outcome follows the body: rules wait for it
  std::string_view request_head;  // as sent to the server
  bool head_received = false;     // of the final response
  bool upload_failed = false;     // the server reads no more; a response may have come
  bool broken_off = false;        // by the server, within its response
  bool through_trusted = false;
  bool asked_if_there = false;  // the half-closed client was probed by a 100
  bool client_ended = false;    // half-closed before the response began
  std::uint64_t client_hash = 0;
  LoggedClient who;
  std::array<char, LoggedClient::kNameBytes + 8> who_text;  // for partition keys, where enabled

  // For the record.
  Now began;
  MonoTime asked_at;
  Nanos upstream_time{0};
  std::uint16_t status = 0;
  std::uint64_t answer_bytes = 0;  // of a body of the gateway
  const char* fault = "";
  net::IoFailure failure;  // of the last server tried
  std::array<char, 64> request_id;
  std::size_t request_id_bytes = 0;
  frontend::TraceParentText trace;  // of a trace generated here
  bool has_trace = false;

  [[nodiscard]] std::string_view trace_id() const noexcept {
    return has_trace ? std::string_view{trace.data() + 3, 32} : std::string_view{};
  }
};

class Connection : public net::ListHook {
 public:
  Connection(Gateway& gateway, net::Peer peer, const Entrance& entrance);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  // False: the connection is unusable and may be destroyed.
  [[nodiscard]] bool open(FileDescriptor descriptor);

  // Closes after the response to the request in flight, or to a request within kFarewell.
  void drain();
  // The gateway's client trust has changed since this client was authenticated. The connection
  // closes after the response to the request in flight; without one, at once.
  [[nodiscard]] bool is_outdated() const noexcept;
  [[nodiscard]] const net::Peer& peer() const noexcept { return peer_; }
  [[nodiscard]] bool is_counted() const noexcept { return counted_; }
  // Without a request in flight: since when, and whether it may be closed at once.
  [[nodiscard]] MonoTime idle_since() const noexcept { return idle_since_; }
  // A request may have arrived that the loop has not reported yet: closing would lose it.
  [[nodiscard]] bool is_evictable() const noexcept {
    return phase_ <= Phase::idle && !driving_ && !has_input() && stream_.is_silent();
  }
  // The client reads the end of the stream; then the connection may be destroyed.
  void say_farewell() noexcept { stream_.finish_writing(); }

  // A client without notice of the close may be sending its next request: closing at once would
  // lose it.
  static constexpr Nanos kFarewell{std::chrono::seconds{1}};

 private:
  enum class Phase : std::uint8_t {
    announced,  // a PROXY protocol header is expected
    handshake,
    idle,
    head,
    waiting,
    held,
    seeking,  // the server's name is being looked up
    connecting,
    relaying,
    answering
  };
  // The next action. `later`: more work is left, but other connections come first.
  enum class Step : std::uint8_t { again, wait, later, gone };

  void drive();
  void on_stream() { drive(); }
  void on_upstream() { drive(); }
  void on_timer();
  void on_renewal();
  void renew_in_time();
  void on_request_timeout();
  static void on_decided(engine::Op& op) noexcept;
  [[nodiscard]] Step step();
  void run(Step next);
  [[nodiscard]] Step timed_out();

  // connection_arrival.cc
  [[nodiscard]] bool start_tls();
  [[nodiscard]] Step hear_announcement();
  [[nodiscard]] Step shake_hands();
  [[nodiscard]] bool is_plain_http(const net::IoResult& handshake) const noexcept;
  [[nodiscard]] Step explain_tls();
  void set_peer(net::Peer peer) noexcept;
  void set_port(std::uint16_t port) noexcept;

  // connection.cc
  [[nodiscard]] Step wait_for_request();
  [[nodiscard]] bool has_input() const noexcept;
  [[nodiscard]] Step read_head();
  [[nodiscard]] Step end_of_requests(const net::IoResult& result);
  [[nodiscard]] Step watch_client();
  [[nodiscard]] Step client_gone();
  [[nodiscard]] bool client_left() noexcept;
  [[nodiscard]] bool say_continue() noexcept;  // false: not all of it was written
  [[nodiscard]] bool client_left_its_answer() const noexcept;
  void become_idle() noexcept;
  void begin_exchange();
  [[nodiscard]] Step end_exchange();
  [[nodiscard]] bool is_leaving() const noexcept;
  void give_back_exchange();
  [[nodiscard]] Step close();   // after the complete response
  [[nodiscard]] Step linger();  // the same, while input may still come
  [[nodiscard]] Step cut();     // resets, in the middle of a message

  // connection_request.cc
  [[nodiscard]] Step begin_request();
  [[nodiscard]] engine::Decided decide(const RequestView& request);
  void route(const engine::ResolvedRequest& request);
  [[nodiscard]] Step after_decision();
  void leave_hold() noexcept;
  [[nodiscard]] Step pass_on();
  [[nodiscard]] Step check_request();
  void choose_request_id();

  // connection_forward.cc
  [[nodiscard]] bool write_request_head();
  void write_client(net::HeadWriter& writer, const ProxyWords& trusted);
  [[nodiscard]] std::string_view forwarded_for(bool continued);
  [[nodiscard]] std::string_view forwarded(bool continued);
  [[nodiscard]] TextWriter joined(std::string_view name);
  [[nodiscard]] std::string_view scheme() const noexcept;
  void start_trace(net::RequestHead& passed);

  // connection_upstream.cc
  [[nodiscard]] Step connect();
  [[nodiscard]] Step seek();
  [[nodiscard]] Step connect_to(UpstreamServer& server);
  [[nodiscard]] Step not_begun(UpstreamServer& server, LocalExhaustion lack);
  [[nodiscard]] Step establish();
  [[nodiscard]] Step server_failed(std::uint16_t status, const char* why, bool was_reached);
  [[nodiscard]] UpstreamGroup::Tried tried() const noexcept;
  [[nodiscard]] Step took_too_long();
  [[nodiscard]] Step broke_off(const char* why);
  void complain(const char* what);
  // Counts a failure of a server at one of its addresses; this may eject the address.
  void blame(UpstreamServer& server, UpstreamAddress& address);
  void blame_upstream();  // the one of this request
  [[nodiscard]] static frontend::ServerPlace place_of(const UpstreamServer& server,
                                                      const UpstreamAddress& address) noexcept;
  [[nodiscard]] Step relay();
  [[nodiscard]] Step read_answer();
  [[nodiscard]] Step begin_answer();
  [[nodiscard]] Step pass_interim();
  [[nodiscard]] Step relay_answer();
  void release_upstream(bool reusable);

  // connection_upload.cc
  // How much of a request the server's side has taken so far. Any change means that the server's
  // system has taken bytes, or that our system had room for more.
  struct Taken {
    std::uint64_t sent = 0;  // to our system's buffer
    std::size_t unsent = 0;  // still there: not acknowledged by the server's system

    friend bool operator==(const Taken&, const Taken&) = default;
  };
  // What an upload waits for.
  enum class Awaited : std::uint8_t { body, room, answer };
  static constexpr int kLooksPerTimeout = 4;
  void begin_upload();
  [[nodiscard]] Step relay_request();
  void watch_upload();
  void await_body() noexcept;
  void await_room() noexcept;
  void await_answer() noexcept;
  [[nodiscard]] Taken taken_by_server() const noexcept;
  [[nodiscard]] Step upload_timed_out();
  [[nodiscard]] Step body_is_late();
  [[nodiscard]] Step look_what_is_taken();

  // connection_report.cc
  void report_head();
  void report_trailers();
  [[nodiscard]] engine::ResponseView own_answer() const noexcept;
  void tell_observer();

  // connection_answer.cc
  [[nodiscard]] Step refuse();
  [[nodiscard]] Step answer(std::uint16_t status, const char* why);
  [[nodiscard]] Step answer_options();
  template <class Write>
  [[nodiscard]] Step answer_with(std::uint16_t status, Write&& write);
  [[nodiscard]] frontend::Asking asking() noexcept;
  [[nodiscard]] std::string_view client_text() noexcept;
  [[nodiscard]] Step write_answer();
  [[nodiscard]] Step not_taken();
  void wait_for_client() noexcept;
  [[nodiscard]] bool skip_body() noexcept;

  // The Via element of a forwarded message, with the version in which it arrived.
  [[nodiscard]] std::string_view via(const net::MessageHead& message) const noexcept;
  void arm(Nanos after) noexcept;
  [[nodiscard]] const GatewayOptions& options() const noexcept;
  [[nodiscard]] Now now() const noexcept;
  [[nodiscard]] const net::RequestHead& head() const noexcept { return exchange_->request.head(); }

  Gateway& gateway_;
  net::Peer peer_;
  std::array<char, 46> peer_bytes_{};
  std::string_view peer_text_;
  std::array<char, 5> port_bytes_{};           // that the client connected to
  std::string_view port_text_;                 // empty: a Unix socket
  std::string tls_subject_;                    // of the client's verified certificate; empty: none
  WallTime certificate_until_ = kWallTimeEnd;  // when that certificate expires; without one, never
  net::Stream stream_;
  net::Timer timer_;          // of the phase
  net::Timer renewal_;        // of leases of requests in flight, if rules grant any
  net::Timer request_timer_;  // of a request, if its upstream has a limit
  net::Task rest_;            // continues the work in the next turn
  Phase phase_;
  MonoTime idle_since_;
  bool counted_ = false;  // in the connection count of its address
  bool keep_alive_ = true;
  bool driving_ = false;  // calls from inside drive() only set again_
  bool again_ = false;
  std::uint32_t requests_ = 0;
  std::uint32_t trust_ = 0;    // the gateway's, when the handshake began
  BufferPool::Buffer buffer_;  // null while idle
  Window in_;
  std::unique_ptr<Exchange> exchange_;
  Awaited awaited_ = Awaited::body;
  std::uint64_t body_seen_ = 0;  // bytes of the body when the interval began
  MonoTime body_at_;             // when the last of them came
  Taken taken_;                  // as of the timer's last look
  MonoTime taken_at_;            // and when that last changed
  std::size_t unsent_seen_ = 0;  // bytes that the client had not taken at the timer's last look
  // How much of the response had moved when its timer was set.
  static constexpr std::uint64_t kNothingSeen = ~std::uint64_t{0};
  std::uint64_t answer_seen_ = kNothingSeen;
  std::string_view answer_;       // of the gateway, still to be written
  std::string_view answer_body_;  // follows, if it had no room in the same buffer
};

}  // namespace sluice::gateway
