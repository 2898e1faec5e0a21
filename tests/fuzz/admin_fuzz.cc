// The admin listener, and clients that do anything.
//
// Inputs are scripts (script.h). The first byte chooses whether a token is needed (1) and whether
// there is room for few connections only (2). Actions are those of players, and these:
//
//   o  another client comes   n  another client is meant   t  time passes
//
// Every answer is one to the next request, nobody without the token learns anything, and nothing is
// left of anybody.

#include "frontend/admin/admin_server.h"
#include "fuzz.h"
#include "messages.h"
#include "player.h"
#include "script.h"
#include <sluice/clock.h>

#include <chrono>
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
using sluice::admin::Access;
using sluice::admin::AdminServer;
using sluice::admin::Request;

constexpr std::string_view kToken = "s3cret";

// What lasts from one input to the next.
struct Stage {
  sluice::ManualClock clock{{.mono = sluice::MonoTime{1h}, .wall_offset = 1'700'000'000s}};
  std::unique_ptr<sluice::net::EventLoop> loop = sluice::net::EventLoop::create(clock).value();
  sluice::admin::Routes routes;

  Stage() {
    routes.add("GET", "/open", Access::open, "",
               [](const Request&) { return sluice::admin::plain("open"); });
    routes.add("GET", "/long", Access::open, "",
               [](const Request&) { return sluice::admin::plain(std::string(20'000, 'x')); });
    routes.add("POST", "/echo", Access::guarded, "", [](const Request& request) {
      return sluice::admin::plain(std::string{request.body});
    });
  }
};

class Play {
 public:
  Play(Stage& stage, std::uint8_t variant)
      : stage_(stage), needs_token_((variant & 1U) != 0), is_crowded_((variant & 2U) != 0) {
    sluice::admin::AdminOptions options;
    options.body_bytes_max = 10'000;
    if (is_crowded_) options.connections_max = 2;
    server_.emplace(*stage.loop, stage.routes, options);
    if (needs_token_) server_->use(std::make_shared<const sluice::admin::Guard>(kToken));
    open();
  }

  void act(char action, std::string_view text) {
    switch (action) {
      case 'o': open(); break;
      case 'n': ++client_; break;
      case 't': stage_.clock.advance(time_of(text)); break;
      default: act_as(client(), kActions.find(action) == kActions.npos ? 'c' : action, text);
    }
    settle();
  }

  void end() {
    for (Player& client : clients_) client.leave();
    settle();
    expect(server_->connections() == 0, "no connection outlives its client");
    server_.reset();
    for (const Player& client : clients_) judge(client);
  }

 private:
  static constexpr std::size_t kClientsMax = 6;

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
      silent = hear_all() ? 0 : silent + 1;
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

  // One answer more than there are requests may tell what is wrong with what came last.
  void judge(const Player& client) const {
    const std::vector<Message> requests = read_requests(client.sent, Reader::lenient);
    std::string_view heard = client.received;
    for (const Message& request : requests) {
      const std::optional<Message> answer = take_answer(heard, request.method);
      if (!answer) return;
      if (answer->status == 200 && request.target.starts_with("/echo"))
        judge_echo(request, *answer);
    }
    if (requests.empty() || requests.back().is_complete) (void)take_answer(heard, {});
    expect(heard.empty(), "a client hears nothing but answers to its requests");
  }
  void judge_echo(const Message& request, const Message& answer) const {
    expect(request.is_complete && request.body.starts_with(answer.body), "a body is what was sent");
    const bool has_token = request.last("authorization").find(kToken) != std::string::npos;
    expect(has_token || !needs_token_, "nobody without the token learns anything");
  }

  Stage& stage_;
  const bool needs_token_;
  const bool is_crowded_;
  std::optional<AdminServer> server_;
  std::vector<Player> clients_;
  std::size_t client_ = 0;
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
