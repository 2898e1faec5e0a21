// What the simulated Redis does beside replying: its clock, what it tells replicas, its limits.
// That it replies and stores what a real one does is the affair of redis_proof_test.cc.

#include "sim/redis_server.h"

#include "sim/clock.h"
#include "store/redis/call_codec.h"
#include "store/redis/function_library.h"
#include "store/redis/shared_limit.h"
#include <sluice/time.h>

#include <gtest/gtest.h>

#include <chrono>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;

class SimulatedRedis : public ::testing::Test {
 protected:
  Reply ask(std::initializer_list<std::string_view> words) {
    return server_.handle(std::vector<std::string_view>{words}, wall_);
  }
  void load() { ASSERT_EQ(ask({"FUNCTION", "LOAD", library_.library}).text, library_.name); }

  // One of ten a second, of the key.
  Reply decide(RedisServer& server, std::string_view command, std::string_view what) {
    const store::SharedCheck check{.limit = &limit_, .field = 7};
    if (command == "FCALL_RO") {
      store::write_peek(arguments_, {&check, 1}, wall_);
    } else {
      store::write_decide(arguments_, {&check, 1}, wall_);
    }
    std::vector<std::string_view> words{command, what, "1", "key"};
    for (std::size_t i = 0; i < arguments_.size(); ++i) words.push_back(arguments_[i]);
    return server.handle(words, wall_);
  }
  Reply decide() { return decide(server_, "FCALL", library_.name); }
  static std::int64_t remaining(const Reply& reply) { return reply.numbers().at(3); }

  WallTime wall_ = kWorldBegins;
  RedisServer server_;
  store::FunctionLibrary library_ = store::function_library();
  store::SharedLimit limit_ =
      store::compile_shared({.algorithm = Algorithm::token_bucket, .amount = 10, .period = 1s})
          .value();
  store::CallArguments arguments_;
};

TEST_F(SimulatedRedis, DecidesByItsOwnClock) {
  load();
  EXPECT_EQ(remaining(decide()), 9);
  EXPECT_EQ(remaining(decide()), 8);
  wall_ += 100ms;
  EXPECT_EQ(remaining(decide()), 8);
  wall_ += 1'500us;
  const Reply reply = decide();
  EXPECT_EQ(reply.numbers().at(1), kWorldBegins.time_since_epoch() / 1us + 101'500);
}

TEST_F(SimulatedRedis, ForgetsKeysAtTheEndOfTheirLife) {
  load();
  EXPECT_EQ(remaining(decide()), 9);
  const std::int64_t left = ask({"PTTL", "key"}).integer;
  EXPECT_EQ(left, 5'100);  // a tenth to drain, and five seconds
  wall_ += 5'100ms;
  EXPECT_EQ(ask({"EXISTS", "key"}).integer, 1);
  wall_ += 1ms;
  EXPECT_EQ(ask({"EXISTS", "key"}).integer, 0);
  // A clock that was set back does not bring it back.
  wall_ -= 1h;
  EXPECT_EQ(ask({"EXISTS", "key"}).integer, 0);
}

TEST_F(SimulatedRedis, KnowsNoFunctionUntilItIsLoaded) {
  EXPECT_EQ(decide().text, "ERR Function not found");
  load();
  EXPECT_FALSE(decide().is_error());
  server_.clear();
  EXPECT_EQ(decide().text, "ERR Function not found");
}

// A restart keeps functions and data, but no scripts.
TEST_F(SimulatedRedis, LosesScriptsInARestart) {
  load();
  const std::string sha = ask({"SCRIPT", "LOAD", library_.script}).text;
  EXPECT_EQ(remaining(decide(server_, "EVALSHA", sha)), 9);
  EXPECT_EQ(remaining(decide()), 8);
  server_.restart_with_data();
  EXPECT_TRUE(decide(server_, "EVALSHA", sha).text.starts_with("NOSCRIPT"));
  EXPECT_EQ(remaining(decide()), 7);
  EXPECT_EQ(remaining(decide(server_, "EVAL", library_.script)), 6);
  EXPECT_EQ(remaining(decide(server_, "EVALSHA", sha)), 5);
}

TEST_F(SimulatedRedis, TellsWhatItIs) {
  EXPECT_EQ(ask({"ROLE"}).items.at(0).text, "master");
  EXPECT_EQ(ask({"ping"}).text, "PONG");
  EXPECT_EQ(ask({"HELLO"}).items.at(3).text, "7.0.15");
  EXPECT_TRUE(ask({"HELLO", "3"}).text.starts_with("NOPROTO"));
  EXPECT_EQ(ask({"TIME"}).items.at(0).text, "1767225600");
  server_.set_role(RedisServer::Role::replica);
  EXPECT_EQ(ask({"ROLE"}).items.at(0).text, "slave");
  server_.set_loading(true);
  EXPECT_TRUE(ask({"PING"}).text.starts_with("LOADING"));
}

// The secret of a cluster: the first node that asks decides it.
TEST_F(SimulatedRedis, KeepsTheFirstSecret) {
  EXPECT_EQ(ask({"SET", "sluice1:secret", "one", "NX"}).text, "OK");
  EXPECT_EQ(ask({"SET", "sluice1:secret", "two", "NX"}), Reply{});
  EXPECT_EQ(ask({"GET", "sluice1:secret"}).text, "one");
  EXPECT_EQ(ask({"PTTL", "sluice1:secret"}).integer, -1);
}

// What it does not know, it does not make up.
TEST_F(SimulatedRedis, ThrowsForWhatIsNotWrittenYet) {
  EXPECT_THROW(ask({"INCR", "key"}), std::logic_error);
  EXPECT_THROW(ask({"SET", "key", "value", "KEEPTTL"}), std::logic_error);
  EXPECT_THROW(ask({"PEXPIRE", "key", "1", "LT"}), std::logic_error);
  EXPECT_THROW(ask({"FUNCTION", "FLUSH"}), std::logic_error);
  EXPECT_THROW(ask({"EVAL", "return redis.call('INCR', 'key')", "0"}), std::logic_error);
  EXPECT_THROW(ask({"EVAL", "pcall(redis.call, 'INCR', 'key') return 1", "0"}), std::logic_error);
  EXPECT_THROW(ask({"EVAL", "return 1e300", "0"}), std::logic_error);
  EXPECT_EQ(ask({"EVAL", "return 1", "0"}), Reply::number(1));  // and goes on
}

// ---- replication ------------------------------------------------------------------------------

class Replication : public SimulatedRedis {
 protected:
  Replication() {
    server_.on_transaction([this](const Effects& effects) { stream_.push_back(effects); });
    replica_.set_role(RedisServer::Role::replica);
  }

  void catch_up() {
    for (const Effects& effects : stream_) replica_.apply(effects);
    stream_.clear();
  }
  Reply ask_replica(std::initializer_list<std::string_view> words) {
    return replica_.handle(std::vector<std::string_view>{words}, wall_);
  }

  std::vector<Effects> stream_;
  RedisServer replica_{2};
};

// Commands with absolute times, as one transaction for each call.
TEST_F(Replication, TellsWhatACallWrote) {
  load();
  stream_.clear();
  (void)decide();
  ASSERT_EQ(stream_.size(), 1U);
  ASSERT_EQ(stream_[0].size(), 2U);
  EXPECT_EQ(stream_[0][0][0], "HSET");
  EXPECT_EQ(stream_[0][1],
            (std::vector<std::string>{"PEXPIREAT", "key", std::to_string(1'767'225'605'100)}));
  (void)decide(server_, "FCALL_RO", library_.read_only_name);
  EXPECT_EQ(stream_.size(), 1U);
}

TEST_F(Replication, LosesTheTailInAFailover) {
  load();
  (void)decide();
  (void)decide();
  catch_up();
  (void)decide();
  (void)decide();
  replica_.set_role(RedisServer::Role::primary);
  EXPECT_EQ(remaining(decide(replica_, "FCALL", library_.name)), 7);
  EXPECT_EQ(remaining(decide()), 5);  // the old one goes on
}

TEST_F(Replication, LetsReplicasReadOnly) {
  load();
  (void)decide();
  catch_up();
  EXPECT_TRUE(decide(replica_, "FCALL", library_.name).text.starts_with("READONLY"));
  EXPECT_EQ(remaining(decide(replica_, "FCALL_RO", library_.read_only_name)), 9);
  EXPECT_TRUE(ask_replica({"SET", "a", "b"}).text.starts_with("READONLY"));
}

// A key past its end is hidden by a replica and stays there until the primary deletes it; a replica
// whose clock is ahead does not delete it for the primary.
TEST_F(Replication, LeavesDeletionToThePrimary) {
  load();
  (void)decide();
  catch_up();
  wall_ += 1h;
  EXPECT_EQ(ask_replica({"EXISTS", "key"}).integer, 0);
  wall_ -= 1h;
  EXPECT_EQ(ask_replica({"EXISTS", "key"}).integer, 1);
  wall_ += 1h;
  EXPECT_EQ(ask({"EXISTS", "key"}).integer, 0);
  ASSERT_EQ(stream_.size(), 1U);
  EXPECT_EQ(stream_[0][0], (std::vector<std::string>{"DEL", "key"}));
  catch_up();
  wall_ -= 1h;
  EXPECT_EQ(ask_replica({"EXISTS", "key"}).integer, 0);
}

TEST_F(Replication, CopiesEverythingInASnapshot) {
  load();
  (void)decide();
  (void)ask({"SET", "secret", "s"});
  RedisServer copy{3};
  copy.apply(server_.snapshot());
  EXPECT_EQ(copy.snapshot(), server_.snapshot());
  EXPECT_EQ(remaining(decide(copy, "FCALL", library_.name)), 8);
  EXPECT_EQ(copy.handle(std::vector<std::string_view>{"PTTL", "key"}, wall_).integer, 5'200);
  EXPECT_EQ(copy.data().size(), 2U);
}

}  // namespace
}  // namespace sluice::sim
