// Responses that come later, and those that come in pieces.

#include "net/http/body_reader.h"
#include "net/http/server/responder.h"
#include "net/http/server/server_fixture.h"
#include "net/http/server/server_sent_events.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace sluice::net {
namespace {

using namespace std::chrono_literals;
using testing::count_of;
using testing::get;
using testing::post;
using testing::request_text;
using testing::Talker;

// The data of a chunked body, and whether it is complete.
struct Decoded {
  std::string data;
  bool is_complete = false;
};

Decoded decoded(std::string_view response) {
  std::array<HeaderView, 4> trailers;
  BodyReader reader{{.kind = BodyFraming::Kind::chunked}, trailers};
  Decoded result;
  response.remove_prefix(std::min(response.find("\r\n\r\n") + 4, response.size()));
  while (!reader.is_done()) {
    const BodyPiece piece = reader.feed(response);
    EXPECT_FALSE(piece.fault) << piece.fault.why;
    result.data += piece.data;
    response.remove_prefix(piece.consumed);
    if (piece.consumed == 0) break;
  }
  result.is_complete = reader.is_done();
  return result;
}

class Later : public testing::HttpServerTest {
 protected:
  Later() {
    const auto keep = [this](const HttpRequest&, Responder responder) {
      responder.on_gone([this] { ++gone_; });
      kept_.push_back(std::move(responder));
    };
    routes_.add("GET", "/later", keep);
    routes_.add("POST", "/later", keep);
    routes_.add("GET", "/poll", keep, {.response_timeout = 60s, .long_lived = true});
    routes_.add("GET", "/events",
                [this](const HttpRequest&, Responder responder) {
                  streams_.push_back(begin_events(std::move(responder), 15s));
                  streams_.back().on_gone([this] { ++gone_; });
                },
                {.long_lived = true});
  }
  // A client whose request has reached its handler.
  Client ask(const std::string& request, int buffer = 0) {
    Client client = connect(buffer);
    const std::uint64_t before = server_->counts().requests;
    client->say(request);
    EXPECT_TRUE(until([&] { return server_->counts().requests > before; }));
    settle();
    return client;
  }
  [[nodiscard]] bool comes(Talker& client, std::string_view end) {
    return until([&] { return client.received.ends_with(end); });
  }
  [[nodiscard]] bool is_gone(int times = 1) {
    return until([&] { return gone_ == times; });
  }

  std::deque<Responder> kept_;
  std::deque<ResponseStream> streams_;
  int gone_ = 0;
};

// ---- later ------------------------------------------------------------------------------------

TEST_F(Later, AResponseIsSentWhenItIsThere) {
  const Client client = ask(post("/later?x=1", "a body"));
  EXPECT_EQ(client->received, "");
  const HttpRequest& request = kept_.front().request();
  EXPECT_EQ(request.body, "a body") << "the request lasts as long as its responder";
  EXPECT_EQ(request.query, "x=1");
  EXPECT_EQ(request.header("host"), "localhost");
  kept_.front().send(text_response(201, "made"));
  EXPECT_FALSE(kept_.front().is_open());
  EXPECT_TRUE(comes(*client, "\r\n\r\nmade"));
  kept_.front().send(text_response(500, "twice"));
  EXPECT_TRUE(said(*client, get("/short"), "short\n").starts_with("HTTP/1.1 200"));
  EXPECT_EQ(gone_, 0) << "it was its owner who ended it";
}

TEST_F(Later, OrderIsKept) {
  const Client client = ask(get("/later") + get("/short"));
  EXPECT_EQ(kept_.size(), 1U);
  EXPECT_EQ(client->received, "");
  kept_.front().send(text_response(200, "first"));
  EXPECT_TRUE(comes(*client, "short\n"));
  EXPECT_LT(client->received.find("first"), client->received.find("short\n"));
}

TEST_F(Later, OthersAreServedMeanwhile) {
  const Client waiting = ask(get("/later"));
  EXPECT_TRUE(alone(get("/short")).ends_with("short\n"));
  kept_.clear();
  EXPECT_TRUE(comes(*waiting, "given up.\n"));
  EXPECT_TRUE(waiting->received.starts_with("HTTP/1.1 500")) << "none is left without a response";
}

TEST_F(Later, AHandlerThatForgetsToRespondDoesNotLeaveTheClientWaiting) {
  routes_.add("GET", "/forgets", [](const HttpRequest&, const Responder&) {});
  EXPECT_TRUE(alone(get("/forgets")).starts_with("HTTP/1.1 500"));
}

TEST_F(Later, AHandlerHearsThatTheClientIsGone) {
  Client client = ask(get("/later"));
  client->stream.reset();
  EXPECT_TRUE(is_gone());
  EXPECT_FALSE(kept_.front().is_open());
  kept_.front().send(text_response(200, "to nobody"));
  EXPECT_EQ(server_->connections(), 0U);
  // A long poll has nobody to respond to, either, when its client hangs up.
  client = ask(get("/poll"));
  client->stream.close();
  EXPECT_TRUE(is_gone(2));
  EXPECT_EQ(server_->long_lived(), 0U);
}

// It has said all, and waits: as `printf ... | nc` does.
TEST_F(Later, AClientThatSaysNoMoreGetsItsResponse) {
  const Client client = ask(get("/later"));
  client->stream.finish_writing();
  settle();
  EXPECT_EQ(gone_, 0);
  kept_.front().send(text_response(200, "still"));
  EXPECT_TRUE(until([&] { return client->is_over(); }));
  EXPECT_TRUE(client->received.ends_with("still"));
}

TEST_F(Later, AResponseHasADeadline) {
  const Client client = ask(get("/later") + get("/short"));
  pass(29s);
  EXPECT_EQ(client->received, "");
  pass(2s);
  EXPECT_TRUE(is_gone());
  EXPECT_TRUE(comes(*client, "short\n"));
  EXPECT_TRUE(client->received.starts_with("HTTP/1.1 503")) << client->received;
  EXPECT_EQ(server_->counts().timed_out, 1U);
  kept_.front().send(text_response(200, "late"));
  settle();
  EXPECT_EQ(client->received.find("late"), std::string::npos);
}

TEST_F(Later, ALongPollEndsAsItsHandlerSays) {
  const Client client = ask(get("/poll"));
  kept_.front().set_deadline(50s, {.status = 304, .headers = {{"etag", "\"7\""}}, .body = {}});
  pass(49s);
  EXPECT_EQ(client->received, "");
  EXPECT_EQ(server_->long_lived(), 1U);
  pass(2s);
  EXPECT_TRUE(comes(*client, "\r\n\r\n"));
  EXPECT_TRUE(client->received.starts_with("HTTP/1.1 304")) << client->received;
  EXPECT_EQ(server_->long_lived(), 0U);
  EXPECT_TRUE(said(*client, get("/short"), "short\n").starts_with("HTTP/1.1 200"));
}

TEST_F(Later, HandlesOutliveTheServer) {
  const Client one = ask(get("/later"));
  const Client other = ask(get("/events"));
  server_ = nullptr;
  EXPECT_EQ(gone_, 2);
  EXPECT_FALSE(kept_.front().is_open());
  kept_.front().send({});
  EXPECT_FALSE(streams_.front().write("x"));
  streams_.front().finish();
  EXPECT_TRUE(until([&] { return one->is_over() && other->is_over(); }));
}

// What hears of the server's end may still end what it holds, however late its turn comes.
TEST_F(Later, AHandleMayBeUsedWhileTheServerEnds) {
  const Client poll = ask(get("/poll"));
  const Client events = ask(get("/events"));
  kept_.front().on_gone([this] { streams_.front().finish(); });
  server_ = nullptr;
  settle();
  EXPECT_FALSE(streams_.front().is_open());
  EXPECT_TRUE(until([&] { return poll->is_over() && events->is_over(); }));
}

TEST_F(Later, HandlesMove) {
  const Client client = ask(get("/later"));
  Responder other = std::move(kept_.front());
  EXPECT_FALSE(kept_.front().is_open());
  kept_.clear();
  Responder third;
  third = std::move(other);
  EXPECT_TRUE(third.is_open());
  third.send(text_response(200, "moved"));
  EXPECT_TRUE(comes(*client, "moved"));
  // What stood there before gets a response all the same.
  const Client second = ask(get("/later"));
  kept_.front() = Responder{};
  EXPECT_TRUE(comes(*second, "given up.\n"));
}

// What hears of one client's end may respond to others, or end what it holds.
TEST_F(Later, AHandleMayBeUsedWhileAnotherIsLost) {
  const Client first = ask(get("/later"));
  const Client second = ask(get("/later"));
  kept_.front().on_gone([this] {
    Responder last = std::move(kept_.back());
    kept_.clear();
    last.send(text_response(200, "the other"));
  });
  first->stream.reset();
  EXPECT_TRUE(comes(*second, "the other"));
}

// ---- in pieces --------------------------------------------------------------------------------

TEST_F(Later, AStreamIsWrittenInPieces) {
  const Client client = ask(get("/events") + get("/short"));
  ASSERT_TRUE(comes(*client, "\r\n\r\n"));
  EXPECT_NE(client->received.find("content-type: text/event-stream\r\n"), std::string::npos);
  EXPECT_NE(client->received.find("transfer-encoding: chunked\r\n"), std::string::npos);
  ResponseStream& stream = streams_.front();
  EXPECT_TRUE(stream.write(format_event({.event = "change", .data = "1", .id = "7"})));
  EXPECT_TRUE(stream.write("")) << "nothing is not the end";
  EXPECT_TRUE(comes(*client, "data: 1\n\n\r\n"));
  EXPECT_FALSE(decoded(client->received).is_complete);
  EXPECT_TRUE(stream.write("last"));
  stream.finish();
  EXPECT_FALSE(stream.is_open());
  ASSERT_TRUE(comes(*client, "short\n")) << "the connection goes on";
  const Decoded all = decoded(client->received);
  EXPECT_EQ(all.data, "id: 7\nevent: change\ndata: 1\n\nlast");
  EXPECT_TRUE(all.is_complete);
  EXPECT_EQ(gone_, 0);
}

TEST_F(Later, AStreamToAClientOfHttp10EndsWithTheConnection) {
  const Client client = ask("GET /events HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_TRUE(streams_.front().write("all of it"));
  streams_.front().finish();
  EXPECT_TRUE(until([&] { return client->is_over(); }));
  EXPECT_TRUE(client->received.ends_with("\r\n\r\nall of it")) << client->received;
  EXPECT_NE(client->received.find("Connection: close"), std::string::npos);
}

TEST_F(Later, AStreamHasNoBodyForHead) {
  const Client client = ask(request_text("HEAD", "/events"));
  EXPECT_FALSE(streams_.front().is_open());
  EXPECT_EQ(server_->long_lived(), 0U);
  EXPECT_TRUE(comes(*client, "\r\n\r\n"));
  EXPECT_EQ(client->received.find("content-length"), std::string::npos);
  EXPECT_TRUE(said(*client, get("/short"), "short\n").starts_with("HTTP/1.1 200"));
}

TEST_F(Later, AStreamThatIsAbandonedIsNotComplete) {
  for (const char* version : {"HTTP/1.1", "HTTP/1.0"}) {
    const Client client =
        ask("GET /events " + std::string{version} + "\r\nHost: localhost\r\n\r\n");
    EXPECT_TRUE(streams_.back().write("some of it"));
    settle();
    streams_.clear();
    EXPECT_TRUE(until([&] { return client->is_over(); }));
    EXPECT_TRUE(client->failure.has_value()) << "it does not look like the end";
  }
}

TEST_F(Later, AStreamIsAbandonedInTheTurnOfItsHeartbeat) {
  routes_.add("GET", "/abandon", [this](const HttpRequest&) {
    streams_.clear();
    return text_response(200, "abandoned\n");
  });
  const Client events = ask(get("/events"));
  const Client other = connect();
  (void)said(*other, get("/short"), "short\n");
  clock_.advance(16s);
  EXPECT_TRUE(said(*other, get("/abandon"), "abandoned\n").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(until([&] { return events->is_over(); }));
  EXPECT_TRUE(events->failure.has_value()) << "it does not look like the end";
  EXPECT_EQ(events->received.find("408"), std::string::npos) << events->received;
  EXPECT_EQ(server_->counts().timed_out, 0U);
}

TEST_F(Later, HeartbeatsKeepAStreamAlive) {
  const Client client = ask(get("/events"));
  pass(14s);
  EXPECT_EQ(decoded(client->received).data, "");
  pass(2s);
  EXPECT_EQ(decoded(client->received).data, ":\n\n");
  EXPECT_TRUE(streams_.front().write("x"));
  settle();
  pass(14s);
  EXPECT_EQ(decoded(client->received).data, ":\n\nx") << "something else was written";
  for (int i = 0; i < 100; ++i) pass(16s);
  EXPECT_EQ(count_of(decoded(client->received).data, ":\n\n"), 101U);
  EXPECT_EQ(gone_, 0);
}

TEST_F(Later, AStreamHearsThatItsClientIsGone) {
  for (const bool is_reset : {true, false}) {
    const Client client = ask(get("/events"));
    gone_ = 0;
    if (is_reset) {
      client->stream.reset();
    } else {
      client->stream.close();
    }
    EXPECT_TRUE(is_gone());
    EXPECT_FALSE(streams_.back().write("x"));
  }
  EXPECT_EQ(server_->connections(), 0U);
}

TEST_F(Later, AStreamHoldsOnlySoMuchForASlowReader) {
  make({.stream_bytes_max = 65536});
  const Client client = ask(get("/events"), 4096);
  client->listens = false;
  ResponseStream& stream = streams_.front();
  int drained = 0;
  stream.on_drained([&] { ++drained; });
  const std::string piece(1000, 'p');
  std::size_t written = 0;
  for (int i = 0; i < 2000 && stream.write(piece); ++i) {
    ++written;
    if (i % 10 == 0) settle();
  }
  EXPECT_LT(written, 1000U);
  EXPECT_LE(stream.buffered(), 65536U);
  EXPECT_GT(stream.buffered(), 60'000U);
  EXPECT_EQ(server_->counts().pieces_rejected, 1U);
  // It reads again, and nothing that was taken is missing.
  drained = 0;
  client->listens = true;
  client->talk();
  EXPECT_TRUE(until([&] { return drained > 0; }));
  EXPECT_EQ(stream.buffered(), 0U);
  EXPECT_TRUE(stream.write("end"));
  stream.finish();
  EXPECT_TRUE(comes(*client, "0\r\n\r\n"));
  EXPECT_EQ(decoded(client->received).data.size(), written * piece.size() + 3);
}

TEST_F(Later, AStreamThatNobodyReadsIsCut) {
  make({.stream_bytes_max = 65536});
  const Client client = ask(get("/events"), 4096);
  client->listens = false;
  const std::string piece(1000, 'p');
  while (streams_.front().write(piece)) settle();
  pass(9s);
  EXPECT_EQ(gone_, 0);
  pass(2s);
  EXPECT_EQ(gone_, 1);
  EXPECT_EQ(server_->counts().timed_out, 1U);
  EXPECT_EQ(server_->connections(), 0U);
}

// All of it fits the buffers of our system, but nothing was taken from them. Of a Unix socket that
// is what the client has not read.
TEST_F(Later, AStreamIsCutWhoseClientTakesNothing) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  Talker client{*loop_};
  client.open(FileDescriptor{ends[0]});
  server_->accept({.descriptor = FileDescriptor{ends[1]}, .peer = {.is_local = true}});
  client.say(get("/events"));
  ASSERT_TRUE(comes(client, "\r\n\r\n"));
  pass(16s);
  EXPECT_EQ(decoded(client.received).data, ":\n\n");
  client.listens = false;
  EXPECT_TRUE(streams_.front().write("unread"));
  settle();
  EXPECT_EQ(streams_.front().buffered(), 0U);
  pass(16s);
  EXPECT_EQ(gone_, 0) << "an interval is not enough";
  pass(16s);
  EXPECT_EQ(gone_, 1);
  EXPECT_EQ(server_->counts().timed_out, 1U);
}

// What the client left unread of one stream does not count against the next.
TEST_F(Later, EveryStreamHasItsOwnHeartbeats) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  Talker client{*loop_};
  client.open(FileDescriptor{ends[0]});
  server_->accept({.descriptor = FileDescriptor{ends[1]}, .peer = {.is_local = true}});
  client.say(get("/events"));
  ASSERT_TRUE(comes(client, "\r\n\r\n"));
  client.listens = false;
  EXPECT_TRUE(streams_.front().write("unread"));
  settle();
  pass(16s);
  EXPECT_EQ(gone_, 0);
  streams_.front().finish();
  settle();
  client.say(get("/events"));
  ASSERT_TRUE(until([&] { return streams_.size() == 2; }));
  settle();
  pass(16s);
  EXPECT_EQ(gone_, 0) << "an interval is not enough";
  pass(16s);
  EXPECT_EQ(gone_, 1);
}

TEST_F(Later, ProducersWriteAgainFromInside) {
  const Client client = ask(get("/events"));
  int left = 100;
  streams_.front().on_drained([&] {
    if (left-- > 0) {
      EXPECT_TRUE(streams_.front().write("more "));
    } else {
      streams_.clear();
    }
  });
  EXPECT_TRUE(streams_.front().write("first "));
  EXPECT_TRUE(until([&] { return client->is_over(); }));
  EXPECT_EQ(count_of(client->received, "more "), 100U);
}

TEST(Events, AreWrittenLineByLine) {
  EXPECT_EQ(format_event({.event = {}, .data = "one", .id = {}}), "data: one\n\n");
  EXPECT_EQ(format_event({.event = "e\r\nvent",
                          .data = "a\nb\r\nc\rd\n",
                          .id = std::string_view{"4\0"
                                                 "2",
                                                 3}}),
            "id: 42\nevent: event\ndata: a\ndata: b\ndata: c\ndata: d\ndata: \n\n");
  EXPECT_EQ(format_event({.event = {}, .data = {}, .id = {}}), "data: \n\n");
}

// ---- caps -------------------------------------------------------------------------------------

TEST_F(Later, LongPollsAndStreamsHaveACapOfTheirOwn) {
  make({.connections_max = 8, .long_lived_max = 3});
  std::vector<Client> clients;
  clients.push_back(ask(get("/poll")));
  clients.push_back(ask(get("/events")));
  clients.push_back(ask(get("/poll")));
  EXPECT_EQ(server_->long_lived(), 3U);
  for (const char* path : {"/poll", "/events"}) {
    const std::string rejected = alone(get(path));
    EXPECT_TRUE(rejected.starts_with("HTTP/1.1 503")) << rejected;
    EXPECT_NE(rejected.find("retry-after: 1\r\n"), std::string::npos);
  }
  EXPECT_EQ(server_->counts().long_lived_rejected, 2U);
  // Probes come and go, more than there is room for, and none of the long-lived gives way.
  std::vector<Client> probes;
  for (int i = 0; i < 30; ++i) {
    probes.push_back(connect());
    EXPECT_TRUE(said(*probes.back(), get("/short"), "short\n").starts_with("HTTP/1.1 200")) << i;
  }
  EXPECT_EQ(gone_, 0);
  EXPECT_EQ(server_->long_lived(), 3U);
  EXPECT_LE(server_->connections(), 8U);
  // One that ends makes room for another.
  kept_.front().send(text_response(200, "news"));
  EXPECT_TRUE(comes(*clients.front(), "news"));
  clients.push_back(ask(get("/poll")));
  EXPECT_EQ(server_->long_lived(), 3U);
}

// A route that does not say that it streams counts from the stream on.
TEST_F(Later, EveryStreamCounts) {
  make({.long_lived_max = 1});
  routes_.add("GET", "/undeclared", [this](const HttpRequest&, Responder responder) {
    streams_.push_back(responder.stream({}));
  });
  const Client first = ask(get("/undeclared"));
  EXPECT_TRUE(streams_.back().is_open());
  EXPECT_EQ(server_->long_lived(), 1U);
  EXPECT_TRUE(alone(get("/undeclared")).starts_with("HTTP/1.1 503"));
  EXPECT_FALSE(streams_.back().is_open());
  streams_.front().finish();
  EXPECT_TRUE(comes(*first, "0\r\n\r\n"));
  EXPECT_EQ(server_->long_lived(), 0U);
}

// ---- drain ------------------------------------------------------------------------------------

TEST_F(Later, DrainingEndsWhatHasNoEnd) {
  const Client idle = connect();
  (void)said(*idle, get("/short"), "short\n");
  const Client slow = connect();
  slow->say("GET /short HTTP/1.1\r\n");
  const Client later = ask(get("/later"));
  const Client poll = ask(get("/poll"));
  kept_.back().set_deadline(50s, {.status = 304, .headers = {}, .body = {}});
  const Client events = ask(get("/events"));
  EXPECT_TRUE(streams_.front().write("last words"));
  server_->drain();
  settle();
  EXPECT_TRUE(until([&] { return idle->is_over() && poll->is_over() && events->is_over(); }));
  EXPECT_TRUE(poll->received.starts_with("HTTP/1.1 304")) << poll->received;
  EXPECT_NE(poll->received.find("Connection: close"), std::string::npos);
  EXPECT_EQ(decoded(events->received).data, "last words");
  EXPECT_TRUE(decoded(events->received).is_complete);
  EXPECT_EQ(gone_, 2) << "both handlers hear of it";
  // What is in flight is finished, and closed behind that.
  slow->say("Host: localhost\r\n\r\n");
  EXPECT_TRUE(until([&] { return slow->is_over(); }));
  EXPECT_TRUE(slow->received.ends_with("short\n"));
  EXPECT_NE(slow->received.find("Connection: close"), std::string::npos);
  for (const Client* over : {&poll, &events, &slow}) (*over)->stream.close();
  EXPECT_TRUE(until([&] { return server_->connections() == 1; }));
  kept_.front().send(text_response(200, "in time"));
  EXPECT_TRUE(until([&] { return later->is_over(); }));
  EXPECT_TRUE(later->received.ends_with("in time"));
  later->stream.close();
  EXPECT_TRUE(until([&] { return server_->connections() == 0; }));
  // Who comes late is served once.
  const Client late = connect();
  late->say(get("/short") + get("/short"));
  EXPECT_TRUE(until([&] { return late->is_over(); }));
  EXPECT_EQ(count_of(late->received, "HTTP/1.1 200"), 1U);
}

// What hears of one's end may respond to the next.
TEST_F(Later, AHandleMayBeUsedWhileTheServerDrains) {
  const Client first = ask(get("/poll"));
  const Client second = ask(get("/poll"));
  kept_.front().on_gone([this] { kept_.back().send(text_response(200, "the other")); });
  server_->drain();
  EXPECT_TRUE(until([&] { return first->is_over() && second->is_over(); }));
  EXPECT_TRUE(first->received.starts_with("HTTP/1.1 503")) << first->received;
  EXPECT_TRUE(second->received.ends_with("the other")) << second->received;
}

// Its headers promised a connection that stays open; draining closes it all the same.
TEST_F(Later, DrainingClosesBehindAResponseThatHadBegun) {
  const Client slow = connect(4096);
  slow->listens = false;
  slow->say(get("/long"));
  settle();
  server_->drain();
  slow->listens = true;
  slow->talk();
  EXPECT_TRUE(until([&] { return slow->is_over(); }));
  EXPECT_GT(slow->received.size(), kLong);
  EXPECT_EQ(server_->connections(), 1U) << "until the client has read all and closes";
  slow->stream.close();
  EXPECT_TRUE(until([&] { return server_->connections() == 0; }));
}

}  // namespace
}  // namespace sluice::net
