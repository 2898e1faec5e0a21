#include "sim/network.h"

#include "sim/process.h"
#include "sim/random.h"
#include "sim/world.h"
#include <sluice/time.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;

// Writes down what happens to it, and when.
struct Recorder final : ConnectionHandler {
  explicit Recorder(const World& of) : world(of) {}

  void opened(Socket socket) override {
    open = socket;
    was_opened = true;
  }
  void received(Socket, std::string_view message) override {
    messages.emplace_back(message);
    times.push_back(world.now());
  }
  void closed(Socket, Closed how) override { ends.push_back(how); }

  const World& world;
  Socket open;
  bool was_opened = false;
  std::vector<std::string> messages;
  std::vector<WorldTime> times;
  std::vector<Closed> ends;
};

// Accepts everything, with a recorder for each connection; answers if told to.
struct Server final : Listener {
  explicit Server(World& of) : world(of) {}
  ConnectionHandler* accepted(Socket socket, Address) override {
    if (rejects) return nullptr;
    sockets.push_back(socket);
    return &connections.emplace_back(world);
  }
  World& world;
  bool rejects = false;
  std::vector<Socket> sockets;
  std::deque<Recorder> connections;
};

using Texts = std::vector<std::string>;

class Networks : public ::testing::Test {
 protected:
  Networks() { network_.listen(there_, server_); }

  Socket connect() { return network_.connect(here_, there_, client_); }
  void run(Nanos time = 1s) { world_.run_for(time); }
  Recorder& accepted(std::size_t i = 0) { return server_.connections.at(i); }
  void slow(Nanos delay) {
    network_.path(here_, there_) = {.delay = delay, .jitter = Nanos{0}};
    network_.path(there_, here_) = {.delay = delay, .jitter = Nanos{0}};
  }

  World world_{1};
  Network network_{world_};
  Process client_process_{world_, "client", {}};
  Process server_process_{world_, "server", {}};
  Address here_ = network_.add(client_process_);
  Address there_ = network_.add(server_process_);
  Recorder client_{world_};
  Server server_{world_};
};

// ---- connections ------------------------------------------------------------------------------

TEST_F(Networks, DeliverOnceAndInOrder) {
  network_.path(here_, there_).jitter = 10ms;
  const Socket socket = connect();
  Texts sent;
  for (int i = 0; i < 100; ++i) {
    sent.push_back(fmt::format("message {}", i));
    network_.send(socket, sent.back());
    run(100us);
  }
  run();
  EXPECT_TRUE(client_.was_opened);
  EXPECT_EQ(client_.open, socket);
  EXPECT_EQ(accepted().messages, sent);
  network_.send(server_.sockets[0], "reply");
  run();
  EXPECT_EQ(client_.messages, Texts{"reply"});
}

TEST_F(Networks, TakeTheTimeOfThePath) {
  slow(10ms);
  const Socket socket = connect();
  network_.send(socket, "a");
  run(10ms - Nanos{1});
  EXPECT_TRUE(server_.connections.empty());
  run(Nanos{1});
  EXPECT_EQ(accepted().messages, Texts{"a"});
  EXPECT_FALSE(client_.was_opened);
  run(10ms);
  EXPECT_TRUE(client_.was_opened);
}

// A lost segment holds back those behind it, and nothing is missing.
TEST_F(Networks, DelayWhatWasLost) {
  network_.path(here_, there_).loss_ppm = 300'000;
  const Socket socket = connect();
  Texts sent;
  for (int i = 0; i < 50; ++i) {
    sent.push_back(std::to_string(i));
    network_.send(socket, sent.back());
    run(10ms);
  }
  run(2s);
  EXPECT_EQ(accepted().messages, sent);
  EXPECT_GT(accepted().times.back() - accepted().times.front(), 200ms);
}

TEST_F(Networks, EndAConnectionAfterWhatWasSent) {
  const Socket socket = connect();
  network_.send(socket, "last");
  network_.close(socket);
  network_.send(socket, "never");
  run();
  EXPECT_EQ(accepted().messages, Texts{"last"});
  EXPECT_EQ(accepted().ends, std::vector{Closed::by_peer});
  EXPECT_TRUE(client_.ends.empty());  // it has closed: nothing is told to it
  EXPECT_FALSE(network_.is_open(socket));
  EXPECT_FALSE(network_.is_open(server_.sockets[0]));
}

TEST_F(Networks, RefuseWhereNothingListens) {
  (void)network_.connect(there_, here_, client_);
  run();
  EXPECT_EQ(client_.ends, std::vector{Closed::refused});
}

TEST_F(Networks, ResetWhatAListenerRejects) {
  server_.rejects = true;
  const Socket socket = connect();
  run();
  EXPECT_EQ(client_.ends, std::vector{Closed::reset});
  EXPECT_FALSE(network_.is_open(socket));
}

// A value of a connection that is gone does nothing to the one in its place.
TEST_F(Networks, DistinguishConnectionsOfOnePlace) {
  const Socket first = connect();
  network_.close(first);
  run();
  const Socket second = connect();
  run();
  EXPECT_EQ(first.connection, second.connection);
  EXPECT_NE(first, second);
  network_.send(first, "x");
  network_.close(first);
  network_.reset(first);
  run();
  EXPECT_TRUE(network_.is_open(second));
  EXPECT_TRUE(accepted(1).messages.empty());
}

// ---- faults -----------------------------------------------------------------------------------

// One way: what goes the other way still arrives.
TEST_F(Networks, HoldBackWhatIsCutUntilItHeals) {
  const Socket socket = connect();
  run();
  network_.cut(here_, there_);
  network_.send(socket, "a");
  network_.send(socket, "b");
  network_.send(server_.sockets[0], "reply");
  run(10s);
  EXPECT_TRUE(accepted().messages.empty());
  EXPECT_EQ(client_.messages, Texts{"reply"});
  const WorldTime healed = world_.now();
  network_.heal(here_, there_);
  run();
  EXPECT_EQ(accepted().messages, (Texts{"a", "b"}));
  EXPECT_LE(accepted().times.back() - healed, 201ms);
}

// Also what was in flight when the cut began.
TEST_F(Networks, CutWhatIsInFlight) {
  slow(10ms);
  const Socket socket = connect();
  run();
  network_.send(socket, "a");
  run(5ms);
  network_.cut(here_, there_);
  run();
  EXPECT_TRUE(accepted().messages.empty());
  network_.heal(here_, there_);
  run();
  EXPECT_EQ(accepted().messages, Texts{"a"});
}

TEST_F(Networks, NeverOpenAConnectionThroughACut) {
  network_.cut(there_, here_);
  (void)connect();
  run(10s);
  EXPECT_EQ(server_.connections.size(), 1U);
  EXPECT_FALSE(client_.was_opened);
}

TEST_F(Networks, PartitionGroups) {
  Process third{world_, "third", {}};
  const Address beside = network_.add(third);
  Recorder neighbour{world_};
  const std::array group{there_, beside};
  network_.partition(group);
  (void)connect();
  (void)network_.connect(beside, there_, neighbour);
  run();
  EXPECT_FALSE(client_.was_opened);
  EXPECT_TRUE(neighbour.was_opened);
  network_.heal_all();
  run();
  EXPECT_TRUE(client_.was_opened);
}

TEST_F(Networks, StallForATime) {
  const Socket socket = connect();
  run();
  network_.stall(here_, there_, 3s);
  network_.send(socket, "a");
  run(2'999ms);
  EXPECT_TRUE(accepted().messages.empty());
  run(2ms);
  EXPECT_EQ(accepted().messages, Texts{"a"});
}

// Of what is in flight, the first so many arrive: from none to all, over many seeds; never with a
// gap. Both sides learn that the connection broke, not how much arrived.
TEST(Resets, LoseTheTailOfWhatIsInFlight) {
  std::array<int, 5> arrived{};
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    World world{seed};
    Network network{world};
    Process a{world, "a", {}};
    Process b{world, "b", {}};
    const Address here = network.add(a);
    const Address there = network.add(b);
    Recorder client{world};
    Server server{world};
    network.listen(there, server);
    const Socket socket = network.connect(here, there, client);
    world.run_for(1s);
    Texts sent;
    for (int i = 0; i < 4; ++i) network.send(socket, sent.emplace_back(std::to_string(i)));
    ASSERT_EQ(network.reset_between(there, here), 1U);
    network.send(socket, "after");
    world.run_for(1s);
    const Texts& messages = server.connections[0].messages;
    ASSERT_LE(messages.size(), 4U);
    ASSERT_TRUE(std::equal(messages.begin(), messages.end(), sent.begin()));
    ++arrived[messages.size()];
    ASSERT_EQ(client.ends, std::vector{Closed::reset});
    ASSERT_EQ(server.connections[0].ends, std::vector{Closed::reset});
    ASSERT_FALSE(network.is_open(socket));
  }
  for (const int count : arrived) EXPECT_GT(count, 30);
}

// A client that loses its connection and sends again by another one: the server may see the call
// twice, and the second one first.
TEST_F(Networks, LetAResentCallArriveTwiceAndInAnyOrder) {
  const Socket first = connect();
  run();
  network_.stall(here_, there_, 1s);
  network_.send(first, "call");
  network_.close(first);
  run(10ms);
  Process other_way{world_, "other way", {}};
  const Address beside = network_.add(other_way);
  network_.send(network_.connect(beside, there_, client_), "call");
  run(2s);
  EXPECT_EQ(accepted(0).messages, Texts{"call"});
  EXPECT_EQ(accepted(1).messages, Texts{"call"});
  EXPECT_LT(accepted(1).times[0], accepted(0).times[0]);
}

// ---- pauses and crashes -----------------------------------------------------------------------

// The kernel of a paused process accepts connections: its clients see an open one without replies.
TEST_F(Networks, AcceptForAPausedProcess) {
  server_process_.pause();
  const Socket socket = connect();
  network_.send(socket, "a");
  run(10s);
  EXPECT_TRUE(client_.was_opened);
  EXPECT_TRUE(server_.connections.empty());
  server_process_.resume();
  run(Nanos{0});
  EXPECT_EQ(accepted().messages, Texts{"a"});
}

TEST_F(Networks, ResetThePeersOfAProcessThatCrashes) {
  const Socket socket = connect();
  run();
  network_.send(server_.sockets[0], "last words");
  server_process_.crash();
  network_.send(socket, "too late");
  run();
  EXPECT_EQ(client_.messages, Texts{"last words"});
  EXPECT_EQ(client_.ends, std::vector{Closed::reset});
  EXPECT_TRUE(accepted().messages.empty());
  EXPECT_TRUE(accepted().ends.empty());  // the dead are told nothing
  (void)connect();
  run();
  EXPECT_EQ(client_.ends.back(), Closed::refused);
}

// A machine that loses power: silence, until it is back and does not know the connection.
TEST_F(Networks, HearNothingFromAMachineThatIsDown) {
  const Socket socket = connect();
  run();
  server_process_.crash(Crash::machine);
  network_.send(socket, "a");
  run(100s);
  EXPECT_TRUE(client_.ends.empty());
  Recorder late{world_};
  (void)network_.connect(here_, there_, late);
  run(10s);
  EXPECT_FALSE(late.was_opened);
  server_process_.restart();
  network_.send(socket, "b");
  run();
  EXPECT_EQ(client_.ends, std::vector{Closed::reset});
  EXPECT_TRUE(accepted().messages.empty());
}

// ---- datagrams --------------------------------------------------------------------------------

struct Datagrams final : DatagramHandler {
  void received(Address, std::string_view message) override { messages.emplace_back(message); }
  Texts messages;
};

TEST_F(Networks, LoseDuplicateAndReorderDatagrams) {
  Datagrams received;
  network_.receive_datagrams(there_, received);
  network_.path(here_, there_) = {
      .delay = 1ms, .jitter = 10ms, .loss_ppm = 100'000, .duplicate_ppm = 100'000};
  constexpr int kCount = 2'000;
  for (int i = 0; i < kCount; ++i) {
    network_.send_datagram(here_, there_, std::to_string(i));
    run(1ms);
  }
  run();
  std::vector<int> times(kCount);
  int overtaken = 0;
  int latest = -1;
  for (const std::string& message : received.messages) {
    const int number = std::stoi(message);
    ++times[static_cast<std::size_t>(number)];
    if (number < latest) ++overtaken;
    latest = std::max(latest, number);
  }
  EXPECT_NEAR(static_cast<double>(std::count(times.begin(), times.end(), 0)), 200, 60);
  EXPECT_NEAR(static_cast<double>(std::count(times.begin(), times.end(), 2)), 180, 60);
  EXPECT_GT(overtaken, 500);
}

TEST_F(Networks, DropDatagramsThatACutOrACrashMeets) {
  Datagrams received;
  network_.receive_datagrams(there_, received);
  network_.cut(here_, there_);
  network_.send_datagram(here_, there_, "cut");
  run();
  network_.heal(here_, there_);
  run();
  server_process_.pause();
  network_.send_datagram(here_, there_, "paused");
  run();
  EXPECT_TRUE(received.messages.empty());
  server_process_.resume();
  run();
  EXPECT_EQ(received.messages, Texts{"paused"});
  server_process_.crash();
  network_.send_datagram(here_, there_, "crashed");
  run();
  EXPECT_EQ(received.messages.size(), 1U);
}

// ---- determinism ------------------------------------------------------------------------------

// Replies to each message with a longer one.
struct Echo final : Listener, ConnectionHandler {
  explicit Echo(Network& of) : network(of) {}
  ConnectionHandler* accepted(Socket, Address) override { return this; }
  void received(Socket socket, std::string_view message) override {
    network.send(socket, std::string{message} + "!");
  }
  void closed(Socket, Closed) override {}
  Network& network;
};

struct Counter final : ConnectionHandler {
  void received(Socket, std::string_view) override { ++replies; }
  void closed(Socket, Closed) override { ++ends; }
  int replies = 0;
  int ends = 0;
};

struct Summary {
  std::uint64_t history = 0;
  std::uint64_t messages = 0;
  int replies = 0;
  int ends = 0;
};

// Five processes that talk while everything goes wrong.
Summary random_run(std::uint64_t seed) {
  World world{seed};
  Network network{world};
  Stream stream = world.random("test");
  network.usual() = {.delay = 200us, .jitter = 1ms, .loss_ppm = 10'000, .duplicate_ppm = 10'000};
  std::deque<Process> processes;
  Echo echo{network};
  Counter counter;
  for (int i = 0; i < 5; ++i) {
    processes.emplace_back(world, std::to_string(i),
                           NodeClock::Start{.drift_ppm = stream.between(-500, 500)});
    network.listen(network.add(processes.back()), echo);
  }
  const auto any = [&] { return static_cast<Address>(stream.below(5)); };
  std::vector<Socket> sockets;
  for (int i = 0; i < 8'000; ++i) {
    world.run_for(stream.time_below(1ms));
    const Address from = any();
    const Address to = any();
    switch (stream.below(40)) {
      case 0: network.cut(from, to); break;
      case 1:
      case 2: network.heal(from, to); break;
      case 3: network.stall(from, to, stream.time_below(20ms)); break;
      case 4: network.reset_between(from, to); break;
      case 5: processes[from].pause(); break;
      case 6:
      case 7: processes[from].resume(); break;
      case 8: processes[from].crash(stream.below(2) == 0 ? Crash::process : Crash::machine); break;
      case 9:
      case 10: processes[from].restart(); break;
      case 11:
      case 12:
        if (processes[from].is_running()) sockets.push_back(network.connect(from, to, counter));
        break;
      case 13:
        if (!sockets.empty()) network.close(sockets[stream.below(sockets.size())]);
        break;
      default:
        if (!sockets.empty()) network.send(sockets[stream.below(sockets.size())], "hello");
    }
  }
  network.heal_all();
  for (Process& process : processes) {
    process.restart();
    process.resume();
  }
  world.run_all(1'000'000);
  return {world.history(), network.counts().messages, counter.replies, counter.ends};
}

TEST(NetworkHistory, IsTheSameForTheSameSeed) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Summary once = random_run(seed);
    const Summary again = random_run(seed);
    EXPECT_EQ(once.history, again.history) << seed;
    EXPECT_NE(once.history, random_run(seed + 1'000).history) << seed;
    EXPECT_GT(once.messages, 200U) << seed;
    EXPECT_GT(once.replies, 25) << seed;
    EXPECT_GT(once.ends, 5) << seed;
  }
}

}  // namespace
}  // namespace sluice::sim
