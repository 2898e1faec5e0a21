#include "app/echo_server.h"

#include "base/text.h"
#include "net/acceptor.h"
#include "net/event_loop.h"
#include "net/http/body_reader.h"
#include "net/http/head_writer.h"
#include "net/http/request_parser.h"
#include "net/http/status_text.h"
#include "net/intrusive_list.h"
#include "net/listen.h"
#include "net/stream.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <csignal>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sluice::app {
namespace {

// What to answer: /status/418 is answered with 418.
std::uint16_t wanted_status(std::string_view path) noexcept {
  constexpr std::string_view kPrefix = "/status/";
  if (!path.starts_with(kPrefix)) return 200;
  path.remove_prefix(kPrefix.size());
  std::uint16_t status = 0;
  const auto end = std::from_chars(path.data(), path.data() + path.size(), status);
  return end.ec == std::errc{} && status >= 200 && status < 600 ? status : 200;
}

}  // namespace

class EchoServer::Inside {
 public:
  Inside(std::unique_ptr<net::EventLoop> loop, net::Listener listener)
      : loop_(std::move(loop)),
        listener_(std::move(listener)),
        acceptor_(net::Callback<net::Accepted>::to<&Inside::accept>(*this)) {
    (void)acceptor_.start(*loop_, listener_.descriptor());
    // Signals are for others: a thread begins with what the one that makes it has blocked.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    thread_ = std::jthread{[this] { loop_->run(); }};
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() {
    loop_->stop();
    thread_.join();
    while (Client* const client = clients_.pop_front()) delete client;
  }
  [[nodiscard]] const net::Endpoint& endpoint() const noexcept { return listener_.endpoint(); }

 private:
  class Client : public net::ListHook {
   public:
    Client() : stream_(net::Callback<>::to<&Client::drive>(*this)), parser_(headers_) {}
    [[nodiscard]] bool open(net::EventLoop& loop, FileDescriptor descriptor) {
      return !stream_.open(loop, std::move(descriptor)).is_failed();
    }

   private:
    void drive() {
      if (!go_on()) delete this;
    }
    // False: it is over.
    [[nodiscard]] bool go_on() {
      while (true) {
        if (!write_out()) return false;
        if (!out_.empty()) return true;
        if (!understand()) return false;
        if (!out_.empty()) continue;
        if (closing_ || in_.size() > kLongest) return false;
        std::array<char, 16384> buffer;
        const net::IoResult result = stream_.read(buffer);
        if (result.is_blocked()) return true;
        if (!result.is_done()) return false;
        in_.append(buffer.data(), result.bytes);
      }
    }
    [[nodiscard]] bool write_out() {
      while (!out_.empty()) {
        const net::IoResult result = stream_.write(out_);
        if (result.is_blocked()) return true;
        if (!result.is_done()) return false;
        out_.erase(0, result.bytes);
      }
      return true;
    }
    [[nodiscard]] bool understand() {
      if (in_.empty()) return true;
      parser_.reset();
      const net::HeadParse parsed = parser_.parse(in_);
      if (parsed.state == net::HeadParse::State::fault) return false;
      if (parsed.state == net::HeadParse::State::need_more) return true;
      net::BodyReader body{parser_.head().body, trailers_};
      std::size_t at = parsed.head_bytes;
      std::size_t body_bytes = 0;
      while (!body.is_done()) {
        const net::BodyPiece piece = body.feed(std::string_view{in_}.substr(at));
        if (piece.fault) return false;
        at += piece.consumed;
        body_bytes += piece.data.size();
        if (piece.consumed == 0 && !body.is_done()) return true;  // the rest is to come
      }
      answer(body_bytes);
      in_.erase(0, at);
      return true;
    }
    void answer(std::size_t body_bytes) {
      const net::RequestHead& head = parser_.head();
      std::string text =
          fmt::format(R"({{"method":{},"path":{},"body_bytes":{},"headers":{{)",
                      json_string(head.method), json_string(head.path_and_query), body_bytes);
      for (std::size_t i = 0; i < head.headers.size(); ++i) {
        text += fmt::format("{}{}:{}", i == 0 ? "" : ",", json_string(head.headers[i].name),
                            json_string(head.headers[i].value));
      }
      text += "}}\n";
      const std::uint16_t status = wanted_status(head.path_and_query);
      closing_ = !head.keep_alive;
      std::array<char, 512> buffer;
      net::HeadWriter writer{buffer};
      writer.status_line(status, net::reason_phrase(status));
      const bool has_body = status != 204 && status != 304;
      if (has_body) {
        writer.header("content-type", "application/json");
        writer.header("content-length", text.size());
      }
      net::write_persistence(writer, net::persistence_for(!closing_, head.minor_version));
      out_ = *writer.finish();
      if (has_body && head.method != "HEAD") out_ += text;
    }

    static constexpr std::size_t kLongest = std::size_t{64} << 20U;
    net::Stream stream_;
    std::array<HeaderView, net::kHeadersMax> headers_;
    std::array<HeaderView, 16> trailers_;
    net::RequestParser parser_;
    std::string in_;
    std::string out_;
    bool closing_ = false;
  };

  void accept(net::Accepted accepted) {
    auto* const client = new Client;
    clients_.push_back(*client);
    if (!client->open(*loop_, std::move(accepted.descriptor))) delete client;
  }

  std::unique_ptr<net::EventLoop> loop_;
  net::Listener listener_;
  net::Acceptor acceptor_;
  net::List<Client> clients_;  // owned
  std::jthread thread_;
};

EchoServer::EchoServer(std::unique_ptr<Inside> inside) noexcept : inside_(std::move(inside)) {}
EchoServer::~EchoServer() = default;

const net::Endpoint& EchoServer::endpoint() const noexcept { return inside_->endpoint(); }

Parsed<std::unique_ptr<EchoServer>> EchoServer::start(const Clock& clock) {
  auto loop = net::EventLoop::create(clock);
  if (!loop) return tl::unexpected(std::move(loop.error()));
  auto listener = net::listen_on(net::Endpoint::of(IpAddress::v4(0x7f000001U), 0));
  if (!listener) return tl::unexpected(std::move(listener.error()));
  return std::unique_ptr<EchoServer>{
      new EchoServer{std::make_unique<Inside>(*std::move(loop), *std::move(listener))}};
}

}  // namespace sluice::app
