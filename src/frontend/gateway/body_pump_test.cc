// Bodies between real sockets: a source and a sink that the test holds the other ends of.
#include "frontend/gateway/body_pump.h"

#include "net/net_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <sys/socket.h>

namespace sluice::gateway {
namespace {

using Kind = net::BodyFraming::Kind;
using Progress = BodyPump::Progress;
using net::testing::connected_pair;

class Pump : public ::testing::Test {
 protected:
  // Streams are told to pump by the loop; the test pumps itself.
  struct Side {
    void on_ready() {}
    net::Stream stream{net::Callback<>::to<&Side::on_ready>(*this)};
  };

  Pump() : Pump(connected_pair(), connected_pair()) {}
  Pump(net::testing::Pair in, net::testing::Pair out)
      : writer_(std::move(in.client)), reader_(std::move(out.client)) {
    EXPECT_TRUE(from_.stream.open(*loop_, std::move(in.server)).is_done());
    EXPECT_TRUE(to_.stream.open(*loop_, std::move(out.server)).is_done());
  }

  void begin(const net::BodyFraming& framing, bool chunked, std::uint64_t bytes_max = 0) {
    pump_.begin({.from = &from_.stream,
                 .to = &to_.stream,
                 .window = &window_,
                 .reader = net::BodyReader{framing, trailers_},
                 .chunked = chunked,
                 .trailers = true,
                 .bytes_max = bytes_max,
                 .head = "head\r\n\r\n",
                 .trailer_buffer = trailer_buffer_});
  }
  void say(std::string_view bytes) {
    ASSERT_EQ(::send(writer_.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }
  // Pumps until it does something else than wait, hearing the sink meanwhile.
  Progress pump() {
    Progress progress = Progress::waiting;
    (void)loop_.until([&] {
      progress = pump_.pump();
      hear();
      return progress != Progress::waiting;
    });
    hear();
    return progress;
  }
  void hear() {
    std::array<char, 65536> bytes;
    for (ssize_t got = 0; (got = ::recv(reader_.get(), bytes.data(), bytes.size(), 0)) > 0;) {
      heard_.append(bytes.data(), static_cast<std::size_t>(got));
    }
  }

  net::testing::Loop loop_;
  FileDescriptor writer_;
  FileDescriptor reader_;
  Side from_;
  Side to_;
  std::array<char, 4096> buffer_;
  std::array<char, 512> trailer_buffer_;
  std::array<HeaderView, 8> trailers_;
  Window window_{.buffer = buffer_};
  BodyPump pump_;
  std::string heard_;
};

TEST_F(Pump, IsNotDoneBeforeItHasBegun) {
  EXPECT_FALSE(pump_.has_begun());
  EXPECT_FALSE(pump_.is_done());
  begin({}, false);
  EXPECT_EQ(pump(), Progress::done);
  EXPECT_TRUE(pump_.is_done());
  EXPECT_EQ(heard_, "head\r\n\r\n");
  pump_.reset();
  EXPECT_FALSE(pump_.is_done());
}

// What was read before with the head comes first, and what belongs to the next message stays.
TEST_F(Pump, TakesItsLengthAndNoByteMore) {
  const std::string_view there = "HEADfirst ";
  std::ranges::copy(there, buffer_.begin());
  window_ = {.buffer = buffer_, .floor = 4, .begin = 4, .end = there.size()};
  begin({.kind = Kind::length, .length = 12}, false);
  say("secondNEXT");
  EXPECT_EQ(pump(), Progress::done);
  EXPECT_EQ(heard_, "head\r\n\r\nfirst second");
  EXPECT_EQ(window_.bytes(), "NEXT");
  EXPECT_EQ(pump_.bytes(), 12U);
  EXPECT_EQ((std::string_view{buffer_.data(), 4}), "HEAD") << "what is still needed is left alone";
}

TEST_F(Pump, FramesChunksAnew) {
  begin({.kind = Kind::chunked}, true);
  say("3;x=y\r\nabc\r\n0004\r\ndefg\r\n0\r\nX-Sum: 1\r\n\r\nNEXT");
  EXPECT_EQ(pump(), Progress::done);
  EXPECT_EQ(heard_, "head\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\nX-Sum: 1\r\n\r\n");
  EXPECT_EQ(window_.bytes(), "NEXT");
}

TEST_F(Pump, EndsWithTheConnectionOnlyWhereThatIsTheEnd) {
  begin({.kind = Kind::until_close}, true);
  say("all");
  ::shutdown(writer_.get(), SHUT_WR);
  EXPECT_EQ(pump(), Progress::done);
  EXPECT_EQ(heard_, "head\r\n\r\n3\r\nall\r\n0\r\n\r\n");
}

TEST_F(Pump, TellsThatTheSourceEndedTooEarly) {
  begin({.kind = Kind::length, .length = 4}, false);
  say("all");
  ::shutdown(writer_.get(), SHUT_WR);
  EXPECT_EQ(pump(), Progress::source_ended);
}

TEST_F(Pump, TellsWhatIsWrongWithABody) {
  begin({.kind = Kind::chunked}, true);
  say("nonsense\r\n");
  EXPECT_EQ(pump(), Progress::source_wrong);
  EXPECT_EQ(pump_.fault().status, 400);
}

// The last byte that is allowed goes, and the end of a body that is longer never does.
// Trailers are understood as a whole. Behind a long head there may be no room for all of them, and
// waiting for it would never end.
TEST_F(Pump, GivesUpOnTrailersThatFindNoRoom) {
  window_ = {.buffer = buffer_, .floor = 4000, .begin = 4000, .end = 4000};
  begin({.kind = Kind::chunked}, true);
  say("2\r\nok\r\n0\r\nX-Sum: " + std::string(200, 'x') + "\r\n\r\n");
  EXPECT_EQ(pump(), Progress::source_wrong);
  EXPECT_EQ(pump_.fault().status, 431);
}

TEST_F(Pump, StopsAtTheMostThatMayPass) {
  begin({.kind = Kind::chunked}, true, 5);
  say("5\r\nhello\r\n0\r\n\r\n");
  EXPECT_EQ(pump(), Progress::done);
  begin({.kind = Kind::chunked}, true, 5);
  say("5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n");
  EXPECT_EQ(pump(), Progress::source_wrong);
  EXPECT_EQ(pump_.fault().status, 413);
}

// However much there is and however fast the sink: so much at a time, and then others may go on.
TEST_F(Pump, StopsBehindWhatOneTurnMayMove) {
  begin({.kind = Kind::until_close}, false);
  const std::string piece(4096, 'x');
  std::size_t given = 0;
  while (::send(writer_.get(), piece.data(), piece.size(), MSG_DONTWAIT) == 4096) given += 4096;
  ASSERT_GT(given, 2 * BodyPump::kBytesPerTurn);
  ASSERT_EQ(pump(), Progress::paused);
  EXPECT_GE(pump_.bytes() + buffer_.size(), BodyPump::kBytesPerTurn);
  EXPECT_LE(pump_.bytes(), BodyPump::kBytesPerTurn + buffer_.size());
  ::shutdown(writer_.get(), SHUT_WR);
  Progress progress = Progress::paused;
  while (progress == Progress::paused) progress = pump();
  EXPECT_EQ(progress, Progress::done);
  EXPECT_GE(pump_.bytes(), given) << "nothing is lost by stopping";
}

TEST_F(Pump, TellsThatTheSinkFailed) {
  begin({.kind = Kind::length, .length = 1 << 20}, false);
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(reader_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  reader_ = FileDescriptor{};
  say("something");
  EXPECT_EQ(pump(), Progress::sink_failed);
}

class NarrowPump : public Pump {
 protected:
  NarrowPump() : Pump(connected_pair(4096, 4096), connected_pair(4096, 4096)) {}
};

// A sink that takes nothing: the pump reads no more than its one buffer, and then lets the source
// wait. Afterwards every byte arrives once and in order.
TEST_F(NarrowPump, ReadsNoFasterThanTheSinkTakes) {
  constexpr std::size_t kBytes = 1'000'000;
  begin({.kind = Kind::length, .length = kBytes}, false);
  std::string sent(kBytes, '\0');
  for (std::size_t i = 0; i < kBytes; ++i) sent[i] = static_cast<char>(i * 31 + i / 251);
  std::size_t given = 0;
  const auto give = [&] {
    const ssize_t took = ::send(writer_.get(), sent.data() + given, kBytes - given, 0);
    if (took > 0) given += static_cast<std::size_t>(took);
    return took > 0;
  };
  for (int idle = 0; idle < 5; ++idle) {
    while (give()) idle = 0;
    (void)pump_.pump();
    loop_->turn(std::chrono::milliseconds{10});
  }
  EXPECT_LT(given, kBytes / 4);
  EXPECT_FALSE(pump_.waits_for_source());
  ASSERT_TRUE(loop_.until([&] {
    (void)give();
    const Progress progress = pump_.pump();
    hear();
    return progress == Progress::done;
  }));
  ASSERT_TRUE(loop_.until([&] {
    hear();
    return heard_.size() == kBytes + 8;
  }));
  EXPECT_TRUE(heard_.substr(8) == sent);
}

}  // namespace
}  // namespace sluice::gateway
