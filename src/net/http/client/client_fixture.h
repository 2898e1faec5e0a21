// What tests of the client share: a server that says what it is told, and a client on its loop.
#pragma once

#include "net/acceptor.h"
#include "net/http/client/http_client.h"
#include "net/listen.h"
#include "net/net_fixture.h"
#include "net/tls_server.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::net::testing {

// Responds to whole headers with what it was told, in turn; an empty text hangs up.
class ScriptedServer {
 public:
  explicit ScriptedServer(EventLoop& loop, const Endpoint& endpoint = testing::free_port())
      : loop_(loop),
        listener_(listen_on(endpoint).value()),
        acceptor_(Callback<Accepted>::to<&ScriptedServer::accept>(*this)) {
    if (!acceptor_.start(loop, listener_.descriptor())) std::abort();
  }

  std::deque<std::string> responses;
  std::string heard;
  std::size_t connections = 0;
  bool hangs_up = false;  // behind every response
  bool reads = true;
  std::shared_ptr<const TlsServer> tls;

  // To everybody, asked or not.
  void say(std::string_view text) {
    for (Client& client : clients_) (void)client.stream.write(text);
  }
  void hang_up() {
    for (Client& client : clients_) client.stream.close();
  }
  // Without a farewell.
  void cut() {
    for (Client& client : clients_) {
      client.stream.drop_tls();
      client.stream.close();
    }
  }

  [[nodiscard]] std::string url() const {
    return (tls != nullptr ? "https://" : "http://") + listener_.endpoint().text();
  }

 private:
  class Client {
   public:
    explicit Client(ScriptedServer& server) : server_(server) {}
    Stream stream{Callback<>::to<&Client::on_ready>(*this)};

   private:
    void on_ready() {
      if (!stream.is_open() || !server_.reads) return;
      std::array<char, 4096> room;
      for (IoResult read = stream.read(room); read.is_done(); read = stream.read(room)) {
        server_.heard.append(room.data(), read.bytes);
        pending_.append(room.data(), read.bytes);
      }
      while (pending_.find("\r\n\r\n") != std::string::npos && stream.is_open()) {
        pending_.erase(0, pending_.find("\r\n\r\n") + 4);
        respond();
      }
    }
    void respond() {
      if (server_.responses.empty()) return;
      const std::string text = server_.responses.front();
      server_.responses.pop_front();
      if (!text.empty()) (void)stream.write(text);
      if (text.empty() || server_.hangs_up) stream.close();
    }
    ScriptedServer& server_;
    std::string pending_;
  };

  void accept(Accepted accepted) {
    ++connections;
    clients_.emplace_back(*this);
    (void)clients_.back().stream.open(loop_, std::move(accepted.descriptor));
    if (tls != nullptr && !clients_.back().stream.start_tls(tls)) std::abort();
  }

  EventLoop& loop_;
  Listener listener_;
  Acceptor acceptor_;
  std::list<Client> clients_;
};

// A call that remembers how it ended.
class Asked {
 public:
  Asked() = default;

  std::optional<HttpResult> result;
  std::string streamed;  // of a streaming one
  HttpCall call{Callback<const HttpResult&>::to<&Asked::on_done>(*this)};
  HttpCall streaming{Callback<const HttpResult&>::to<&Asked::on_done>(*this),
                     Callback<const HttpResponse&, std::string_view>::to<&Asked::on_body>(*this)};

  // "200 body", or what failed.
  [[nodiscard]] std::string text() const {
    if (!result) return "nothing yet";
    if (!*result) return result->error().message;
    return std::to_string((*result)->status) + " " + (*result)->body;
  }

 private:
  void on_done(const HttpResult& done) { result = done; }
  void on_body(const HttpResponse& /*headers*/, std::string_view piece) { streamed += piece; }
};

class HttpClientTest : public ::testing::Test {
 protected:
  void make(const std::string& url, const HttpClientOptions& options = {}) {
    origin_ = HttpOrigin::load(HttpUrl::parse_server(url).value()).value();
    client_ = std::make_unique<HttpClient>(*loop_, resolver_, options);
  }
  HttpResult ask(const ClientRequest& request = {}) {
    Asked asked;
    client_->send(origin_, request, asked.call);
    EXPECT_FALSE(asked.result) << "never from inside";
    EXPECT_TRUE(loop_.until([&] { return asked.result.has_value(); }));
    return asked.result.value_or(tl::unexpected(HttpFailure{.message = "nothing came"}));
  }
  HttpFailure failure(const ClientRequest& request = {}) {
    const HttpResult result = ask(request);
    return result ? HttpFailure{.message = "responded " + std::to_string(result->status)}
                  : result.error();
  }

  Loop loop_;
  Resolver resolver_;
  ScriptedServer server_{*loop_};
  HttpOrigin origin_;
  std::unique_ptr<HttpClient> client_;
};

}  // namespace sluice::net::testing
