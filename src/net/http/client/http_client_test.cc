#include "net/http/client/http_client.h"

#include "net/net_fixture.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::net {
namespace {

using namespace std::chrono_literals;

// Answers whole heads with what it was told, in turn; an empty text hangs up.
class ScriptedServer {
 public:
  explicit ScriptedServer(EventLoop& loop, const Endpoint& endpoint = testing::free_port())
      : loop_(loop),
        listener_(listen_on(endpoint).value()),
        acceptor_(Callback<Accepted>::to<&ScriptedServer::accept>(*this)) {
    if (!acceptor_.start(loop, listener_.descriptor())) std::abort();
  }

  std::deque<std::string> answers;
  std::string heard;
  std::size_t connections = 0;
  bool hangs_up = false;  // behind every answer

  [[nodiscard]] std::string url() const { return "http://" + listener_.endpoint().text(); }

 private:
  class Client {
   public:
    explicit Client(ScriptedServer& server) : server_(server) {}
    Stream stream{Callback<>::to<&Client::on_ready>(*this)};

   private:
    void on_ready() {
      if (!stream.is_open()) return;
      std::array<char, 4096> room;
      for (IoResult read = stream.read(room); read.is_done(); read = stream.read(room)) {
        server_.heard.append(room.data(), read.bytes);
        pending_.append(room.data(), read.bytes);
      }
      while (pending_.find("\r\n\r\n") != std::string::npos && stream.is_open()) {
        pending_.erase(0, pending_.find("\r\n\r\n") + 4);
        answer();
      }
    }
    void answer() {
      if (server_.answers.empty()) return;
      const std::string text = server_.answers.front();
      server_.answers.pop_front();
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
  }

  EventLoop& loop_;
  Listener listener_;
  Acceptor acceptor_;
  std::list<Client> clients_;
};

class HttpClientTest : public ::testing::Test {
 protected:
  void make(const std::string& url, const HttpClientOptions& options = {}) {
    client_ = std::make_unique<HttpClient>(
        *loop_, resolver_, HttpTarget::parse(url).value(),
        Callback<const Parsed<HttpAnswer>&>::to<&HttpClientTest::on_answer>(*this), options);
  }
  Parsed<HttpAnswer> ask(const HttpQuestion& question = {}) {
    answer_.reset();
    client_->ask(question);
    EXPECT_FALSE(answer_) << "never from inside";
    EXPECT_TRUE(loop_.until([&] { return answer_.has_value(); }));
    return answer_.value_or(mistake("nothing came"));
  }
  std::string failure(const HttpQuestion& question = {}) {
    const Parsed<HttpAnswer> answer = ask(question);
    return answer ? "answered " + std::to_string(answer->status) : answer.error().message;
  }

  testing::Loop loop_;
  Resolver resolver_;
  ScriptedServer server_{*loop_};
  std::unique_ptr<HttpClient> client_;
  std::optional<Parsed<HttpAnswer>> answer_;

 private:
  void on_answer(const Parsed<HttpAnswer>& answer) { answer_ = answer; }
};

TEST_F(HttpClientTest, AsksAndHearsOnOneConnection) {
  make(server_.url());
  server_.answers = {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello",
                     "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "3\r\nabc\r\n0\r\n\r\n"};
  const Parsed<HttpAnswer> first = ask({.path = "/a?b", .headers = {{"accept", "*/*"}}});
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ(first->status, 200);
  EXPECT_EQ(first->body, "hello");
  EXPECT_EQ(first->header("x-a"), "b");
  EXPECT_TRUE(server_.heard.starts_with("GET /a?b HTTP/1.1\r\nhost: 127.0.0.1:"));
  EXPECT_NE(server_.heard.find("accept: */*\r\n"), std::string::npos);
  EXPECT_EQ(ask()->body, "abc");
  EXPECT_EQ(server_.connections, 1U);
}

TEST_F(HttpClientTest, SendsABody) {
  make(server_.url());
  server_.answers = {"HTTP/1.1 204 No Content\r\n\r\n"};
  EXPECT_EQ(ask({.method = "POST", .body = "payload"})->status, 204);
  EXPECT_TRUE(loop_.until([&] { return server_.heard.ends_with("\r\n\r\npayload"); }));
  EXPECT_NE(server_.heard.find("content-length: 7\r\n"), std::string::npos);
}

TEST_F(HttpClientTest, ReadsUntilTheEndWhereNoLengthIsGiven) {
  make(server_.url());
  server_.hangs_up = true;
  server_.answers = {"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\nall of it"};
  EXPECT_EQ(ask()->body, "all of it");
}

TEST_F(HttpClientTest, ExpectsNoBodyOfAnAnswerToHead) {
  make(server_.url());
  server_.answers = {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
                     "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"};
  EXPECT_EQ(ask({.method = "HEAD"})->body, "");
  EXPECT_EQ(ask()->body, "ok");
}

// The server may have closed an idle connection while the question was on its way.
TEST_F(HttpClientTest, AsksOnceMoreWhereAnIdleConnectionWasClosed) {
  make(server_.url());
  const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  server_.answers = {ok, "", ok};
  EXPECT_TRUE(ask());
  EXPECT_EQ(ask()->body, "ok");
  EXPECT_EQ(server_.connections, 2U);
  EXPECT_EQ(client_->connections(), 2U);
  // But not what may happen twice, and not a second time.
  server_.answers = {""};
  EXPECT_NE(failure({.method = "POST"}).find("without a whole answer"), std::string::npos);
  server_.answers = {""};
  EXPECT_NE(failure().find("without a whole answer"), std::string::npos);
}

TEST_F(HttpClientTest, SaysWhatIsWrongWithAnAnswer) {
  make(server_.url());
  server_.answers = {"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n"};
  EXPECT_TRUE(failure().starts_with(server_.url() + ": "));
  server_.answers = {"SSH-2.0-OpenSSH_9.2\r\n\r\n"};
  EXPECT_NE(failure().find("does not begin with a version"), std::string::npos);
  server_.hangs_up = true;
  server_.answers = {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"};
  EXPECT_NE(failure().find("without a whole answer"), std::string::npos);
}

TEST_F(HttpClientTest, BoundsTimeAndSize) {
  make(server_.url(), {.within = 20ms, .body_bytes_max = 8});
  EXPECT_NE(failure().find("no answer within 20 ms"), std::string::npos);
  make(server_.url(), {.body_bytes_max = 8});
  server_.answers = {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123456789"};
  EXPECT_NE(failure().find("too large"), std::string::npos);
}

TEST_F(HttpClientTest, SaysThatNobodyListens) {
  const Endpoint gone = listen_on(testing::free_port()).value().endpoint();
  make("http://" + gone.text());
  EXPECT_NE(failure().find("refused"), std::string::npos);
  make("http://no-such-host.invalid:80");
  EXPECT_NE(failure().find("no-such-host.invalid"), std::string::npos);
}

// A name may have addresses at which nobody listens: localhost is ::1 as well.
TEST_F(HttpClientTest, TriesEveryAddressOfAName) {
  const std::string url = server_.url();
  make("http://localhost" + url.substr(url.rfind(':')));
  server_.answers = {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"};
  const Parsed<HttpAnswer> answer = ask();
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->body, "ok");
}

TEST_F(HttpClientTest, RefusesToWriteWhatIsNoRequest) {
  make(server_.url());
  EXPECT_NE(failure({.path = "/a b"}).find("cannot be written"), std::string::npos);
  EXPECT_NE(failure({.headers = {{"a", "b\r\nc: d"}}}).find("cannot be written"),
            std::string::npos);
}

TEST(HttpTarget, IsReadAsPeopleWriteIt) {
  const auto endpoint = [](std::string_view text) {
    const auto target = HttpTarget::parse(text);
    return target ? target->endpoint.text() + " " + target->host : std::string{"no"};
  };
  EXPECT_EQ(endpoint("http://127.0.0.1:9090"), "127.0.0.1:9090 127.0.0.1:9090");
  EXPECT_EQ(endpoint("127.0.0.1:9090"), "127.0.0.1:9090 127.0.0.1:9090");
  EXPECT_EQ(endpoint("http://a.example/"), "a.example:80 a.example");
  EXPECT_EQ(endpoint("http://[::1]"), "[::1]:80 [::1]");
  EXPECT_EQ(endpoint("http://[::1]:90"), "[::1]:90 [::1]:90");
  EXPECT_EQ(endpoint("unix:/run/s"), "unix:/run/s localhost");
  for (const char* wrong : {"", "https://a.example", "http://", "http://:80", "http://a b:1",
                            "http://a.example/path", "unix:relative", "ftp://a"}) {
    EXPECT_EQ(endpoint(wrong), "no") << wrong;
  }
}

}  // namespace
}  // namespace sluice::net
