// The request road allocates nothing: loop, timers, tasks, sockets.
#include "net/net_fixture.h"
#include "support/counted_new.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>

namespace sluice::net {
namespace {

using namespace std::chrono_literals;
using sluice::testing::allocations;

// Sends back what it hears, and re-arms a timer and a task with every request.
class Echo {
 public:
  Echo(EventLoop& loop, FileDescriptor descriptor) : loop_(loop) {
    if (!stream_.open(loop, std::move(descriptor)).is_done()) std::abort();
  }
  std::uint64_t requests = 0;

 private:
  void on_ready() {
    const IoResult result = stream_.read(buffer_);
    if (!result.is_done() || !stream_.write({buffer_.data(), result.bytes}).is_done()) return;
    ++requests;
    loop_.set(idle_, 60s);
    loop_.run_soon(task_);
  }
  void on_idle() {}
  void on_task() {}

  EventLoop& loop_;
  std::array<char, 256> buffer_{};
  Stream stream_{Callback<>::to<&Echo::on_ready>(*this)};
  Timer idle_{Callback<>::to<&Echo::on_idle>(*this)};
  Task task_{Callback<>::to<&Echo::on_task>(*this)};
};

TEST(NetAllocations, ARequestAndItsAnswerNeedNone) {
  const testing::Loop loop;
  testing::Pair pair = testing::connected_pair();
  Echo echo{*loop, std::move(pair.server)};
  const std::uint64_t before = allocations();
  for (std::uint64_t i = 1; i <= 100; ++i) {
    ASSERT_EQ(::send(pair.client.get(), "ping", 4, 0), 4);
    ASSERT_TRUE(loop.until([&] { return echo.requests == i; }));
  }
  EXPECT_EQ(allocations(), before);
}

}  // namespace
}  // namespace sluice::net
