// What tests of the server share: a server on a loop with a clock that tests move, and clients by
// the byte.
#pragma once

#include "net/http/server/http_server.h"
#include "net/net_fixture.h"
#include <sluice/clock.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::net::testing {

inline std::string request_text(std::string_view method, std::string_view path,
                                std::string_view more = {}) {
  return std::string{method} + " " + std::string{path} + " HTTP/1.1\r\nHost: localhost\r\n" +
         std::string{more} + "\r\n";
}

inline std::string get(std::string_view path) { return request_text("GET", path); }

inline std::string post(std::string_view path, std::string_view body) {
  return request_text("POST", path, "Content-Length: " + std::to_string(body.size()) + "\r\n") +
         std::string{body};
}

inline std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

class HttpServerTest : public ::testing::Test {
 protected:
  using Client = std::unique_ptr<Talker>;

  HttpServerTest() {
    routes_.add("GET", "/short", [](const HttpRequest&) { return text_response(200, "short\n"); });
    routes_.add("GET", "/long",
                [](const HttpRequest&) { return text_response(200, std::string(kLong, 'x')); });
    routes_.add("POST", "/echo", [this](const HttpRequest& request) {
      ++echoes_;
      return text_response(200, std::string{request.body} + "|" + std::string{request.query});
    });
    make();
  }

  void make(HttpServerOptions options = {}) {
    server_ = nullptr;
    server_ = std::make_unique<HttpServer>(*loop_, routes_, std::move(options));
  }
  // Buffers of the system of about that size; 0: as they are.
  Client connect(int buffer = 0) {
    Pair pair = connected_pair(buffer, buffer);
    auto client = std::make_unique<Talker>(*loop_);
    client->open(std::move(pair.client));
    server_->accept({.descriptor = std::move(pair.server), .peer = {}});
    return client;
  }
  template <class Condition>
  [[nodiscard]] bool until(Condition&& condition) {
    return turn_until(*loop_, std::forward<Condition>(condition));
  }
  // Until nothing happens any more.
  void settle() {
    for (int i = 0; i < 20; ++i) loop_->turn(Nanos{0});
  }
  void pass(Nanos time) {
    clock_.advance(time);
    settle();
  }
  // What comes back up to this end, or to that of the connection.
  std::string said(Talker& client, std::string_view text, std::string_view end) {
    client.received.clear();
    client.say(text);
    EXPECT_TRUE(until([&] { return client.received.ends_with(end) || client.is_over(); }));
    return client.received;
  }
  // To one request, on a connection that is then closed.
  std::string alone(const std::string& request) {
    const Client client = connect();
    client->say(request);
    settle();
    client->stream.finish_writing();
    EXPECT_TRUE(until([&] { return client->is_over(); }));
    return client->received;
  }

  static constexpr std::size_t kLong = std::size_t{8} << 20U;

  ManualClock clock_{
      {.mono = MonoTime{std::chrono::hours{1}}, .wall_offset = std::chrono::hours{1}}};
  std::unique_ptr<EventLoop> loop_ = EventLoop::create(clock_).value();
  HttpRoutes routes_;
  int echoes_ = 0;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace sluice::net::testing
