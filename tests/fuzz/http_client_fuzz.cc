// The HTTP client, and servers that do anything.
//
// Inputs are scripts (script.h). The first byte chooses whether there is one connection only (1),
// and whether bodies are small (2). Actions are those of players, who are the servers here, and
// these:
//
//   g h p  a request by GET, HEAD or POST    s  one whose body is handed on as it comes
//   x  the oldest request is cancelled       n  another server is meant      t  time passes
//
// (To stop reading, which is 'p' for players, is 'z' here.) A request that succeeds has the
// response that a reader of the wire finds in its place; every request ends, once; nothing is left
// of it.

#include "net/http/client/http_client.h"

#include "fuzz.h"
#include "messages.h"
#include "net/listen.h"
#include "player.h"
#include "script.h"
#include "support/temp_folder.h"
#include <sluice/clock.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace sluice::fuzz;
using sluice::FileDescriptor;
using sluice::Nanos;
using sluice::net::Callback;
using sluice::net::HttpCall;
using sluice::net::HttpResponse;
using sluice::net::HttpResult;

// What lasts from one input to the next.
struct Stage {
  sluice::testing::TempFolder folder;
  sluice::ManualClock clock{{.mono = sluice::MonoTime{1h}, .wall_offset = 1'700'000'000s}};
  std::unique_ptr<sluice::net::EventLoop> loop = sluice::net::EventLoop::create(clock).value();
  sluice::net::Resolver resolver;
  sluice::net::Listener listener =
      sluice::net::listen_on(sluice::net::Endpoint::of_path(folder.file("socket"))).value();
  sluice::net::HttpOrigin origin{
      .url = sluice::net::HttpUrl::parse_server("unix:" + folder.file("socket")).value()};
};

// One request; its path is its number.
class Asked {
 public:
  Asked(std::string method, bool is_streaming) : method_(std::move(method)) {
    using Done = Callback<const HttpResult&>;
    using Body = Callback<const HttpResponse&, std::string_view>;
    call.emplace(Done::to<&Asked::on_done>(*this),
                 is_streaming ? Body::to<&Asked::on_body>(*this) : Body{});
  }
  std::optional<HttpCall> call;
  std::optional<HttpResult> result;
  std::string streamed;

  [[nodiscard]] const std::string& method() const noexcept { return method_; }
  [[nodiscard]] std::string body() const { return streamed + (*result)->body; }

 private:
  void on_done(const HttpResult& done) {
    expect(!result.has_value(), "a request ends once");
    result = done;
  }
  void on_body(const HttpResponse& headers, std::string_view piece) {
    expect(!result.has_value() && headers.status >= 200, "a body comes behind its headers");
    streamed += piece;
  }
  std::string method_;
};

class Play {
 public:
  Play(Stage& stage, std::uint8_t variant) : stage_(stage) {
    sluice::net::HttpClientOptions options;
    options.request_timeout = 10s;
    options.connections_max = (variant & 1U) != 0 ? 1 : 3;
    options.waiting_max = 4;
    if ((variant & 2U) != 0) options.body_bytes_max = 100;
    client_.emplace(*stage.loop, stage.resolver, options);
  }

  void act(char action, std::string_view text) {
    switch (action) {
      case 'g': ask("GET", false); break;
      case 'h': ask("HEAD", false); break;
      case 's': ask("GET", true); break;
      case 'p': ask("POST", false); break;
      case 'x': cancel(); break;
      case 'n': ++server_; break;
      case 't': stage_.clock.advance(time_of(text)); break;
      default: act_as_server(action, text);
    }
    settle();
  }

  void end() {
    stage_.clock.advance(61s);
    settle();
    for (const auto& one : asked_) {
      const bool was_cancelled = !one->call.has_value();
      expect(was_cancelled || one->result.has_value(), "every request ends");
    }
    client_.reset();
    for (Player& server : servers_) server.leave();
    judge();
  }

 private:
  static constexpr std::size_t kRequestsMax = 20;

  void ask(const std::string& method, bool is_streaming) {
    if (asked_.size() == kRequestsMax) return;
    const std::string path = "/" + std::to_string(asked_.size());
    asked_.push_back(std::make_unique<Asked>(method, is_streaming));
    client_->send(stage_.origin, {.method = method, .path = path}, *asked_.back()->call);
  }
  void cancel() {
    for (const auto& one : asked_) {
      if (one->call && !one->result) return one->call.reset();
    }
  }
  void act_as_server(char action, std::string_view text) {
    if (servers_.empty()) return;
    const char meant = action == 'z' ? 'p' : action;
    act_as(servers_[server_ % servers_.size()], kActions.find(meant) == kActions.npos ? 'c' : meant,
           text);
  }

  void settle() {
    for (int silent = 0; silent < 2;) {
      stage_.loop->turn(Nanos{0});
      const bool is_busy = accept_all() || hear_all() || stage_.loop->has_tasks();
      silent = is_busy ? 0 : silent + 1;
    }
  }
  [[nodiscard]] bool accept_all() {
    bool came = false;
    while (true) {
      FileDescriptor descriptor{
          ::accept4(stage_.listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
      if (!descriptor) return came;
      came = true;
      servers_.emplace_back().descriptor = std::move(descriptor);
    }
  }
  [[nodiscard]] bool hear_all() {
    bool heard = false;
    for (Player& server : servers_) {
      const bool listens = server.is_open() && server.listens && !server.heard_end;
      if (listens && server.hear()) heard = true;
    }
    return heard;
  }

  // What the wire says about a request, on whatever connections it was sent.
  void judge() const {
    std::vector<std::vector<Message>> found(asked_.size());
    for (const Player& server : servers_) {
      const std::vector<Message> requests = read_requests(server.received, Reader::strict);
      std::vector<std::string> methods;
      for (const Message& one : requests) methods.push_back(one.method);
      const std::vector<Message> responses = read_answers(server.sent, methods);
      for (std::size_t i = 0; i < responses.size(); ++i) {
        const std::size_t number = std::stoul(requests[i].target.substr(1));
        expect(number < asked_.size(), "a server hears requests that were made");
        expect(requests[i].method == asked_[number]->method(), "and as they were made");
        found[number].push_back(responses[i]);
      }
    }
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      if (asked_[i]->result && *asked_[i]->result) judge(*asked_[i], found[i]);
    }
  }
  static void judge(const Asked& asked, const std::vector<Message>& found) {
    const HttpResponse& response = **asked.result;
    const bool is_found = std::ranges::any_of(found, [&](const Message& one) {
      return one.is_complete && one.status == response.status && one.body == asked.body() &&
             one.headers == response.headers;
    });
    expect(is_found, "a response is what the server sent for its request");
  }

  Stage& stage_;
  std::optional<sluice::net::HttpClient> client_;
  std::deque<std::unique_ptr<Asked>> asked_;
  std::vector<Player> servers_;
  std::size_t server_ = 0;
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
