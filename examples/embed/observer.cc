// Counts decisions, for a metrics collector.
#include <sluice/limiter.h>

#include <atomic>
#include <cstdio>

class Counts final : public sluice::Observer {
 public:
  std::atomic<int> allowed{0};
  std::atomic<int> rejected{0};

  void decided(std::string_view /*limiter*/, std::string_view /*key*/, sluice::Cost /*cost*/,
               const sluice::Decision& decision) noexcept override {
    (decision.allowed() ? allowed : rejected).fetch_add(1, std::memory_order_relaxed);
  }
};

int main() {
  Counts counts;
  sluice::Limiter limiter{"2/1h", {.observer = &counts}};
  for (int i = 0; i < 5; ++i) (void)limiter.check("alice");
  std::printf("%d allowed, %d rejected\n", counts.allowed.load(), counts.rejected.load());

  const sluice::TableStatus table = limiter.table()->status();
  std::printf("%d of %d keys were forgotten for lack of room\n", static_cast<int>(table.evicted),
              static_cast<int>(table.inserted));
}

// prints:
// 2 allowed, 3 rejected
// 0 of 1 keys were forgotten for lack of room
