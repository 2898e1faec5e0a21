// Servers that are known by name, and a name server that takes its time.
#include "app/server_worker.h"

#include "app/worker_fixture.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

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
    return net::Addresses{*IpAddress::parse("127.0.0.1")};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Mood mood_ = Mood::silent;
};

class ByName : public ::testing::Test {
 protected:
  ~ByName() override { names_->be(NameServer::Mood::ignorant); }

  static constexpr std::string_view kFile = R"(
listen: {{gateway: '127.0.0.1:0'}}
state: {{memory: 4MiB}}
upstreams: {{app: {{servers: ['app.internal:{}'], connect: 3s}}}}
routes: [{{path: '/**', upstream: app}}]
rules: [{{name: each, per: ip, limit: 1000/1s}}]
)";
  static constexpr std::string_view kRequest = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";

  ManualClock clock_{{.mono = MonoTime{1h}, .wall_offset = 1'700'000'000s}};
  std::shared_ptr<NameServer> names_ = std::make_shared<NameServer>();
  net::Listener of_app_ = net::listen_on(net::testing::free_port()).value();
  fixture::OneWorker worker_{
      fmt::format(kFile, of_app_.endpoint().port),
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

}  // namespace
}  // namespace sluice::app
