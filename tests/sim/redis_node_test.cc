#include "sim/redis_node.h"

#include "sim/network.h"
#include "sim/process.h"
#include "sim/resp.h"
#include "sim/world.h"
#include "store/redis/call_codec.h"
#include "store/redis/function_library.h"
#include "store/redis/shared_limit.h"
#include "support/effort.h"
#include <sluice/time.h>

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;

// A client with one connection.
class Client final : public ConnectionHandler {
 public:
  Client(Network& network, Address from) : network_(network), from_(from) {}

  void connect(Address to) { socket_ = network_.connect(from_, to, *this); }
  void send(std::initializer_list<std::string_view> words) { send({words.begin(), words.size()}); }
  void send(Words words) {
    std::string message;
    append_command(message, words);
    network_.send(socket_, message);
  }

  void received(Socket, std::string_view message) override {
    while (!message.empty()) replies.push_back(take_reply(message));
  }
  void closed(Socket, Closed how) override { ends.push_back(how); }

  std::vector<Reply> replies;
  std::vector<Closed> ends;

 private:
  Network& network_;
  Address from_;
  Socket socket_;
};

class RedisNodes : public ::testing::Test {
 protected:
  void run(Nanos time = 10ms) { world_.run_for(time); }
  // The reply to a command by a connection of its own.
  Reply ask(RedisNode& node, std::initializer_list<std::string_view> words) {
    Client& client = clients_.emplace_back(network_, here_);
    client.connect(node.address());
    client.send(words);
    run();
    return client.replies.empty() ? Reply::error("no reply") : client.replies[0];
  }

  World world_{5};
  Network network_{world_};
  Process process_{world_, "client", {}};
  Address here_ = network_.add(process_);
  RedisNode one_{world_, network_, "one", {}};
  RedisNode two_{world_, network_, "two", {}};
  std::deque<Client> clients_;
};

TEST_F(RedisNodes, AnswerInOrder) {
  Client client{network_, here_};
  client.connect(one_.address());
  for (int i = 0; i < 100; ++i) client.send({"PING", std::to_string(i)});
  run();
  ASSERT_EQ(client.replies.size(), 100U);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(client.replies[i].text, std::to_string(i));
}

// One thread: a hundred commands take a hundred service times.
TEST_F(RedisNodes, ServeOneCommandAfterTheOther) {
  Client client{network_, here_};
  client.connect(one_.address());
  run();
  const WorldTime before = world_.now();
  for (int i = 0; i < 100; ++i) client.send({"PING"});
  while (client.replies.size() < 100) ASSERT_TRUE(world_.step());
  EXPECT_GE(world_.now() - before, Nanos{100 * 15us});
  EXPECT_LE(world_.now() - before, Nanos{100 * 15us + 400us});
}

TEST_F(RedisNodes, HaveTheirOwnClocks) {
  one_.process().clock().step_wall(1h);
  const std::int64_t ahead = std::stoll(ask(one_, {"TIME"}).items.at(0).text);
  const std::int64_t right = std::stoll(ask(two_, {"TIME"}).items.at(0).text);
  EXPECT_EQ(ahead - right, 3'600);
}

TEST_F(RedisNodes, CopyEverythingToAReplicaAndThenFollow) {
  (void)ask(one_, {"SET", "a", "1"});
  two_.replicate_from(one_.address());
  run();
  EXPECT_EQ(ask(two_, {"GET", "a"}).text, "1");
  (void)ask(one_, {"SET", "b", "2"});
  EXPECT_EQ(ask(two_, {"GET", "b"}).text, "2");
  EXPECT_EQ(two_.server().offset(), one_.server().offset());
  EXPECT_TRUE(ask(two_, {"SET", "c", "3"}).text.starts_with("READONLY"));
}

// A cut between the servers: what the primary accepted meanwhile is lost by the failover. Until it
// is told, the old one goes on as a primary; then it takes what the new one has.
TEST_F(RedisNodes, LoseTheTailInAFailover) {
  two_.replicate_from(one_.address());
  run();
  (void)ask(one_, {"SET", "a", "1"});
  network_.cut(one_.address(), two_.address());
  EXPECT_EQ(ask(one_, {"SET", "b", "lost"}).text, "OK");
  two_.promote();
  EXPECT_EQ(ask(two_, {"GET", "a"}).text, "1");
  EXPECT_EQ(ask(two_, {"GET", "b"}), Reply{});
  EXPECT_EQ(ask(one_, {"SET", "zombie", "1"}).text, "OK");
  network_.heal_all();
  run(1s);
  EXPECT_EQ(ask(two_, {"GET", "zombie"}), Reply{});

  Client old{network_, here_};
  old.connect(one_.address());
  run();
  one_.replicate_from(two_.address());
  run();
  EXPECT_EQ(old.ends.size(), 1U);
  EXPECT_EQ(ask(one_, {"ROLE"}).items.at(0).text, "slave");
  EXPECT_EQ(ask(one_, {"GET", "b"}), Reply{});
  EXPECT_EQ(ask(one_, {"GET", "a"}).text, "1");
}

// A paused server answers what it was sent, once it goes on: by then another one may be primary.
TEST_F(RedisNodes, AnswerLateAfterAPause) {
  Client client{network_, here_};
  client.connect(one_.address());
  one_.process().pause();
  client.send({"SET", "a", "1"});
  run(10s);
  EXPECT_TRUE(client.replies.empty());
  one_.process().resume();
  run();
  ASSERT_EQ(client.replies.size(), 1U);
  EXPECT_EQ(client.replies[0].text, "OK");
}

// A command that has arrived and waits for its turn: the client cannot know that it was not run.
TEST_F(RedisNodes, DropWhatACrashMeets) {
  RedisNode slow{world_, network_, "slow", {.service = 5ms}};
  Client client{network_, here_};
  client.connect(slow.address());
  client.send({"SET", "a", "1"});
  run(4ms);
  slow.crash(Crash::process);
  run();
  EXPECT_TRUE(client.replies.empty());
  EXPECT_EQ(client.ends, std::vector{Closed::reset});
  slow.restart(RedisNode::Restart::with_data);
  EXPECT_EQ(ask(slow, {"GET", "a"}), Reply{});
}

TEST_F(RedisNodes, RestartWithOrWithoutTheirData) {
  (void)ask(one_, {"SET", "a", "1"});
  one_.crash(Crash::machine);
  one_.restart(RedisNode::Restart::with_data);
  EXPECT_EQ(ask(one_, {"GET", "a"}).text, "1");
  one_.crash(Crash::process);
  one_.restart(RedisNode::Restart::empty);
  EXPECT_EQ(ask(one_, {"GET", "a"}), Reply{});
}

// A primary that comes back with nothing takes its replicas' data from them.
TEST_F(RedisNodes, EmptyTheirReplicasAfterARestartWithoutData) {
  (void)ask(one_, {"SET", "a", "1"});
  two_.replicate_from(one_.address());
  run();
  one_.crash(Crash::process);
  one_.restart(RedisNode::Restart::empty);
  EXPECT_EQ(ask(two_, {"GET", "a"}).text, "1");
  run(2s);
  EXPECT_EQ(ask(two_, {"GET", "a"}), Reply{});
}

TEST_F(RedisNodes, LetAReplicaReturn) {
  two_.replicate_from(one_.address());
  run();
  two_.crash(Crash::process);
  (void)ask(one_, {"SET", "a", "1"});
  two_.restart(RedisNode::Restart::with_data);
  run();
  EXPECT_EQ(ask(two_, {"GET", "a"}).text, "1");
}

// ---- a whole simulation -----------------------------------------------------------------------

// Ten thousand decisions of three clients, with a failover in the middle. What an honest simulation
// of nodes will cost at least.
struct Outcome {
  std::uint64_t history = 0;
  std::int64_t admitted = 0;
  std::int64_t replies = 0;
};

Outcome run_of_decisions(std::uint64_t seed, int decisions) {
  World world{seed};
  Network network{world};
  Stream stream = world.random("test");
  RedisNode primary{world, network, "primary", {}};
  RedisNode replica{world, network, "replica", {}};
  std::deque<Process> processes;
  std::deque<Client> clients;
  for (int i = 0; i < 3; ++i) {
    Process& process = processes.emplace_back(world, std::to_string(i), NodeClock::Start{});
    clients.emplace_back(network, network.add(process)).connect(primary.address());
  }
  const store::FunctionLibrary library = store::function_library();
  const store::SharedLimit limit =
      store::compile_shared({.algorithm = Algorithm::token_bucket, .amount = 100, .period = 1s})
          .value();
  clients[0].send({"FUNCTION", "LOAD", library.library});
  replica.replicate_from(primary.address());
  world.run_for(10ms);
  clients[0].replies.clear();

  store::CallArguments arguments;
  std::vector<std::string_view> words;
  for (int i = 0; i < decisions; ++i) {
    world.run_for(stream.time_below(4ms));
    if (i == decisions / 2) {
      primary.crash(Crash::process);
      replica.promote();
      for (Client& client : clients) client.connect(replica.address());
    }
    const std::string key = store::shared_key({.low = stream.below(20), .high = 1});
    const store::SharedCheck check{.limit = &limit, .field = 7};
    store::write_decide(arguments, {&check, 1}, kWorldBegins);
    words.assign({"FCALL", library.name, "1", key});
    for (std::size_t a = 0; a < arguments.size(); ++a) words.push_back(arguments[a]);
    clients[stream.below(3)].send(words);
  }
  world.run_for(1s);
  Outcome result{.history = world.history()};
  for (const Client& client : clients) {
    for (const Reply& reply : client.replies) {
      result.admitted += reply.numbers().at(2) == 0 ? 1 : 0;
      ++result.replies;
    }
  }
  return result;
}

TEST(RedisHistory, IsTheSameForTheSameSeed) {
  const auto seeds = testing::effort<std::uint64_t>(1, 20);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Outcome once = run_of_decisions(seed, 10'000);
    const Outcome again = run_of_decisions(seed, 10'000);
    EXPECT_EQ(once.history, again.history);
    EXPECT_EQ(once.admitted, again.admitted);
    EXPECT_NE(once.history, run_of_decisions(seed + 100, 100).history);
    EXPECT_GT(once.replies, 9'980);
    EXPECT_GT(once.admitted, 5'000);
  }
}

}  // namespace
}  // namespace sluice::sim
