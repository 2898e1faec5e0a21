// Streams without TLS, on real sockets.
#include "net/stream.h"

#include "net/lingering.h"
#include "net/net_fixture.h"
#include "support/temp_folder.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <sys/socket.h>

namespace sluice::net {
namespace {

using namespace std::chrono_literals;
using testing::connected_pair;
using testing::Loop;
using testing::Pair;
using testing::Talker;

std::string some_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * 31 + i / 251);
  return bytes;
}

struct Connection {
  Loop loop;
  Talker client{*loop};
  Talker server{*loop};

  explicit Connection(Pair pair = connected_pair()) {
    client.open(std::move(pair.client));
    server.open(std::move(pair.server));
    loop->turn(0s);  // what epoll tells of a new descriptor
  }
};

bool is_error(const std::optional<IoFailure>& failure, int error) {
  return failure && failure->kind == IoFailure::Kind::system &&
         failure->code == static_cast<unsigned long>(error);
}

TEST(Stream, CarriesBytesBothWays) {
  Connection c;
  c.server.echoes = true;
  c.client.say("hello");
  ASSERT_TRUE(c.loop.until([&] { return c.client.received == "hello"; }));
  EXPECT_EQ(c.server.received, "hello");
}

// Buffers of the system much smaller than the message: every write goes in part.
TEST(Stream, CarriesMuchThroughLittle) {
  Connection c{connected_pair(4096, 4096)};
  const std::string message = some_bytes(3'000'000);
  c.server.echoes = true;
  c.server.read_size = 1000;
  c.client.say(message);
  EXPECT_FALSE(c.client.to_send.empty());
  EXPECT_FALSE(c.client.stream.can_write());
  ASSERT_TRUE(c.loop.until([&] { return c.client.received.size() == message.size(); }));
  EXPECT_EQ(c.client.received, message);
}

// Long before there is room to write again, it shows that the peer takes something.
TEST(Stream, KnowsHowMuchThePeerHasNotTaken) {
  Loop loop;
  Talker client{*loop};
  Pair pair = connected_pair();
  client.open(std::move(pair.client));
  EXPECT_EQ(client.stream.unsent(), 0U);
  client.say(some_bytes(16'000'000));
  ASSERT_FALSE(client.to_send.empty());
  const std::size_t before = client.stream.unsent();
  EXPECT_GT(before, 0U);
  std::string taken(65536, '\0');
  ASSERT_TRUE(loop.until([&] {
    (void)::recv(pair.server.get(), taken.data(), taken.size(), MSG_DONTWAIT);
    return client.stream.unsent() < before;
  }));
}

// A short read says that there is no more, so nobody asks again before the system tells of more.
TEST(Stream, RemembersThatThereIsNothingToRead) {
  Connection c;
  EXPECT_FALSE(c.server.stream.can_read());
  EXPECT_EQ(c.server.calls, 0) << "being writable is no news";
  c.client.say("12345678");
  ASSERT_TRUE(c.loop.until([&] { return c.server.calls == 1; }));
  EXPECT_EQ(c.server.received, "12345678");
  EXPECT_FALSE(c.server.stream.can_read());
  c.client.say("9");
  ASSERT_TRUE(c.loop.until([&] { return c.server.calls == 2; }));
  EXPECT_EQ(c.server.received, "123456789");
}

// A read that filled its room may have left something behind.
TEST(Stream, StaysReadableWhenTheRoomWasFilled) {
  Connection c;
  c.server.listens = false;
  c.client.say("12345678");
  ASSERT_TRUE(c.loop.until([&] { return c.server.stream.can_read(); }));
  std::array<char, 8> exact{};
  EXPECT_EQ(c.server.stream.read(exact).bytes, exact.size());
  EXPECT_TRUE(c.server.stream.can_read());
  EXPECT_TRUE(c.server.stream.read(exact).is_blocked());
  EXPECT_FALSE(c.server.stream.can_read());
}

TEST(Stream, ReadsNothingIntoNoRoomAndDoesNotTakeItForTheEnd) {
  Connection c;
  c.server.listens = false;
  c.client.say("x");
  ASSERT_TRUE(c.loop.until([&] { return c.server.stream.can_read(); }));
  EXPECT_TRUE(c.server.stream.read({}).is_done());
  c.server.listens = true;
  c.server.talk();
  EXPECT_EQ(c.server.received, "x");
}

// Who does not read slows the peer down, and hears nothing more until it reads again.
TEST(Stream, HoldsAFastPeerBack) {
  Connection c{connected_pair(4096, 4096)};
  const std::string message = some_bytes(200'000);
  c.server.listens = false;
  c.client.say(message);
  ASSERT_TRUE(c.loop.until([&] { return c.server.stream.can_read(); }));
  for (int i = 0; i < 20; ++i) c.loop->turn(0s);
  EXPECT_FALSE(c.client.to_send.empty());
  EXPECT_EQ(c.server.calls, 1);
  c.server.listens = true;
  c.server.talk();
  ASSERT_TRUE(c.loop.until([&] { return c.server.received == message; }));
}

TEST(Stream, WritesMorePartsThanTheSystemTakesAtOnce) {
  Connection c;
  std::string letters = some_bytes(3000);
  std::vector<iovec> parts;
  for (char& letter : letters) parts.push_back({.iov_base = &letter, .iov_len = 1});
  std::size_t sent = 0;
  while (sent < parts.size()) {
    const IoResult result = c.client.stream.write(std::span{parts}.subspan(sent));
    ASSERT_TRUE(result.is_done());
    sent += result.bytes;
  }
  ASSERT_TRUE(c.loop.until([&] { return c.server.received == letters; }));
}

// The last bytes and the end behind them may be told of together.
TEST(Stream, ReadsTheEndBehindTheLastBytes) {
  Connection c;
  c.client.say("last words");
  c.client.stream.finish_writing();
  ASSERT_TRUE(c.loop.until([&] { return c.server.ended; }));
  EXPECT_EQ(c.server.received, "last words");
  EXPECT_TRUE(c.server.stream.peer_hung_up());
  std::array<char, 1> more{};
  EXPECT_TRUE(c.server.stream.read(more).is_closed()) << "and again";
}

TEST(Stream, AHalfClosedConnectionStillCarriesTheAnswer) {
  Connection c;
  c.client.say("question");
  c.client.stream.finish_writing();
  ASSERT_TRUE(c.loop.until([&] { return c.server.ended; }));
  c.server.say("answer");
  c.server.stream.close();
  ASSERT_TRUE(c.loop.until([&] { return c.client.ended; }));
  EXPECT_EQ(c.client.received, "answer");
}

// Somebody who waits for its answer and leaves: the owner hears of it although it does not read.
TEST(Stream, TellsThatAPeerLeftWhoseBytesAreUnread) {
  Connection c;
  c.server.listens = false;
  c.client.say("question");
  ASSERT_TRUE(c.loop.until([&] { return c.server.calls == 1; }));
  EXPECT_FALSE(c.server.stream.peer_hung_up());
  c.client.stream.close();
  ASSERT_TRUE(c.loop.until([&] { return c.server.calls == 2; }));
  EXPECT_TRUE(c.server.stream.peer_hung_up());
}

// Whoever ends its own direction may wait for an answer; whoever is gone does not, and that shows
// as soon as something is said to it.
TEST(Stream, TellsAPeerThatIsGoneFromOneThatOnlyEnded) {
  Connection c;
  c.server.listens = false;
  c.client.stream.finish_writing();
  ASSERT_TRUE(c.loop.until([&] { return c.server.stream.peer_hung_up(); }));
  EXPECT_FALSE(c.server.stream.is_broken());
  c.client.stream.close();
  c.server.say("are you there?");
  ASSERT_TRUE(c.loop.until([&] { return c.server.stream.is_broken(); }));
}

// Bytes that were looked at are still there, for whoever is to read them.
TEST(Stream, LooksAtBytesWithoutTakingThem) {
  Connection c;
  c.server.listens = false;
  std::array<char, 16> seen{};
  EXPECT_TRUE(c.server.stream.peek(seen).is_blocked());
  c.client.say("head");
  ASSERT_TRUE(c.loop.until([&] { return c.server.calls == 1; }));
  EXPECT_EQ(c.server.stream.peek(seen).bytes, 4);
  c.server.stream.wait_for_more();
  EXPECT_TRUE(c.server.stream.peek(seen).is_blocked());
  c.client.say("er");
  ASSERT_TRUE(c.loop.until([&] { return c.server.calls == 2; }));
  EXPECT_EQ(c.server.stream.peek(seen).bytes, 6);
  std::array<char, 16> read{};
  EXPECT_EQ(c.server.stream.read(read).bytes, 6);
  EXPECT_EQ(std::string_view(read.data(), 6), "header");
}

TEST(Stream, AResetIsAnErrorForThePeer) {
  Connection c;
  c.client.stream.reset();
  EXPECT_FALSE(c.client.stream.is_open());
  ASSERT_TRUE(c.loop.until([&] { return c.server.is_over(); }));
  EXPECT_TRUE(c.server.stream.is_broken());
  EXPECT_TRUE(is_error(c.server.failure, ECONNRESET));
  EXPECT_EQ(c.server.failure->text(), "Connection reset by peer");
}

// Nobody reads at the other end: first the system answers with a reset, then writing is closed.
TEST(Stream, WritingToAPeerThatIsGoneEndsWithoutASignal) {
  Connection c;
  c.server.stream.close();
  c.client.listens = false;
  const bool over = c.loop.until([&] {
    const IoResult result = c.client.stream.write("x");
    return result.is_closed() || result.is_failed();
  });
  EXPECT_TRUE(over);
}

TEST(Stream, MayBeEndedFromInsideItsCall) {
  struct Mayfly {
    std::unique_ptr<Mayfly>* self = nullptr;
    Stream stream{Callback<>::to<&Mayfly::on_ready>(*this)};
    void on_ready() const { self->reset(); }
  };
  const Loop loop;
  Pair pair = connected_pair();
  auto mayfly = std::make_unique<Mayfly>();
  mayfly->self = &mayfly;
  ASSERT_TRUE(mayfly->stream.open(*loop, std::move(pair.server)).is_done());
  ASSERT_EQ(::send(pair.client.get(), "x", 1, 0), 1);
  EXPECT_TRUE(loop.until([&] { return mayfly == nullptr; }));
}

// ---- connecting -------------------------------------------------------------------------------

TEST(Stream, ConnectsAndSaysSo) {
  const Loop loop;
  const Listener listener = listen_on(testing::free_port()).value();
  Talker client{*loop};
  const IoResult begun = client.stream.connect(*loop, testing::address_of(listener));
  ASSERT_FALSE(begun.is_failed()) << begun.why.text();
  ASSERT_TRUE(loop.until([&] { return client.established; }));
  client.say("x");
  EXPECT_TRUE(client.to_send.empty());
}

TEST(Stream, SaysWhyItCannotConnect) {
  const Loop loop;
  SocketAddress nobody;
  {
    const Listener listener = listen_on(testing::free_port()).value();
    nobody = testing::address_of(listener);
  }
  Talker client{*loop};
  const IoResult begun = client.stream.connect(*loop, nobody);
  if (begun.is_failed()) client.failure = begun.why;
  ASSERT_TRUE(loop.until([&] { return client.failure.has_value(); }));
  EXPECT_TRUE(is_error(client.failure, ECONNREFUSED));
}

TEST(Stream, ConnectsToUnixSockets) {
  const Loop loop;
  const sluice::testing::TempFolder folder;
  const std::string path = folder.file("socket");
  Talker client{*loop};
  EXPECT_TRUE(client.stream.connect(*loop, *SocketAddress::of_path(path)).is_failed());
  const Listener listener = listen_on(Endpoint::of_path(path)).value();
  EXPECT_TRUE(client.stream.connect(*loop, *SocketAddress::of_path(path)).is_done());
  client.say("x");
  EXPECT_TRUE(client.to_send.empty());
  EXPECT_TRUE(client.established);
}

// ---- lingering --------------------------------------------------------------------------------

// A server refuses an upload at its first bytes: the client, who goes on sending, reads the answer
// all the same, and then the end, never an error.
TEST(LingeringCloser, LetsTheAnswerArriveThoughTheClientGoesOnSending) {
  Connection c;
  LingeringCloser closer{*c.loop};
  c.server.listens = false;
  c.client.listens = false;
  c.client.say(some_bytes(500'000));
  ASSERT_TRUE(c.loop.until([&] { return c.server.stream.can_read(); }));
  c.server.say("429, enough");
  closer.close(c.server.stream);
  EXPECT_FALSE(c.server.stream.is_open());
  EXPECT_EQ(closer.size(), 1U);
  ASSERT_TRUE(c.loop.until([&] { return c.client.to_send.empty(); }));
  c.client.listens = true;
  c.client.talk();
  ASSERT_TRUE(c.loop.until([&] { return c.client.is_over(); }));
  EXPECT_FALSE(c.client.failure) << c.client.failure->text();
  EXPECT_EQ(c.client.received, "429, enough");
  c.client.stream.close();
  ASSERT_TRUE(c.loop.until([&] { return closer.size() == 0; }));
  EXPECT_EQ(closer.cut_off(), 0U);
}

// The contrast: what the closer is for.
TEST(LingeringCloser, IsNeededSinceClosingAloneResets) {
  Connection c;
  c.server.listens = false;
  c.client.say(some_bytes(500'000));
  ASSERT_TRUE(c.loop.until([&] { return c.server.stream.can_read(); }));
  c.server.say("429, enough");
  c.server.stream.close();
  ASSERT_TRUE(c.loop.until([&] { return c.client.is_over(); }));
  EXPECT_TRUE(c.client.failure);
}

TEST(LingeringCloser, CutsOffWhoNeverStops) {
  ManualClock clock;
  const auto loop = EventLoop::create(clock).value();
  Pair pair = connected_pair();
  Talker server{*loop};
  server.open(std::move(pair.server));
  LingeringCloser closer{*loop, {.time = 5s}};
  closer.close(server.stream);
  clock.advance(4s);
  loop->turn(0s);
  EXPECT_EQ(closer.size(), 1U);
  clock.advance(2s);
  loop->turn(0s);
  EXPECT_EQ(closer.size(), 0U);
  EXPECT_EQ(closer.cut_off(), 1U);
}

TEST(LingeringCloser, CutsOffWhoSendsTooMuch) {
  Connection c;
  LingeringCloser closer{*c.loop, {.bytes = 100'000}};
  closer.close(c.server.stream);
  c.client.say(some_bytes(3'000'000));
  ASSERT_TRUE(c.loop.until([&] { return closer.size() == 0; }));
  EXPECT_EQ(closer.cut_off(), 1U);
}

TEST(LingeringCloser, GivesUpTheOldestWhenThereAreTooMany) {
  const Loop loop;
  LingeringCloser closer{*loop, {.connections = 2}};
  std::vector<FileDescriptor> clients;
  for (int i = 0; i < 3; ++i) {
    Pair pair = connected_pair();
    Talker server{*loop};
    server.open(std::move(pair.server));
    clients.push_back(std::move(pair.client));
    closer.close(server.stream);
    closer.close(server.stream);  // closed already
  }
  EXPECT_EQ(closer.size(), 2U);
  EXPECT_EQ(closer.cut_off(), 1U);
}

}  // namespace
}  // namespace sluice::net
