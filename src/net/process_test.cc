// What comes from outside the process and goes there: signals, and news for the service manager.
#include "net/net_fixture.h"
#include "net/service_manager.h"
#include "net/signals.h"
#include "support/child.h"
#include "support/temp_folder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace sluice::net {
namespace {

using namespace std::chrono_literals;
using testing::Loop;

struct Heard {
  std::vector<int> signals;
  void on_signal(int number) { signals.push_back(number); }
};

TEST(SignalSource, TurnsSignalsIntoEvents) {
  const Loop loop;
  Heard heard;
  const auto source = SignalSource::create(*loop, Callback<int>::to<&Heard::on_signal>(heard));
  ASSERT_TRUE(source);
  for (const int number : {SIGTERM, SIGHUP, SIGUSR1, SIGINT}) {
    heard.signals.clear();
    ASSERT_EQ(::kill(::getpid(), number), 0);
    ASSERT_TRUE(loop.until([&] { return !heard.signals.empty(); }));
    EXPECT_EQ(heard.signals, std::vector{number});
  }
}

TEST(SignalSource, SeveralSignalsInOneTurnAreAllHeard) {
  const Loop loop;
  Heard heard;
  const auto source = SignalSource::create(*loop, Callback<int>::to<&Heard::on_signal>(heard));
  for (const int number : {SIGUSR1, SIGHUP}) ASSERT_EQ(::kill(::getpid(), number), 0);
  ASSERT_TRUE(loop.until([&] { return heard.signals.size() == 2; }));
}

TEST(SignalSource, LeavesThingsAsTheyWereButForSigpipe) {
  {
    const Loop loop;
    Heard heard;
    const auto source = SignalSource::create(*loop, Callback<int>::to<&Heard::on_signal>(heard));
    EXPECT_TRUE(source);
  }
  sigset_t mask{};
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGTERM), 0);
  EXPECT_EQ(::kill(::getpid(), SIGPIPE), 0);  // and here we are
}

// ---- the service manager ----------------------------------------------------------------------

// Listens where a service manager would.
class Manager {
 public:
  // A name that begins with @ is one without a file.
  explicit Manager(const std::string& name)
      : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{.sun_family = AF_UNIX};
    std::copy(name.begin(), name.end(), address.sun_path);
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    if (::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) std::abort();
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  [[nodiscard]] std::string hear() const {
    std::string message(1000, '\0');
    const ssize_t size = ::recv(socket_.get(), message.data(), message.size(), 0);
    return size < 0 ? "nothing" : message.substr(0, static_cast<std::size_t>(size));
  }

 private:
  FileDescriptor socket_;
};

TEST(ServiceManager, HearsHowTheProcessIsDoing) {
  const sluice::testing::TempFolder folder;
  for (const std::string& name :
       {folder.file("notify"), "@sluice-test-" + std::to_string(::getpid())}) {
    const Manager manager{name};
    ::setenv("WATCHDOG_USEC", "2000000", 1);
    ServiceManager to_manager = ServiceManager::from_environment();
    ASSERT_TRUE(to_manager.is_listening());
    EXPECT_EQ(to_manager.watchdog(), Nanos{2s});
    EXPECT_EQ(::getenv("NOTIFY_SOCKET"), nullptr);
    EXPECT_EQ(::getenv("WATCHDOG_USEC"), nullptr);
    to_manager.ready("listening on :8080");
    EXPECT_EQ(manager.hear(), "READY=1\nSTATUS=listening on :8080");
    to_manager.reloading(MonoTime{12345678ns});
    EXPECT_EQ(manager.hear(), "RELOADING=1\nMONOTONIC_USEC=12345");
    to_manager.alive();
    EXPECT_EQ(manager.hear(), "WATCHDOG=1");
    to_manager.stopping("draining");
    EXPECT_EQ(manager.hear(), "STOPPING=1\nSTATUS=draining");
  }
}

TEST(ServiceManager, ThatIsNotThereIsNotMissed) {
  for (const char* name : {"", "relative", "/nonexistent/socket", "@"}) {
    ::setenv("NOTIFY_SOCKET", name, 1);
    ::setenv("WATCHDOG_USEC", "2000000", 1);
    ServiceManager manager = ServiceManager::from_environment();
    EXPECT_FALSE(manager.is_listening()) << name;
    EXPECT_FALSE(manager.watchdog());
    manager.ready("anyway");
    manager.alive();
  }
}

TEST(ServiceManager, WatchesOnlyWhomItSays) {
  const sluice::testing::TempFolder folder;
  const std::pair<const char*, const char*> cases[] = {
      {"2000000", "1"}, {"0", ""}, {"often", ""}, {"99999999999999999999", ""}};
  int number = 0;
  for (const auto& [micros, pid] : cases) {
    const Manager manager{folder.file("notify" + std::to_string(number++))};
    ::setenv("WATCHDOG_USEC", micros, 1);
    ::setenv("WATCHDOG_PID", pid, 1);
    EXPECT_FALSE(ServiceManager::from_environment().watchdog()) << micros;
  }
}

}  // namespace
}  // namespace sluice::net
