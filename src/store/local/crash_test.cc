// Processes that share a file are killed at any moment, thousands of times: no charge is lost or
// made twice, nobody waits for the dead, and what they held is found again.
//
// Time hardly moves, a nanosecond a request, so that logs grow but every unit of cost that was
// charged and not refunded is still used. Each worker writes down, where all can see it, what it is
// about to ask for and what it was answered; what a killed one had asked for last is the only thing
// that nobody knows.
//
// The table is full of keys in less debt than the ones that are counted, so insertions evict.

#include "base/random.h"
#include "store/local/state_file_test.h"
#include "support/child.h"
#include "support/effort.h"
#include "support/sanitizers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <iostream>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace sluice::store {
namespace {

using testing::start_child;

const int kKills = testing::effort(1'000, 10'000);
constexpr int kBatches = 20;
constexpr std::size_t kWorkers = 3;
constexpr std::chrono::seconds kPatience{120};  // four times what it takes where nothing else runs
constexpr std::size_t kMemory = std::size_t{16} << 20U;
constexpr std::int64_t kStart = 1'000'000'000'000'000'000;
constexpr Nanos kBatchApart = std::chrono::hours{72};  // by then the counts have expired

// Each kind of state: words, blocks, and those that become one or the other. No unit comes back
// within a second.
std::vector<Limit> counted_limits() {
  const auto limit = [](Algorithm algorithm, std::uint64_t amount) {
    return Limit{.algorithm = algorithm, .amount = amount, .period = std::chrono::hours{20}};
  };
  std::vector<Limit> limits{limit(Algorithm::token_bucket, 50'000),
                            limit(Algorithm::fixed_window, 1'000'000),
                            limit(Algorithm::fixed_window, 1'000'000'000),
                            limit(Algorithm::sliding_counter, 900'000),
                            limit(Algorithm::sliding_buckets, 1'000'000),
                            limit(Algorithm::sliding_log, 200),
                            limit(Algorithm::sliding_log, 40),
                            limit(Algorithm::gcra, 40)};
  limits[2].align = Align::first_request;  // too large for a word
  limits.push_back(
      {.algorithm = Algorithm::concurrency, .amount = 50'000, .slot_ttl = std::chrono::hours{20}});
  return limits;
}

Limit long_lived(Algorithm algorithm) {
  return {.algorithm = algorithm, .amount = 1'000'000, .period = std::chrono::hours{24 * 360}};
}

constexpr std::size_t kLimits = 9;
constexpr std::size_t kKeysPerLimit = 12;
constexpr std::size_t kKeys = kLimits * kKeysPerLimit;

// One key's traffic, in units of cost.
struct Account {
  std::atomic<std::uint64_t> asked;
  std::atomic<std::uint64_t> refused;
  std::atomic<std::uint64_t> admitted;
  std::atomic<std::uint64_t> refunding;
  std::atomic<std::uint64_t> refunded;
};

struct Shared {
  std::array<Account, kKeys> accounts;
  int batch = 0;
  std::atomic<std::int64_t> passed;  // ns since the batch began
  std::atomic<std::uint64_t> untracked;
};

Now now_of(int batch, std::int64_t passed = 0) {
  return testing::at(kStart + batch * kBatchApart.count() + passed);
}

Digest counted_key(const LocalStore& store, int batch, std::size_t account) {
  return digest_of(store, static_cast<std::uint64_t>(batch) * kKeys + account);
}

constexpr std::uint64_t kFloodKeys = std::uint64_t{1} << 32U;  // keys from here on

// ---- workers
// -------------------------------------------------------------------------------------

class ChildProcess {
 public:
  ChildProcess(LocalStore& store, Shared& shared, std::uint64_t seed)
      : store_(store), shared_(shared), random_(seed) {
    const auto use = [&](const Limit& limit) { return store.use(limit, now()).value(); };
    for (const Limit& limit : counted_limits()) limits_.push_back(use(limit));
    small_ = use(long_lived(Algorithm::token_bucket));
    small_wide_ = use(long_lived(Algorithm::sliding_buckets));
  }

  // More than anybody in the flood: half of each capacity.
  void begin() {
    for (std::size_t i = 0; i < kKeys; ++i) {
      const auto half = static_cast<Cost>(core::capacity(counted_limits()[i / kKeysPerLimit]) / 2);
      ask(i, half);
      answered(i, half, store_.force(check(i, half), now()), true);
    }
  }

  // Keys in less debt than any that is counted, more than there is room for.
  void flood(std::uint64_t keys) {
    for (; keys > 0; --keys) {
      const Digest key = digest_of(store_, kFloodKeys + random_());
      const auto cost = static_cast<Cost>(1 + random_.below(300'000));
      (void)store_.decide({.key = key, .limit = small_, .cost = cost}, now());
    }
    const Digest key = digest_of(store_, kFloodKeys + random_.below(200));
    (void)store_.decide({.key = key, .limit = small_wide_, .cost = 1}, now());
  }

  void step() {
    const std::uint64_t what = random_.below(16);
    if (what < 8) return decide(random_.below(kKeys));
    if (what < 11) return decide_both();
    if (what < 13 && !charges_.empty()) return refund();
    if (what == 13) return (void)store_.read(check(random_.below(kKeys), 0).key, now());
    if (what == 14 && random_.below(200) == 0) return store_.upkeep(now());
    flood(4);
  }

 private:
  struct Charged {
    std::size_t account;
    Charge charge;
  };

  Now now() { return now_of(shared_.batch, ++shared_.passed); }

  Check check(std::size_t account, Cost cost) {
    return {.key = counted_key(store_, shared_.batch, account),
            .limit = limits_[account / kKeysPerLimit],
            .cost = cost,
            // Exact, where approximate counts would begin with what the flood has used.
            .on_table_full = OnTableFull::allow};
  }

  void ask(std::size_t account, Cost cost) { shared_.accounts[account].asked += cost; }

  // Admitted without a charge is as good as refused: nothing was written.
  void answered(std::size_t account, Cost cost, const Answer& answer, bool admitted) {
    const bool untracked = admitted && answer.charge.receipt.cost == 0;
    if (untracked) ++shared_.untracked;
    if (!admitted || untracked) {
      shared_.accounts[account].refused += cost;
      return;
    }
    shared_.accounts[account].admitted += cost;
    if (charges_.size() < 64) charges_.push_back({.account = account, .charge = answer.charge});
  }

  void decide(std::size_t account) {
    const auto cost = static_cast<Cost>(1 + random_.below(2));
    ask(account, cost);
    const Answer answer = store_.decide(check(account, cost), now());
    answered(account, cost, answer, answer.decision.allowed());
  }

  void decide_both() {
    const std::array<std::size_t, 2> both{random_.below(kKeys / 2),
                                          kKeys / 2 + random_.below(kKeys / 2)};
    const std::array<Check, 2> checks{check(both[0], 1), check(both[1], 1)};
    std::array<Answer, 2> answers;
    for (const std::size_t account : both) ask(account, 1);
    const bool admitted = store_.decide_all(checks, now(), answers);
    for (std::size_t i = 0; i < both.size(); ++i) answered(both[i], 1, answers[i], admitted);
  }

  void refund() {
    const std::size_t chosen = random_.below(charges_.size());
    const Charged charged = charges_[chosen];
    charges_[chosen] = charges_.back();
    charges_.pop_back();
    const Cost cost = charged.charge.receipt.cost;
    shared_.accounts[charged.account].refunding += cost;
    store_.refund(check(charged.account, cost), charged.charge, now());
    shared_.accounts[charged.account].refunded += cost;
  }

  LocalStore& store_;
  Shared& shared_;
  Random random_;
  std::vector<LimitNumber> limits_;
  LimitNumber small_ = 0;
  LimitNumber small_wide_ = 0;
  std::vector<Charged> charges_;
};

struct Assignment {
  std::uint64_t seed = 0;
  std::uint64_t steps = 0;  // after which it says so
  int say = -1;
};

// Works until it is killed.
[[noreturn]] void work(const std::string& file, Shared& shared, const Assignment& assignment) {
  const std::unique_ptr<LocalStore> store = open_file(file, now_of(shared.batch), kMemory);
  ChildProcess worker{*store, shared, assignment.seed};
  for (std::uint64_t step = 0;; ++step) {
    if (step == assignment.steps) (void)!::write(assignment.say, "", 1);
    worker.step();
  }
}

// ---- the test
// ------------------------------------------------------------------------------------

class Crash : public ::testing::Test {
 protected:
  Crash()
      : shared_(new(::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared{}) {}
  void TearDown() override {
    for (std::size_t i = 0; i < kWorkers; ++i) stop(i);
    ::alarm(0);
    ::munmap(shared_, sizeof(Shared));
  }

  void start(std::size_t number) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    const Assignment assignment{.seed = random_(), .steps = random_.below(100), .say = pipe[1]};
    workers_[number] = start_child([&]() -> int { work(file_, *shared_, assignment); });
    ::close(pipe[1]);
    ready_[number] = pipe[0];
  }

  void stop(std::size_t number) {
    if (workers_[number] <= 0) return;
    ::kill(workers_[number], SIGKILL);
    ::waitpid(workers_[number], nullptr, 0);
    ::close(ready_[number]);
    workers_[number] = 0;
  }

  // Kills one of them at a random moment of its work, or now and then of its start.
  void kill_one() {
    const std::size_t number = random_.below(kWorkers);
    const bool early = random_.below(16) == 0;
    char byte = 0;
    if (!early) (void)!::read(ready_[number], &byte, 1);
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::microseconds{random_.below(50)};
    while (std::chrono::steady_clock::now() < until) {
    }
    stop(number);
    start(number);
  }

  void run_batch(LocalStore& store, int batch) {
    for (Account& account : shared_->accounts) new (&account) Account{};
    shared_->batch = batch;
    shared_->passed = 0;
    ChildProcess{store, *shared_, random_()}.begin();
    for (std::size_t i = 0; i < kWorkers; ++i) start(i);
    for (int i = 0; i < kKills / kBatches; ++i) {
      kill_one();
      if (i % 50 == 0) store.upkeep(now_of(batch, shared_->passed));  // as the living do
    }
    for (std::size_t i = 0; i < kWorkers; ++i) stop(i);
  }

  void expect_accounts_balance(LocalStore& store, int batch) {
    const std::vector<Limit> limits = counted_limits();
    for (std::size_t i = 0; i < kKeys; ++i) {
      const Account& account = shared_->accounts[i];
      const LimitNumber limit = store.use(limits[i / kKeysPerLimit], now_of(batch)).value();
      const Digest key = counted_key(store, batch, i);
      const Decision decision =
          store.decide({.key = key, .limit = limit, .cost = 0}, now_of(batch, shared_->passed))
              .decision;
      const std::uint64_t used = decision.limit - decision.remaining;
      EXPECT_LE(decision.remaining, decision.limit);
      EXPECT_GE(used + account.refunding, account.admitted) << "lost, of key " << i;
      EXPECT_LE(used + account.refunded, account.asked - account.refused) << "twice, of key " << i;
      asked_ += account.asked;
    }
  }

  // A slot's key word: 36 bits of fingerprint, 2 of choice, wide, tentative, 24 of the limit. Keys
  // of the flood are so many that some fingerprints are equal.
  static void expect_one_slot_per_key(const Mapping& mapping, LimitNumber flood) {
    std::set<std::uint64_t> seen;
    for (Pair& slot : mapping.table().slots) {
      const std::uint64_t key = load16(&slot).key;
      const bool tentative = (key >> 24U & 1U) != 0;
      if (key == 0 || tentative || Table::limit_number(key) == flood) continue;
      EXPECT_TRUE(seen.insert(key >> 28U).second) << "two slots for " << (key >> 28U);
    }
  }

  // Nobody is left who could hold a block.
  static void expect_no_block_is_lost(const Mapping& mapping) {
    const BlockPool pool{mapping.slabs(), mapping.self()};
    EXPECT_TRUE(pool.left_behind([](Participant) { return false; }).empty());
    const BlockPool::Slabs slabs = mapping.slabs();
    const auto lost =
        std::count_if(slabs.sizes.begin(), slabs.sizes.end(), [&](std::uint32_t& one) {
          const auto number = static_cast<std::size_t>(&one - slabs.sizes.data());
          return one > BlockPool::kSizes || (one == 0 && number < *slabs.used);
        });
    EXPECT_EQ(lost, 0) << "of " << *slabs.used << " slabs";
  }

  testing::TempFolder folder_;
  std::string file_ = folder_.file("state");
  Shared* shared_;
  std::array<pid_t, kWorkers> workers_{};
  std::array<int, kWorkers> ready_{};
  Random random_{20'261'116};
  std::uint64_t asked_ = 0;
};

TEST_F(Crash, LosesNoChargeAndMakesNoneTwice) {
  if (testing::kThreadSanitizer) {
    GTEST_SKIP() << "its runtime guards 16-byte exchanges by a mutex of each process, so that they "
                    "are none between processes";
  }
  ::alarm(280);  // a process that hangs ends the test
  const std::unique_ptr<LocalStore> store = open_file(file_, now_of(0), kMemory);
  const Mapping mapping = Mapping::open({.memory = kMemory, .file = file_}, now_of(0)).value();
  ChildProcess{*store, *shared_, 1}.flood(store->status().slots);
  const auto begun = std::chrono::steady_clock::now();
  const LimitNumber flood = store->use(long_lived(Algorithm::token_bucket), now_of(0)).value();
  for (int batch = 0; batch < kBatches; ++batch) {
    run_batch(*store, batch);
    store->upkeep(now_of(batch));
    expect_accounts_balance(*store, batch);
    expect_one_slot_per_key(mapping, flood);
    expect_no_block_is_lost(mapping);
    EXPECT_EQ(shared_->untracked, 0U) << "or keys that are counted were evicted, too";
    EXPECT_EQ(store->status().limits_used, kLimits + 2);
    EXPECT_TRUE(try_open(file_, false, now_of(batch), kMemory));
    if (HasFailure()) FAIL() << "in batch " << batch;
    if (std::chrono::steady_clock::now() - begun < kPatience) continue;
    std::cout << "busy machine: only " << (batch + 1) * kKills / kBatches << " kills\n";
    break;
  }
  EXPECT_GT(asked_, static_cast<std::uint64_t>(kKills));
}

}  // namespace
}  // namespace sluice::store
