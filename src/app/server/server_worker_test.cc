// Servers that are known by name, and a name server that takes its time.
#include "app/server/server_worker.h"

#include "app/server/worker_fixture.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/socket.h>
#include <utility>

namespace sluice::app {
namespace {

using namespace std::chrono_literals;
using net::testing::turn_until;
using ::testing::Contains;
using ::testing::HasSubstr;

// Does as it is told; its thread may outlive the test.
class NameServer {
 public:
  enum class Mood { silent, ignorant, helpful };
  void be(Mood mood) {
    const std::lock_guard lock{mutex_};
    mood_ = mood;
    changed_.notify_all();
  }
  Parsed<net::Addresses> find(const std::string& name) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return mood_ != Mood::silent; });
    if (mood_ == Mood::ignorant) return mistake("cannot find the host '" + name + "'");
    return addresses_;
  }
  void say(net::Addresses addresses) {
    const std::lock_guard lock{mutex_};
    addresses_ = std::move(addresses);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Mood mood_ = Mood::silent;
  net::Addresses addresses_{*IpAddress::parse("127.0.0.1")};
};

// Where no connection comes about: its queue is full, and the system lets nobody else in.
class FullServer {
 public:
  explicit FullServer(const std::string& endpoint)
      : listener_(net::listen_on(net::Endpoint::parse(endpoint).value(), {.backlog = 0}).value()) {
    const net::SocketAddress address = net::testing::address_of(listener_);
    for (FileDescriptor& one : waiting_) {
      one = FileDescriptor{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
      const bool is_in = ::connect(one.get(), address.get(), address.size()) == 0;
      if (!is_in && errno != EINPROGRESS) std::abort();
    }
  }

 private:
  net::Listener listener_;
  std::array<FileDescriptor, 8> waiting_;
};

class ByName : public ::testing::Test {
 public:
  ByName(const ByName&) = delete;
  ByName& operator=(const ByName&) = delete;

 protected:
  explicit ByName(std::string_view more = "") : more_(more) {}
  ~ByName() override { names_->be(NameServer::Mood::ignorant); }

  static constexpr std::string_view kFile = R"(
listen: {{gateway: '127.0.0.1:0'}}
state: {{memory: 4MiB}}
upstreams: {{app: {{servers: ['app.internal:{}'], connect_timeout: 3s{}}}}}
routes: [{{path: '/**', upstream: app}}]
rules: [{{name: each, per: ip, limit: 1000/1s}}]
)";
  static constexpr std::string_view kRequest = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";

  std::string_view more_;  // options of the upstream
  ManualClock clock_{{.mono = MonoTime{1h}, .wall_offset = 1'700'000'000s}};
  std::shared_ptr<NameServer> names_ = std::make_shared<NameServer>();
  net::Listener of_app_ = net::listen_on(net::testing::free_port()).value();
  const std::uint16_t port_ = of_app_.endpoint().port;
  fixture::OneWorker worker_{
      fmt::format(kFile, port_, more_),
      clock_,
      {.look_up = [names = names_](const std::string& name) { return names->find(name); }}};
  fixture::Upstream app_{*worker_.loop, std::move(of_app_)};
  fixture::Client client_{*worker_.loop, worker_.endpoint};

  // In small steps, as it does.
  void pass(Nanos time) {
    for (; time > 0s; time -= 5ms) {
      clock_.advance(5ms);
      worker_.loop->turn(0s);
    }
  }
  // What the client hears in the end, however long that takes.
  std::string_view answer() {
    const bool is_heard = turn_until(*worker_.loop, [this] {
      pass(5ms);
      return client_.heard().ends_with("hello") || client_.heard().ends_with("}");
    });
    return is_heard ? client_.heard() : "nothing";
  }
};

TEST_F(ByName, TheFirstRequestsWaitForTheAddress) {
  client_.send(kRequest);
  pass(1s);
  EXPECT_EQ(client_.heard(), "");
  names_->be(NameServer::Mood::helpful);
  EXPECT_THAT(answer(), HasSubstr("HTTP/1.1 200 OK"));
}

TEST_F(ByName, TheyWaitNoLongerThanForAConnection) {
  client_.send(kRequest);
  pass(2900ms);
  EXPECT_EQ(client_.heard(), "");
  pass(200ms);
  EXPECT_THAT(answer(), HasSubstr("HTTP/1.1 504"));
  EXPECT_THAT(worker_.said, Contains(HasSubstr("the address of the server was not found in time")));
}

TEST_F(ByName, WhoLeavesMeanwhileIsNotPassedOn) {
  {
    fixture::Client leaving{*worker_.loop, worker_.endpoint};
    leaving.send(kRequest);
    pass(100ms);
  }
  pass(100ms);
  names_->be(NameServer::Mood::helpful);
  client_.send(kRequest);
  EXPECT_THAT(answer(), HasSubstr("HTTP/1.1 200 OK"));
  EXPECT_EQ(app_.requests, 1);
}

// A name server that was not ready when we were is asked again before long.
TEST_F(ByName, ANameThatWasUnknownIsFoundSoonAfterItIsKnown) {
  names_->be(NameServer::Mood::ignorant);
  client_.send(kRequest);
  EXPECT_THAT(answer(), HasSubstr("HTTP/1.1 502"));
  EXPECT_THAT(worker_.said, Contains(HasSubstr("cannot find the host 'app.internal'")));
  names_->be(NameServer::Mood::helpful);
  const MonoTime begin = clock_.now().mono;
  do {
    pass(100ms);
    client_.send(kRequest);
  } while (answer().starts_with("HTTP/1.1 502") && clock_.now().mono - begin < 60s);
  EXPECT_THAT(client_.heard(), HasSubstr("HTTP/1.1 200 OK"));
  EXPECT_LT(clock_.now().mono - begin, 10s);
}

// What the watchdog of systemd is fed by.
TEST_F(ByName, AWorkerThatHangsIsNoticed) {
  EXPECT_TRUE(worker_.has_turned()) << "nobody has asked before";
  EXPECT_FALSE(worker_.has_turned());
  EXPECT_FALSE(worker_.has_turned());
  ASSERT_TRUE(turn_until(*worker_.loop, [&] { return worker_.has_turned(); }));
  EXPECT_FALSE(worker_.has_turned());
}

// A name with several addresses, and a server at one of them only.
class WithSeveralAddresses : public ByName {
 protected:
  WithSeveralAddresses()
      : ByName(
            ", keepalive_connections: 0, max_consecutive_failures: 2, ejection_time: 1h, retries: "
            "1") {}

  // Once all of them are known, by the next lookup. Time stands still for the first.
  void found_at(const net::Addresses& addresses) {
    names_->say(addresses);
    names_->be(NameServer::Mood::helpful);
    const bool is_first = status().addresses == 1;
    ASSERT_TRUE(turn_until(*worker_.loop, [&] {
      if (!is_first) pass(1s);
      return status().addresses == addresses.size();
    }));
  }
  std::string_view ask() {
    client_.send(kRequest);
    return answer();
  }
  [[nodiscard]] frontend::ServerStatus status() {
    return worker_.report().upstreams.at(0).servers.at(0);
  }

  const IpAddress up_ = *IpAddress::parse("127.0.0.1");
  const IpAddress down_ = *IpAddress::parse("127.0.0.2");
  const IpAddress also_down_ = *IpAddress::parse("127.0.0.3");
};

// Whoever comes to the address that is down is sent to the other one, and soon nobody comes there.
TEST_F(WithSeveralAddresses, OneThatIsDownCostsNobodyAnAnswer) {
  found_at({down_, up_});
  for (int i = 0; i < 40; ++i) ASSERT_THAT(ask(), HasSubstr("HTTP/1.1 200 OK")) << i;
  EXPECT_EQ(status().failures, 2U);
  EXPECT_EQ(status().ejected_by, 0U);
  EXPECT_EQ(status().addresses, 2U);
  EXPECT_EQ(status().addresses_ejected, 1U);
  EXPECT_THAT(worker_.said, Contains(HasSubstr("(127.0.0.2): the server cannot be reached")));
}

// The same where nobody says no, and a request has to wait for that.
TEST_F(WithSeveralAddresses, OneThatIsOffCostsNobodyAnAnswer) {
  const FullServer off{fmt::format("127.0.0.2:{}", port_)};
  found_at({down_, up_});
  for (int i = 0; i < 40; ++i) {
    client_.send(kRequest);
    if (i < 4) pass(3100ms);
    const MonoTime begin = clock_.now().mono;
    ASSERT_THAT(answer(), HasSubstr("HTTP/1.1 200 OK")) << i;
    ASSERT_LT(clock_.now().mono - begin, 1s) << i << " waits for nobody";
  }
  EXPECT_EQ(status().failures, 2U);
}

// Whoever else came meanwhile and had the next turn.
TEST_F(WithSeveralAddresses, TheSameOneIsNotTriedTwice) {
  const FullServer off{fmt::format("127.0.0.2:{}", port_)};
  found_at({down_, up_});
  client_.send(kRequest);
  pass(100ms);
  fixture::Client other{*worker_.loop, worker_.endpoint};
  ASSERT_THAT(other.ask(kRequest, "hello"), HasSubstr("HTTP/1.1 200 OK"));
  EXPECT_EQ(client_.heard(), "");
  pass(3100ms);
  EXPECT_THAT(answer(), HasSubstr("HTTP/1.1 200 OK"));
}

// What a lookup finds again is no better for that.
TEST_F(WithSeveralAddresses, OneThatIsDownStaysSoOverALookup) {
  found_at({down_, up_});
  for (int i = 0; i < 4; ++i) ASSERT_THAT(ask(), HasSubstr("HTTP/1.1 200 OK"));
  ASSERT_EQ(status().addresses_ejected, 1U);
  found_at({up_, also_down_, down_});
  EXPECT_EQ(status().addresses_ejected, 1U);
  for (int i = 0; i < 20; ++i) ASSERT_THAT(ask(), HasSubstr("HTTP/1.1 200 OK")) << i;
  EXPECT_EQ(status().failures, 4U) << "two more at the new one";
}

TEST_F(WithSeveralAddresses, WhenAllAreDownTheServerIsLeftAlone) {
  found_at({down_, also_down_});
  for (int i = 0; i < 4; ++i) ASSERT_THAT(ask(), HasSubstr("HTTP/1.1 502")) << i;
  EXPECT_EQ(status().ejected_by, 1U);
  EXPECT_EQ(status().addresses_ejected, 2U);
}

// No descriptor may be opened for as long as it lives; those that are open stay.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    if (::getrlimit(RLIMIT_NOFILE, &before_) != 0) std::abort();
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &none) != 0) std::abort();
  }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;
  ~NoMoreDescriptors() { (void)::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

// What the gateway lacks is not held against the server, which is as good as ever afterwards.
TEST_F(WithSeveralAddresses, OurOwnLackIsNoFaultOfTheServer) {
  found_at({up_, down_});
  ASSERT_THAT(ask(), HasSubstr("HTTP/1.1 200 OK"));
  {
    const NoMoreDescriptors none;
    for (int i = 0; i < 5; ++i) {
      ASSERT_THAT(ask(), HasSubstr("HTTP/1.1 503 Service Unavailable")) << i;
      ASSERT_THAT(client_.heard(), HasSubstr("the gateway lacks file descriptors")) << i;
    }
  }
  EXPECT_EQ(status().failures, 0U);
  EXPECT_EQ(status().addresses_ejected, 0U);
  EXPECT_THAT(worker_.said,
              Contains(HasSubstr("the gateway lacks file descriptors: Too many open files")));
  EXPECT_THAT(ask(), HasSubstr("HTTP/1.1 200 OK"));
}

}  // namespace
}  // namespace sluice::app
