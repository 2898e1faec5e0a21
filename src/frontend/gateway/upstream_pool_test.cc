// Which connections to a server are kept, and for how long: on a manual clock, with a real socket.
#include "frontend/gateway/upstream.h"
#include "net/net_fixture.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace sluice::gateway {
namespace {

using namespace std::chrono_literals;

class Pool : public ::testing::Test {
 protected:
  using Connections = std::vector<std::unique_ptr<UpstreamConnection>>;

  Pool() {
    options_.keepalive_timeout = 50s;
    options_.servers = {{.endpoint = listener_.endpoint()}};
  }

  UpstreamServer& server() {
    if (group_ == nullptr) {
      group_ = std::make_unique<UpstreamGroup>(*loop_, resolver_,
                                               std::make_shared<UpstreamOptions>(options_));
    }
    return *group_->servers().front();
  }
  // So many at once, each connected.
  Connections take(std::size_t count, bool fresh = false) {
    Connections taken;
    for (std::size_t i = 0; i < count; ++i) {
      auto one = server().take({.fresh = fresh}, clock_.now().mono).connection;
      one->set_user(net::Callback<>::to<&Pool::on_ready>(*this));
      EXPECT_TRUE(net::testing::turn_until(*loop_, [&] {
        return one->stream().establish().is_done() && one->stream().is_silent();
      }));
      if (!one->is_reused()) {
        ++connected_;
        accepted_.emplace_back(::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
      }
      taken.push_back(std::move(one));
    }
    return taken;
  }
  void give_back(Connections taken) {
    for (auto& one : taken) server().give_back(std::move(one));
  }
  // In steps, as the loop of a busy worker turns.
  void pass(Nanos time, std::size_t in_use = 0) {
    for (Nanos passed{0}; passed < time; passed += 1s) {
      clock_.advance(1s);
      loop_->turn(0s);
      if (in_use > 0) give_back(take(in_use));
    }
  }
  void on_ready() {}

  ManualClock clock_;
  std::unique_ptr<net::EventLoop> loop_ = net::EventLoop::create(clock_).value();
  net::Resolver resolver_{{.look_up = [](const std::string&) { return net::Addresses{}; }}};
  net::Listener listener_ = net::listen_on(net::testing::free_port()).value();
  UpstreamOptions options_;
  std::unique_ptr<UpstreamGroup> group_;
  std::vector<FileDescriptor> accepted_;
  int connected_ = 0;
};

// The former default was 64, and each connection above it was made and closed for every request.
TEST_F(Pool, GrowsWithDemand) {
  give_back(take(200));
  EXPECT_EQ(server().idle(), 200U);
  for (int i = 0; i < 3; ++i) give_back(take(200));
  EXPECT_EQ(connected_, 200) << "later ones are the same";
  EXPECT_EQ(server().in_use(), 0U);
}

TEST_F(Pool, ShrinksWhenDemandHasFallen) {
  give_back(take(100));
  pass(49s, 3);
  EXPECT_EQ(server().idle(), 100U) << "demand may come back";
  pass(60s, 3);
  EXPECT_EQ(server().idle(), 3U);
  pass(60s);
  EXPECT_EQ(server().idle(), 0U);
  EXPECT_EQ(connected_, 100);
}

// Where servers keep connections for an hour, so may we, but not those of a peak long gone.
TEST_F(Pool, ShrinksByDemandWhereIdleConnectionsStayForLong) {
  options_.keepalive_timeout = 1h;
  give_back(take(100));
  pass(60s, 3);
  EXPECT_EQ(server().idle(), 100U);
  pass(121s, 3);
  EXPECT_EQ(server().idle(), 3U);
  EXPECT_EQ(connected_, 100);
}

// Retries insist on new connections: the pool does not grow by them.
TEST_F(Pool, HoldsNoMoreThanWereInUseAtOnce) {
  give_back(take(4));
  for (int i = 0; i < 20; ++i) give_back(take(1, true));
  EXPECT_EQ(server().idle(), 4U);
  Connections some = take(3);
  for (int i = 0; i < 20; ++i) give_back(take(1, true));
  EXPECT_EQ(server().idle() + server().in_use(), 4U);
  give_back(std::move(some));
  EXPECT_EQ(server().idle(), 4U);
}

TEST_F(Pool, KeepsNoMoreThanItsMaximum) {
  options_.keepalive_connections = 5;
  give_back(take(20));
  EXPECT_EQ(server().idle(), 5U);
  EXPECT_EQ(server().close_idle(3), 3U);
  EXPECT_EQ(server().idle(), 2U);
}

TEST_F(Pool, KeepsNoneIfToldSo) {
  options_.keepalive_connections = 0;
  give_back(take(3));
  EXPECT_EQ(server().idle(), 0U);
}

// Servers close idle connections at a time of their own; some speak before they are asked.
TEST_F(Pool, KeepsNoConnectionThatIsBroken) {
  give_back(take(3));
  accepted_[0] = {};
  ASSERT_EQ(::write(accepted_[1].get(), "x", 1), 1);
  EXPECT_TRUE(net::testing::turn_until(*loop_, [this] { return server().idle() == 1; }));

  Connections taken = take(1);
  EXPECT_TRUE(taken[0]->is_reused());
  accepted_[2] = {};
  EXPECT_TRUE(net::testing::turn_until(*loop_, [&] { return taken[0]->stream().peer_hung_up(); }));
  give_back(std::move(taken));
  EXPECT_EQ(server().idle(), 0U);
}

}  // namespace
}  // namespace sluice::gateway
