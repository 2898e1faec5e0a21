// For tests: runs two threads in every order that can make a difference.
//
// A table whose Access is SteppedAccess stops at each load and exchange of a slot. Only one of the
// two threads runs at a time; at each stop, the schedule says who goes on. The schedules are walked
// through depth first, by replaying a prefix and changing the decision after it:
//
//   every order   Of schedules that differ only in the order of steps that do not see each other,
//                 one is run (dynamic partial-order reduction: a decision is changed where the
//                 other thread's later step touches the same slot, and one of the two writes it;
//                 a thread whose step was tried sleeps until the other one touches what it did).
//                 The bytes of `passed` have no stops of their own. Reading one is part of the last
//                 step of a look at its group, which begins with the first line: of one of the last
//                 two slots. A step that changed one is seen to have done so.
//   bounded       All orders with up to so many switches from a thread that could have gone on. For
//                 states in blocks, through which threads see each other outside of slots.
//
// Orders in which the two hand the turn to each other for ever are cut: past kBranchSteps steps,
// whoever runs goes on.
#pragma once

#include "store/local/atomic16.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <semaphore>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace sluice::store {

class Interleaver {
 public:
  static constexpr std::size_t kBranchSteps = 400;

  // What the threads share: to see who touches what.
  struct Watched {
    const Pair* slots = nullptr;
    std::span<const std::uint8_t> passed;
    std::size_t slots_per_group = 8;
  };

  Interleaver();
  Interleaver(const Interleaver&) = delete;
  Interleaver& operator=(const Interleaver&) = delete;
  ~Interleaver();

  // One schedule: both bodies to their ends. `stop_first_after`: the first thread makes so many
  // steps, then the other one runs to its end, then `stopped` is called, and the first goes on.
  using Bodies = std::array<std::function<void()>, 2>;
  void run_stopping(const Watched& watched, const Bodies& bodies, std::size_t stop_first_after,
                    const std::function<void()>& stopped);

  // All schedules. `reset` makes everything as it was, `check` sees the end. Answers how many
  // there are.
  struct Space {
    Watched watched;
    std::function<void()> reset;
    Bodies bodies;
    std::function<bool()> check;  // false: stop here
    std::optional<int> switches;  // absent: every order
    std::size_t most = 100'000;   // schedules
  };
  std::size_t explore(const Space& space);

  // The steps of the last schedule: "0:r3 1:w3" is a read of slot 3, then the other one's write.
  [[nodiscard]] std::string schedule() const;
  [[nodiscard]] std::size_t steps_of(int thread) const;

  // Called by SteppedAccess, on threads that are being scheduled.
  static bool is_scheduled() noexcept;
  static void stop_before(const Pair* at) noexcept;
  static void wrote() noexcept;  // the step that was stopped before

 private:
  struct Step {
    int thread = 0;
    std::size_t slot = 0;
    bool writes = false;
    std::uint64_t passed = 0;  // groups whose byte it changed
  };
  struct Node {
    int chosen = 0;
    int asleep = kNobody;  // whose next step was tried before; nothing has touched it since
    Step sleeping;         // that step
    std::array<bool, 2> wanted{};
    std::array<bool, 2> done{};
  };

  static constexpr int kNobody = 2;

  void work(int self);
  void run(const Watched& watched, const Bodies& bodies);
  void arrive(int self, bool ended) noexcept;
  [[nodiscard]] int pick(int self) noexcept;
  void close_step() noexcept;
  [[nodiscard]] bool depend(const Step& a, const Step& b) const noexcept;
  void want_changes(const Space& space);
  [[nodiscard]] bool next_plan(bool bounded);

  Watched watched_;
  const Bodies* bodies_ = nullptr;
  std::vector<int> plan_;  // decisions to repeat
  std::vector<Step> steps_;
  std::vector<Node> nodes_;
  std::vector<std::uint8_t> passed_before_;
  std::array<std::size_t, 2> pending_{};  // the slot each is about to touch
  std::array<bool, 2> ended_{};
  std::array<bool, 2> arrived_{};
  std::size_t stop_first_after_ = 0;
  const std::function<void()>* stopped_ = nullptr;

  bool quit_ = false;
  std::array<std::binary_semaphore, 2> turns_;
  std::binary_semaphore finished_{0};
  std::array<std::thread, 2> threads_;
};

struct SteppedAccess {
  [[nodiscard]] static Pair load(Pair* at) noexcept {
    if (Interleaver::is_scheduled()) Interleaver::stop_before(at);
    return load16(at);
  }
  [[nodiscard]] static std::uint64_t load_key(Pair* at) noexcept { return load(at).key; }
  [[nodiscard]] static Pair* with_key(Pair* at, std::uint64_t key, Pair* otherwise) noexcept {
    return load(at).key == key ? at : otherwise;
  }
  [[nodiscard]] static std::uint64_t load_state(Pair* at) noexcept { return load(at).state; }
  [[nodiscard]] static bool exchange(Pair* at, Pair expected, Pair desired) noexcept {
    if (Interleaver::is_scheduled()) Interleaver::stop_before(at);
    const bool exchanged = exchange16(at, expected, desired);
    if (exchanged && Interleaver::is_scheduled()) Interleaver::wrote();
    return exchanged;
  }
};

}  // namespace sluice::store
