// A client's connection, and the request that is under way on it.
//
//     (announced) -> handshake -> idle -> head -> (waiting) -> (held) -> connecting -> relaying -+
//                                  ^          +-----------------------> answering ---------------+
//                                  +-------------------------------------------------------------+
//
// drive() goes as far as it can and is called again whenever something becomes possible: on the
// client's stream, on the upstream's, by a timer, by the store. But others have their turn as well:
// behind each request, and behind so much of a body, it goes on at the end of the next turn of the
// loop. So a client that sends requests without waiting for answers, or downloads without end, is
// served no faster than those who ask one by one. An idle connection holds no buffer and nothing of
// a request: those are taken from the gateway when a request begins.
//
// connection.cc has the life and the phases, connection_arrival.cc what comes before the first
// request, connection_request.cc the way from a head to a decision, connection_forward.cc the head
// that goes on to a server, connection_upstream.cc the way to it and back, connection_upload.cc the
// request on that way, connection_answer.cc what is said to the client, connection_report.cc what
// rules and the log hear of it. One thread.
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

// How many proxies a request may still pass; nothing: it does not say, or no number.
[[nodiscard]] std::optional<std::uint64_t> max_forwards(
    std::span<const HeaderView> headers) noexcept;

// Who was asking, for the log: copied, since what it came from is gone when that is written.
struct LoggedClient {
  IpAddress address;
  std::uint32_t asn = 0;
  std::array<char, 2> country{};
  // One behind the other, each shortened to kNameBytes: user, api_key, tenant, tier. There is room
  // for subjects of tokens that are URLs: these differ only at their end.
  static constexpr std::size_t kNameBytes = 255;
  std::array<char, 4 * kNameBytes> names;
  std::array<std::uint8_t, 4> sizes{};

  void copy(const identity::Identity& client) noexcept;
  [[nodiscard]] std::string_view name(std::size_t number) const noexcept {
    return {names.data() + number * kNameBytes, sizes[number]};
  }
};

// All that one request needs. Used again and again.
struct Exchange {
  Exchange(const net::HeadLimits& head, std::size_t headers)
      : request_headers(headers), request(request_headers, head), response(response_headers) {}

  std::uint32_t generation = 0;  // of the options that its limits are from
  std::vector<HeaderView> request_headers;
  std::array<HeaderView, net::kHeadersMax> response_headers;
  std::array<HeaderView, 64> request_trailers;
  std::array<HeaderView, 64> response_trailers;
  net::RequestParser request;
  net::ResponseParser response;
  engine::Op op;
  bool decided = false;       // the op is to be settled
  bool body_skipped = false;  // it was not passed on, and is no more in the way
  bool in_flight = false;     // and counted as such
  bool held = false;          // the same
  BodyPump upload;
  BodyPump download;
  Window from_server;
  std::unique_ptr<UpstreamConnection> upstream;
  BufferPool::Buffer server_buffer;
  BufferPool::Buffer request_buffer;  // the head on its way to the server
  BufferPool::Buffer answer_buffer;   // the head, or all of an answer, on its way to the client
  std::shared_ptr<Routing> routing;   // that held when the headers were complete; null before
  UpstreamGroup* group = nullptr;
  bool has_two_routes = false;  // by the two readings of its path
  UpstreamServer* tried = nullptr;
  UpstreamAddresses::Shared failed_at;  // of that server; null: nothing has failed
  MonoTime sought_by;                   // the server, where its name was not known yet
  std::uint32_t attempts = 0;
  std::uint32_t retries = 0;
  bool wants_fresh = false;       // a connection that nobody used before
  bool heard_server = false;      // on this connection: bytes of an answer
  bool reports_at_end = false;    // how it ended comes behind the body: rules wait for it
  std::string_view request_head;  // as it goes to the server
  bool head_received = false;     // of the final answer
  bool upload_failed = false;     // the server takes no more; maybe it has answered
  bool broken_off = false;        // by the server, in the middle of its answer
  bool through_trusted = false;
  bool asked_if_there = false;  // a client that has sent the end of its side
  bool client_ended = false;    // its side, before the answer began
  std::uint64_t client_hash = 0;
  LoggedClient who;
  std::array<char, LoggedClient::kNameBytes + 8> who_text;  // for partitions, where they are told

  // For the record.
  Now began;
  MonoTime asked_at;
  Nanos upstream_time{0};
  std::uint16_t status = 0;
  std::uint64_t answer_bytes = 0;  // of a body of our own
  const char* fault = "";
  net::IoFailure failure;  // of the last server that was tried
  std::array<char, 64> request_id;
  std::size_t request_id_bytes = 0;
  frontend::TraceParentText trace;  // of a trace that began here
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

  // False: it is of no use and may be destroyed.
  [[nodiscard]] bool open(FileDescriptor descriptor);

  // Ends with the answer to the request under way, or to one that comes within kFarewell.
  void drain();
  // Its client was authenticated under another trust than the gateway's now. It ends with the
  // response to the request in flight; without one, at once.
  [[nodiscard]] bool is_outdated() const noexcept;
  [[nodiscard]] const net::Peer& peer() const noexcept { return peer_; }
  [[nodiscard]] bool is_counted() const noexcept { return counted_; }
  // Without a request in flight: since when, and whether it may be closed at once.
  [[nodiscard]] MonoTime idle_since() const noexcept { return idle_since_; }
  // A request may have come that the loop has not told of yet: closing would lose it.
  [[nodiscard]] bool is_evictable() const noexcept {
    return phase_ <= Phase::idle && !driving_ && !has_input() && stream_.is_silent();
  }
  // The client reads the end; the connection may be destroyed then.
  void say_farewell() noexcept { stream_.finish_writing(); }

  // A client that was told nothing of the end may be sending its next request just now: closing at
  // once would lose it.
  static constexpr Nanos kFarewell{std::chrono::seconds{1}};

 private:
  enum class Phase : std::uint8_t {
    announced,  // by a load balancer, or about to be
    handshake,
    idle,
    head,
    waiting,
    held,
    seeking,  // the server, by its name
    connecting,
    relaying,
    answering
  };
  // What is to be done next. `later`: there is more to do, but it is the others' turn.
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
  [[nodiscard]] bool say_continue() noexcept;  // false: not all of it went out
  [[nodiscard]] bool client_left_its_answer() const noexcept;
  void become_idle() noexcept;
  void begin_exchange();
  [[nodiscard]] Step end_exchange();
  [[nodiscard]] bool is_leaving() const noexcept;
  void give_back_exchange();
  [[nodiscard]] Step close();   // after all that was to be said
  [[nodiscard]] Step linger();  // the same, while something may still come
  [[nodiscard]] Step cut();     // in the middle of something

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
  // A failure of a server at one of its addresses, with which it may be ejected.
  void blame(UpstreamServer& server, UpstreamAddress& address);
  void blame_upstream();  // where this request is
  [[nodiscard]] static frontend::ServerPlace place_of(const UpstreamServer& server,
                                                      const UpstreamAddress& address) noexcept;
  [[nodiscard]] Step relay();
  [[nodiscard]] Step read_answer();
  [[nodiscard]] Step begin_answer();
  [[nodiscard]] Step pass_interim();
  [[nodiscard]] Step relay_answer();
  void release_upstream(bool reusable);

  // connection_upload.cc
  // What the server's side of a request has done so far. Any change of it means that the server's
  // system has taken bytes, or that ours had room for more.
  struct Taken {
    std::uint64_t sent = 0;  // to our system's buffer
    std::size_t unsent = 0;  // and still there: not acknowledged by the server's system

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

  // Who passed a message on, and by which version it came to us.
  [[nodiscard]] std::string_view via(const net::MessageHead& message) const noexcept;
  void arm(Nanos after) noexcept;
  [[nodiscard]] const GatewayOptions& options() const noexcept;
  [[nodiscard]] Now now() const noexcept;
  [[nodiscard]] const net::RequestHead& head() const noexcept { return exchange_->request.head(); }

  Gateway& gateway_;
  net::Peer peer_;
  std::array<char, 46> peer_bytes_{};
  std::string_view peer_text_;
  std::array<char, 5> port_bytes_{};           // where the client connected to
  std::string_view port_text_;                 // empty: a Unix socket
  std::string tls_subject_;                    // of the client's verified certificate; empty: none
  WallTime certificate_until_ = kWallTimeEnd;  // that certificate expires; without one, never
  net::Stream stream_;
  net::Timer timer_;          // of the phase
  net::Timer renewal_;        // of leases on requests in flight, where rules give some
  net::Timer request_timer_;  // of a request, where its upstream limits it
  net::Task rest_;            // of the work, in the next turn
  Phase phase_;
  MonoTime idle_since_;
  bool counted_ = false;  // among the connections of its address
  bool keep_alive_ = true;
  bool driving_ = false;  // calls from inside drive() have nothing to add
  bool again_ = false;
  std::uint32_t requests_ = 0;
  std::uint32_t trust_ = 0;    // of the gateway, when the handshake began
  BufferPool::Buffer buffer_;  // none while idle
  Window in_;
  std::unique_ptr<Exchange> exchange_;
  Awaited awaited_ = Awaited::body;
  std::uint64_t body_seen_ = 0;  // bytes of the body at the beginning of the interval
  MonoTime body_at_;             // the last of them came
  Taken taken_;                  // when the timer last looked
  MonoTime taken_at_;            // and when that last changed
  std::size_t unsent_seen_ = 0;  // bytes that the client had to take when the timer last looked
  // What of the answer had moved when its timer was set.
  static constexpr std::uint64_t kNothingSeen = ~std::uint64_t{0};
  std::uint64_t answer_seen_ = kNothingSeen;
  std::string_view answer_;       // of our own, what is left to write
  std::string_view answer_body_;  // ... and behind that, where it had no room in the same buffer
};

}  // namespace sluice::gateway
