// One connection, byte by byte: however an answer is cut, it is read as one.

#include "cli/load/http/load_connection.h"

#include "net/net_fixture.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <vector>

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;

// A connection, and a server that says what the test wants.
class Conversation {
 public:
  explicit Conversation(std::string method = "GET", Nanos timeout = 30s)
      : request_(
            RequestTemplate::make({.method = method, .host = "a", .path_and_query = "/"}).value()),
        bench_{
            .loop = *loop_,
            .address = net::testing::address_of(listener_),
            .tls = nullptr,
            .host = "",
            .method = method,
            .request = request_,
            .timeout = timeout,
            .on_head = net::Callback<const net::ResponseHead&>::to<&Conversation::on_head>(*this),
            .on_end = net::Callback<LoadConnection&, Ending>::to<&Conversation::on_end>(*this)},
        connection_(bench_) {}

  // Sends a request and takes it at the server's end, on whichever connection it comes.
  void ask() {
    ending_.reset();
    connection_.send({}, loop_->now().mono);
    if (!has_request()) {
      accept();
      ASSERT_TRUE(loop_.until([&] { return has_request(); }));
    }
    char bytes[512];
    ASSERT_GT(::recv(server_.get(), bytes, sizeof bytes, 0), 0);
  }
  // The connection has read this before it is told anything else.
  void say(std::string_view bytes) {
    ASSERT_EQ(::send(server_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    loop_->turn(1s);
  }
  void hang_up() {
    server_ = FileDescriptor{};
    loop_->turn(1s);
  }
  [[nodiscard]] bool ends() const {
    return loop_.until([&] { return ending_.has_value(); });
  }

  [[nodiscard]] const std::optional<Ending>& ending() const { return ending_; }
  [[nodiscard]] int connections() const { return connections_; }
  [[nodiscard]] const std::vector<int>& heads() const { return heads_; }

 private:
  void accept() {
    server_ = FileDescriptor{::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC)};
    ASSERT_TRUE(server_);
    ++connections_;
  }
  [[nodiscard]] bool has_request() const {
    char byte = 0;
    return server_ && ::recv(server_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
  }
  void on_head(const net::ResponseHead& head) { heads_.push_back(head.status); }
  void on_end(LoadConnection& /*connection*/, Ending ending) { ending_ = ending; }

  net::testing::Loop loop_;
  net::Listener listener_ = blocking_listener();
  RequestTemplate request_;
  LoadBench bench_;
  LoadConnection connection_;
  FileDescriptor server_;
  std::optional<Ending> ending_;
  std::vector<int> heads_;
  int connections_ = 0;

  static net::Listener blocking_listener() {
    net::Listener listener = net::listen_on(net::testing::free_port()).value();
    ::fcntl(listener.descriptor(), F_SETFL, 0);
    return listener;
  }
};

constexpr std::string_view kChunked =
    "HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n"
    "HTTP/1.1 429 Too Many Requests\r\nTransfer-Encoding: chunked\r\n\r\n"
    "5\r\nhello\r\n0\r\nx-trailer: one\r\nx-other: two\r\n\r\n";

// Cut once, at every place.
TEST(LoadConnection, PutsTwoPiecesTogether) {
  Conversation conversation;
  for (std::size_t cut = 1; cut < kChunked.size(); ++cut) {
    conversation.ask();
    conversation.say(kChunked.substr(0, cut));
    ASSERT_FALSE(conversation.ending()) << cut;
    conversation.say(kChunked.substr(cut));
    ASSERT_TRUE(conversation.ending()) << cut;
    ASSERT_EQ(conversation.ending()->status, 429) << cut;
  }
  EXPECT_EQ(conversation.connections(), 1);
}

TEST(LoadConnection, PutsSingleBytesTogether) {
  Conversation conversation;
  conversation.ask();
  for (const char& c : kChunked) conversation.say({&c, 1});
  ASSERT_TRUE(conversation.ending());
  EXPECT_EQ(conversation.ending()->status, 429);
  EXPECT_EQ(conversation.heads(), std::vector<int>{429});  // once, and not for the hint
}

TEST(LoadConnection, KnowsThatAnswersToHeadHaveNoBody) {
  Conversation conversation{"HEAD"};
  conversation.ask();
  conversation.say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
  ASSERT_TRUE(conversation.ending());
  EXPECT_EQ(conversation.ending()->status, 200);
}

TEST(LoadConnection, AnEndThatCutsTheBodyShortIsNoAnswer) {
  Conversation conversation;
  conversation.ask();
  conversation.say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello");
  conversation.hang_up();
  ASSERT_TRUE(conversation.ends());
  EXPECT_EQ(conversation.ending()->status, 0);
  EXPECT_EQ(conversation.ending()->error, LoadError::closed);
}

TEST(LoadConnection, AnEndThatEndsTheBodyIsOne) {
  Conversation conversation;
  conversation.ask();
  conversation.say("HTTP/1.1 200 OK\r\n\r\nhello");
  EXPECT_FALSE(conversation.ending());
  conversation.hang_up();
  ASSERT_TRUE(conversation.ends());
  EXPECT_EQ(conversation.ending()->status, 200);
}

// Bytes behind an answer would be taken for the next one's.
TEST(LoadConnection, IsNotUsedAgainAfterMoreThanWasAskedFor) {
  Conversation conversation;
  conversation.ask();
  conversation.say("HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n");
  ASSERT_TRUE(conversation.ending());
  conversation.ask();
  EXPECT_EQ(conversation.connections(), 2);
}

TEST(LoadConnection, ABadBodyIsABadResponse) {
  Conversation conversation;
  conversation.ask();
  conversation.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n");
  ASSERT_TRUE(conversation.ending());
  EXPECT_EQ(conversation.ending()->error, LoadError::bad_response);
}

TEST(LoadConnection, AnAnswerThatComesTooLateIsATimeout) {
  Conversation conversation{"GET", 20ms};
  conversation.ask();
  conversation.say("HTTP/1.1 200 OK\r\n");
  ASSERT_TRUE(conversation.ends());
  EXPECT_EQ(conversation.ending()->error, LoadError::timeout);
}

}  // namespace
}  // namespace sluice::cli
