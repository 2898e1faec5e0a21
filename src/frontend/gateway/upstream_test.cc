// Which server is asked. Connections are tried by the scenarios, with real servers.
#include "frontend/gateway/upstream.h"

#include "net/net_fixture.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace sluice::gateway {
namespace {

using namespace std::chrono_literals;

// Of connections that are taken: the tests look for themselves.
struct User {
  void on_ready() {}
};

class Choice : public ::testing::Test {
 protected:
  UpstreamGroup& group(Balance balance, const std::vector<std::uint32_t>& weights,
                       const std::string& host = "127.0.0.1") {
    options_.balance = balance;
    options_.max_consecutive_failures = 2;
    options_.ejection_time = 10s;
    options_.servers.clear();
    for (std::size_t i = 0; i < weights.size(); ++i) {
      options_.servers.push_back(
          {.endpoint = net::Endpoint::parse(host + ":" + std::to_string(port_ + i)).value(),
           .weight = weights[i]});
    }
    group_ = std::make_unique<UpstreamGroup>(*loop_, resolver_,
                                             std::make_shared<UpstreamOptions>(options_));
    return *group_;
  }
  [[nodiscard]] std::size_t number(const UpstreamServer& server) const {
    return static_cast<std::size_t>(&server.options() - group_->options().servers.data());
  }
  std::vector<std::size_t> chosen(int times, UpstreamServer* except = nullptr) {
    std::vector<std::size_t> numbers;
    for (int i = 0; i < times; ++i)
      numbers.push_back(number(group_->choose(7, {.server = except}, now_)));
    return numbers;
  }
  UpstreamServer& server(std::size_t i) { return *group_->servers()[i]; }
  // Servers that have two addresses each.
  void group_by_name(const std::vector<std::uint32_t>& weights) {
    group(Balance::round_robin, weights, "app.internal");
    for (const auto& one : group_->servers()) {
      ASSERT_TRUE(loop_.until([&] { return !one->is_sought(); }));
      ASSERT_EQ(one->addresses().all().size(), 2U);
    }
  }
  // At one of its addresses.
  void failed(UpstreamServer& server, std::size_t at = 0) {
    server.failed(*server.addresses().all()[at], now_);
  }

  User user_;
  net::testing::Loop loop_;
  net::Resolver resolver_{{.look_up = [](const std::string&) {
    return net::Addresses{*IpAddress::parse("127.0.0.1"), *IpAddress::parse("127.0.0.2")};
  }}};
  UpstreamOptions options_;
  std::unique_ptr<UpstreamGroup> group_;
  MonoTime now_{1h};
  std::size_t port_ = 9000;  // of the first server
};

using Numbers = std::vector<std::size_t>;

// An edit of something else leaves connections and what is known of servers as they are.
TEST_F(Choice, GoesOnInTheNextOptionsUnlessItsOwnHaveChanged) {
  const UpstreamGroup& before = group(Balance::round_robin, {1, 2});
  EXPECT_TRUE(before.serves(options_));
  UpstreamOptions edited = options_;
  edited.servers[1].weight = 3;
  EXPECT_FALSE(before.serves(edited));
  edited = options_;
  edited.response_timeout = 31s;
  EXPECT_FALSE(before.serves(edited));
  edited = options_;
  edited.name = "other";
  EXPECT_FALSE(before.serves(edited));
}

// As often as its weight, and spread: never all turns of one server in a row.
TEST_F(Choice, GoesRoundByWeight) {
  group(Balance::round_robin, {1, 1, 1});
  EXPECT_EQ(chosen(6), (Numbers{0, 1, 2, 0, 1, 2}));
  group(Balance::round_robin, {5, 1, 1});
  EXPECT_EQ(chosen(7), (Numbers{0, 0, 1, 0, 2, 0, 0}));
}

TEST_F(Choice, PassesOverTheOneThatWasTried) {
  for (const Balance balance :
       {Balance::round_robin, Balance::least_connections, Balance::client_hash}) {
    group(balance, {1, 1});
    EXPECT_EQ(chosen(3, &server(0)), (Numbers{1, 1, 1}));
    group(balance, {1});
    EXPECT_EQ(chosen(1, &server(0)), (Numbers{0})) << "unless it is the only one";
  }
}

TEST_F(Choice, EjectsAServerAfterSomeConsecutiveFailures) {
  group(Balance::round_robin, {1, 1});
  failed(server(0));
  server(0).addresses().all().front()->succeeded();
  failed(server(0));
  EXPECT_FALSE(server(0).is_ejected(now_)) << "not in a row";
  failed(server(0));
  EXPECT_TRUE(server(0).is_ejected(now_));
  EXPECT_EQ(chosen(3), (Numbers{1, 1, 1}));
  now_ += 10s;
  EXPECT_EQ(server(0).failures(), 3U);
  EXPECT_FALSE(server(0).is_ejected(now_));
}

// Better asked in vain than not at all.
TEST_F(Choice, AsksTheOneThatWasEjectedFirstWhenAllAre) {
  group(Balance::client_hash, {1, 1, 1});
  for (const std::size_t i : {2U, 0U, 1U}) {
    failed(server(i));
    failed(server(i));
    now_ += 1s;
  }
  EXPECT_EQ(chosen(1), (Numbers{2}));
  EXPECT_EQ(chosen(1, &server(2)), (Numbers{0}));
}

// Connections that begin count at once, whether they will stand or not.
TEST_F(Choice, PrefersTheServerWithTheFewestUnderWayForItsWeight) {
  group(Balance::least_connections, {1, 2});
  std::vector<std::unique_ptr<UpstreamConnection>> taken;
  std::map<std::size_t, int> times;
  for (int i = 0; i < 9; ++i) {
    UpstreamServer& next = group_->choose(7, {}, now_);
    ++times[number(next)];
    taken.push_back(next.take({.fresh = true}, now_).connection);
    ASSERT_NE(taken.back(), nullptr);
  }
  EXPECT_EQ(times, (std::map<std::size_t, int>{{0, 3}, {1, 6}}));
  for (auto& connection : taken) connection->server().drop(std::move(connection));
  EXPECT_EQ(server(0).in_use() + server(1).in_use(), 0U);
}

// One of two addresses is down: the name is as good as ever, until both are.
TEST_F(Choice, EjectsANameWhenAllOfItsAddressesAre) {
  group_by_name({1, 1});
  failed(server(0), 0);
  failed(server(0), 0);
  EXPECT_EQ(chosen(4), (Numbers{0, 1, 0, 1}));
  failed(server(0), 1);
  failed(server(0), 1);
  EXPECT_EQ(chosen(3), (Numbers{1, 1, 1}));
  EXPECT_EQ(server(0).failures(), 4U);
}

// After a failure another server is next, but one that is in trouble only behind another address.
TEST_F(Choice, PrefersAnotherAddressToAnEjectedServer) {
  group_by_name({1, 1});
  const UpstreamGroup::Tried tried{.server = &server(0),
                                   .address = server(0).addresses().all()[0].get()};
  EXPECT_EQ(number(group_->choose(7, tried, now_)), 1U);
  for (const std::size_t at : {0U, 0U, 1U, 1U}) failed(server(1), at);
  EXPECT_EQ(number(group_->choose(7, tried, now_)), 0U);
  failed(server(0), 1);
  failed(server(0), 1);
  EXPECT_EQ(number(group_->choose(7, tried, now_)), 1U);
}

TEST_F(Choice, KnowsWhetherThereIsAnother) {
  group(Balance::round_robin, {1});
  const auto first = [this] {
    return UpstreamGroup::Tried{.server = &server(0),
                                .address = server(0).addresses().all()[0].get()};
  };
  EXPECT_FALSE(group_->has_another(first(), now_));
  group(Balance::round_robin, {1, 1});
  EXPECT_TRUE(group_->has_another(first(), now_));
  group_by_name({1});
  EXPECT_TRUE(group_->has_another(first(), now_));
  failed(server(0), 1);
  failed(server(0), 1);
  EXPECT_FALSE(group_->has_another(first(), now_)) << "it would be in vain as well";
}

// What was connected before an address got into trouble is not used any more.
TEST_F(Choice, UsesNoIdleConnectionToAnAddressInTrouble) {
  const net::Listener listener = net::listen_on(net::Endpoint::parse("0.0.0.0:0").value()).value();
  port_ = listener.endpoint().port;
  group_by_name({1});
  const auto take = [this] {
    auto connection = server(0).take({}, now_).connection;
    connection->set_user(net::Callback<>::to<&User::on_ready>(user_));
    return connection;
  };
  auto first = take();
  auto second = take();
  const UpstreamAddresses::Shared in_trouble = second->address();
  ASSERT_NE(first->address(), in_trouble) << "each in turn";
  for (auto* connection : {&first, &second}) {
    ASSERT_TRUE(loop_.until([&] { return (*connection)->stream().establish().is_done(); }));
    server(0).give_back(std::move(*connection));
  }
  ASSERT_EQ(server(0).idle(), 2U);
  for (int i = 0; i < 2; ++i) server(0).failed(*in_trouble, now_);
  auto next = take();
  EXPECT_TRUE(next->is_reused());
  EXPECT_NE(next->address(), in_trouble);
  EXPECT_EQ(server(0).idle(), 0U);
  server(0).drop(std::move(next));
}

// Each client has its server; when one is gone, only its own clients move; weights count.
TEST_F(Choice, ByHashMovesOnlyTheClientsOfAServerThatIsGone) {
  group(Balance::client_hash, {1, 1, 2});
  std::map<std::uint64_t, std::size_t> before;
  std::map<std::size_t, int> times;
  for (std::uint64_t client = 0; client < 4000; ++client) {
    before[client] = number(group_->choose(client, {}, now_));
    ++times[before[client]];
  }
  EXPECT_NEAR(times[0], 1000, 150);
  EXPECT_NEAR(times[2], 2000, 200);
  failed(server(1));
  failed(server(1));
  for (const auto& [client, server] : before) {
    const std::size_t after = number(group_->choose(client, {}, now_));
    if (server != 1) {
      EXPECT_EQ(after, server);
    }
    EXPECT_NE(after, 1U);
  }
}

// Servers in trouble are asked one time in five once more, and some times at first.
TEST_F(Choice, HasRetriesThatRequestsHaveEarned) {
  UpstreamGroup& asked = group(Balance::round_robin, {1});
  const auto retries = [&] {
    int count = 0;
    while (asked.may_retry()) ++count;
    return count;
  };
  EXPECT_EQ(retries(), 20);
  for (int i = 0; i < 4; ++i) asked.passed_on();
  EXPECT_EQ(retries(), 0);
  asked.passed_on();
  EXPECT_EQ(retries(), 1);
  for (int i = 0; i < 10'000; ++i) asked.passed_on();
  EXPECT_EQ(retries(), 20) << "no more than so many are kept";
}

}  // namespace
}  // namespace sluice::gateway
