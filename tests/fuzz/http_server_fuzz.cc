// The HTTP server, clients that do anything, and handlers that respond whenever they like.
//
// Inputs are scripts (script.h). The first byte chooses whether there is room for few connections
// (1) and for one long-lived response only (2), and whether connections are closed behind client
// errors (4). Actions are those of players, and these:
//
//   o  another client comes   n  another client is meant   t  time passes   d  the server drains
//   r  the oldest request that waits gets its response   g  it is given up
//   w  a piece for every stream   f  the oldest stream is finished   a  it is abandoned
//
// Every response is one to the next request, whatever handlers do and in whatever order; a handle
// that was not used up hears of its end exactly once; nothing is left of anybody.

#include "net/http/server/http_server.h"

#include "fuzz.h"
#include "messages.h"
#include "net/http/server/server_sent_events.h"
#include "player.h"
#include "script.h"
#include <sluice/clock.h>

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace sluice::fuzz;
using sluice::Nanos;
using sluice::net::HttpRequest;
using sluice::net::Responder;
using sluice::net::ResponseStream;
using sluice::net::text_response;

// What lasts from one input to the next.
struct Stage {
  sluice::ManualClock clock{{.mono = sluice::MonoTime{1h}, .wall_offset = 1'700'000'000s}};
  std::unique_ptr<sluice::net::EventLoop> loop = sluice::net::EventLoop::create(clock).value();
};

class Play {
 public:
  Play(Stage& stage, std::uint8_t variant) : stage_(stage) {
    add_routes();
    sluice::net::HttpServerOptions options;
    options.body_bytes_max = 10'000;
    options.stream_bytes_max = 20'000;
    options.close_after_client_error = (variant & 4U) != 0;
    if ((variant & 1U) != 0) options.connections_max = 2;
    if ((variant & 2U) != 0) options.long_lived_max = 1;
    server_.emplace(*stage.loop, routes_, std::move(options));
    open();
  }

  void act(char action, std::string_view text) {
    switch (action) {
      case 'o': open(); break;
      case 'n': ++client_; break;
      case 't': stage_.clock.advance(time_of(text)); break;
      case 'd': server_->drain(); break;
      case 'r': respond(text); break;
      case 'g': drop_first(kept_); break;
      case 'w': write(text); break;
      case 'f': finish(); break;
      case 'a': drop_first(streams_); break;
      default: act_as(client(), kActions.find(action) == kActions.npos ? 'c' : action, text);
    }
    settle();
  }

  void end() {
    for (Player& client : clients_) client.leave();
    settle();
    expect(server_->connections() == 0, "no connection outlives its client");
    expect(server_->long_lived() == 0, "nor does what it waited for");
    for (const auto& one : kept_) expect(!one->is_open(), "a responder without a client is inert");
    for (const auto& one : streams_) expect(!one->is_open(), "a stream without a client is inert");
    kept_.clear();
    streams_.clear();
    server_.reset();
    expect(lost_ + used_ == made_, "a handle is used up or hears of its end, once");
    for (const Player& client : clients_) judge(client);
  }

 private:
  static constexpr std::size_t kClientsMax = 6;

  void add_routes() {
    routes_.add("GET", "/short", [](const HttpRequest&) { return text_response(200, "short"); });
    routes_.add("GET", "/long",
                [](const HttpRequest&) { return text_response(200, std::string(20'000, 'x')); });
    routes_.add("GET", "/of/{name}", [](const HttpRequest& request) {
      return text_response(200, std::string{request.parameter("name")});
    });
    routes_.add("POST", "/echo", [](const HttpRequest& request) {
      return text_response(200, std::string{request.body});
    });
    const auto keep = [this](const HttpRequest&, Responder responder) {
      add(std::move(responder));
    };
    routes_.add("POST", "/later", keep);
    routes_.add("GET", "/poll", keep, {.response_timeout = 30s, .long_lived = true});
    routes_.add("GET", "/events",
                [this](const HttpRequest&, Responder responder) {
                  ResponseStream stream = begin_events(std::move(responder), 1s);
                  if (stream.is_open()) add(std::move(stream));
                },
                {.long_lived = true});
  }

  template <class Handle>
  void add(Handle handle) {
    ++made_;
    auto& list = list_of(handle);
    list.push_back(std::make_unique<Handle>(std::move(handle)));
    list.back()->on_gone([this] { ++lost_; });
  }
  std::deque<std::unique_ptr<Responder>>& list_of(const Responder&) { return kept_; }
  std::deque<std::unique_ptr<ResponseStream>>& list_of(const ResponseStream&) { return streams_; }

  template <class Handles>
  void drop_first(Handles& handles) {
    if (handles.empty()) return;
    if (handles.front()->is_open()) ++used_;
    handles.pop_front();
  }
  // The body says to which request.
  void respond(std::string_view text) {
    if (kept_.empty()) return;
    Responder& responder = *kept_.front();
    if (responder.is_open()) {
      responder.send({.status = 200,
                      .headers = {{"x-text", std::string{text}}},  // which may be no header
                      .body = std::string{responder.request().body}});
      ++used_;
    }
    kept_.pop_front();
  }
  void write(std::string_view text) {
    for (const auto& stream : streams_) (void)stream->write(text);
  }
  void finish() {
    if (streams_.empty()) return;
    if (streams_.front()->is_open()) ++used_;
    streams_.front()->finish();
    streams_.pop_front();
  }

  void open() {
    if (clients_.size() == kClientsMax) return;
    Connected made = connect_player();
    client_ = clients_.size();
    clients_.push_back(std::move(made.player));
    server_->accept({.descriptor = std::move(made.other), .peer = {}});
  }
  [[nodiscard]] Player& client() { return clients_[client_ % clients_.size()]; }

  void settle() {
    for (int silent = 0; silent < 2;) {
      stage_.loop->turn(Nanos{0});
      silent = hear_all() || stage_.loop->has_tasks() ? 0 : silent + 1;
    }
  }
  [[nodiscard]] bool hear_all() {
    bool heard = false;
    for (Player& client : clients_) {
      const bool listens = client.is_open() && client.listens && !client.heard_end;
      if (listens && client.hear()) heard = true;
    }
    return heard;
  }

  // One response more than there are requests may tell what is wrong with what came last.
  static void judge(const Player& client) {
    const std::vector<Message> requests = read_requests(client.sent, Reader::lenient);
    std::string_view heard = client.received;
    for (const Message& request : requests) {
      const std::optional<Message> response = take_answer(heard, request.method);
      if (!response) return;
      const bool is_echoed = request.target.starts_with("/echo") || request.target == "/later";
      if (response->status == 200 && is_echoed) {
        expect(request.is_complete && request.body.starts_with(response->body),
               "a response is one to its request");
      }
      if (!response->is_complete) return;  // cut, or not read to its end
    }
    if (requests.empty() || requests.back().is_complete) (void)take_answer(heard, {});
    expect(heard.empty(), "a client hears nothing but responses to its requests");
  }

  Stage& stage_;
  sluice::net::HttpRoutes routes_;
  std::optional<sluice::net::HttpServer> server_;
  std::vector<Player> clients_;
  std::size_t client_ = 0;
  std::deque<std::unique_ptr<Responder>> kept_;
  std::deque<std::unique_ptr<ResponseStream>> streams_;
  std::size_t made_ = 0;
  std::size_t used_ = 0;
  std::size_t lost_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Stage stage;
  const std::string script{data, data + size};
  const int before = free_descriptor();
  {
    Play play{stage, first_byte(script)};
    perform(script, [&](char action, std::string_view text) { play.act(action, text); });
    play.end();
  }
  expect(free_descriptor() == before, "every descriptor is closed");
  return 0;
}
