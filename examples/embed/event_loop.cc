// Waiting without a thread: the limiter asks the event loop to call it back.
#include <sluice/limiter.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <map>

using namespace std::chrono_literals;

// Stands for the timers of Asio, libuv or epoll. Its time is virtual, so this example takes none.
class Loop final : public sluice::Timer {
 public:
  sluice::ManualClock clock;

  void after(sluice::Nanos delay, std::function<void()> then) override {
    due_.emplace(clock.now().mono + delay, std::move(then));
  }

  void run() {
    while (!due_.empty()) {
      clock.advance(due_.begin()->first - clock.now().mono);
      due_.extract(due_.begin()).mapped()();
    }
  }

 private:
  std::multimap<sluice::MonoTime, std::function<void()>> due_;
};

int main() {
  Loop loop;
  sluice::Limiter limiter{"1/1s", {.clock = &loop.clock}};
  for (int page = 1; page <= 3; ++page) {
    limiter.acquire("api.example.com", 1min, 1, loop, [&, page](const sluice::Decision& decision) {
      const auto at = loop.clock.now().mono.time_since_epoch() / 1s;
      std::printf("page %d after %d s: %s\n", page, static_cast<int>(at),
                  decision.allowed() ? "fetched" : "given up");
    });
  }
  sluice::Pending not_needed =
      limiter.acquire("api.example.com", 1min, 1, loop, [](const auto&) {});
  not_needed.cancel();
  loop.run();
}

// prints:
// page 1 after 0 s: fetched
// page 2 after 1 s: fetched
// page 3 after 2 s: fetched
