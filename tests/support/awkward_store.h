// A store of shared limits whose replies come late, in any order, or never: what callers of a store
// have to cope with, and what callers do wrong.
//
// Two other stores decide behind it. `local` keeps the limits of this node alone, `shared` is the
// truth of all nodes; both have numbers of their own, and shared limits get numbers here that
// neither of them knows. A group of shared limits goes two ways: its request has to arrive, where
// the truth decides, and its reply has to come back. A test moves both along (the script), or a
// seed does (be_random). At the deadline, groups without a reply follow their `on_failure`. A late
// reply that admitted is refunded, unless `share` or `open` has admitted the call.
//
// Misuse by callers is a test failure: see AwkwardStores::on_misuse.
#pragma once

#include "base/random.h"
#include "store/stores.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice::testing {

struct AwkwardOptions {
  Nanos budget = std::chrono::milliseconds{20};  // of a decision
  std::uint64_t nodes = 2;                       // `share` is this part of a limit
};

// Gives numbers above kLimitNumbers to shared limits, others in each instance. Thread-safe.
class AwkwardLimits final : public store::Limits {
 public:
  AwkwardLimits(store::Limits& local, store::Limits& shared, std::uint64_t nodes,
                const std::function<void(const std::string&)>& misuse);

  [[nodiscard]] Parsed<store::LimitNumber> use(const Limit& limit, const Sharing& sharing,
                                               Now now) override;
  [[nodiscard]] Parsed<store::LimitNumber> use_for_request(const Limit& limit,
                                                           const Sharing& sharing,
                                                           Now now) override;
  void stop_using(store::LimitNumber number) noexcept override;
  [[nodiscard]] bool is_local(const Sharing& sharing) const noexcept override;
  [[nodiscard]] DigestSecret secret() const noexcept override { return local_.secret(); }
  [[nodiscard]] std::optional<DigestSecret> shared_secret() const noexcept override;
  void know_shared_secret(bool known) noexcept;

  struct Entry {
    store::LimitNumber truth = 0;
    store::LimitNumber share = 0;  // in the local store
    Sharing sharing;
    std::uint64_t uses = 0;
  };
  // None: a number that was not given out.
  [[nodiscard]] std::optional<Entry> find(store::LimitNumber number) const noexcept;
  [[nodiscard]] bool is_in_use(store::LimitNumber number) const noexcept;
  // How many uses were not ended.
  [[nodiscard]] std::uint64_t uses() const noexcept;

 private:
  using Use = Parsed<store::LimitNumber> (store::Limits::*)(const Limit&, const Sharing&, Now);
  [[nodiscard]] Parsed<store::LimitNumber> use_by(Use by, const Limit& limit,
                                                  const Sharing& sharing, Now now);
  [[nodiscard]] Entry* entry(store::LimitNumber number) noexcept;
  [[nodiscard]] std::uint64_t& local_uses(store::LimitNumber number);

  store::Limits& local_;
  store::Limits& shared_;
  const std::uint64_t nodes_;
  const store::LimitNumber first_;
  const std::function<void(const std::string&)>& misuse_;

  mutable std::mutex mutex_;
  std::deque<Entry> entries_;
  std::vector<std::pair<store::LimitNumber, std::uint64_t>> local_uses_;
  bool secret_known_ = true;
};

class AwkwardStore;

// Thread-safe, but for the script. The stores behind it outlive it.
class AwkwardStores final : public store::Stores {
 public:
  AwkwardStores(store::Stores& local, store::Stores& shared, AwkwardOptions options = {});
  ~AwkwardStores() override;

  [[nodiscard]] store::Limits& limits() noexcept override { return limits_; }
  [[nodiscard]] AwkwardLimits& awkward_limits() noexcept { return limits_; }
  [[nodiscard]] std::unique_ptr<store::Store> for_worker(unsigned workers) override;

  // The stores that were made and are still there, in the order in which they were made.
  [[nodiscard]] const std::vector<AwkwardStore*>& workers() const noexcept { return workers_; }

  // Called for each misuse: a call reused, changed or left alone while it is in flight, or
  // cancelled when it is not; a number that was not given out, or of which all uses were ended; a
  // holding used after it was void, or under another check; a holding with a ticket that was
  // neither refunded nor kept. By default a failure of the test.
  std::function<void(const std::string&)> on_misuse;

 private:
  friend class AwkwardStore;

  store::Stores& local_;
  store::Stores& shared_;
  AwkwardOptions options_;
  AwkwardLimits limits_;
  std::vector<AwkwardStore*> workers_;
};

// One thread. No call allocates once as many calls were in flight before.
class AwkwardStore final : public store::Store {
 public:
  AwkwardStore(AwkwardStores& stores, unsigned workers);
  ~AwkwardStore() override;

  [[nodiscard]] store::Completion decide_all(store::Call& call, Now now) noexcept override;
  void expect(const Digest& key) noexcept override { local_->expect(key); }
  void cancel(store::Call& call, Now now) noexcept override;
  void charge(const store::Check& check, Now now) noexcept override;
  void refund(const store::Check& check, store::Holding& holding, Now now) noexcept override;
  void correct(const store::Check& check, store::Holding& holding, store::Cost cost,
               Now now) noexcept override;
  void renew(const store::Check& check, store::Holding& slot, Now now) noexcept override;
  void advance(Now now) noexcept override;
  [[nodiscard]] MonoTime wake_at() const noexcept override;
  // Time passes by itself, until the next event.
  void wait() noexcept override;
  [[nodiscard]] const store::StoreCounts& counts() const noexcept override { return counts_; }

  // ---- the script -----------------------------------------------------------------------------
  // Call j is the j-th of those that did not complete at once, from 0; group k is of its groups.
  // What is impossible in the present state (a reply before the decision, a second one) is ignored.

  [[nodiscard]] std::size_t calls() const noexcept { return calls_; }
  [[nodiscard]] bool is_waited_for(std::size_t call) const noexcept;  // by its caller
  [[nodiscard]] std::size_t in_flight() const noexcept;               // how many are waited for

  void arrive(std::size_t call, std::size_t group, Now now) noexcept;  // the truth decides
  void reply(std::size_t call, std::size_t group, Now now) noexcept;   // that the caller gets
  void answer(std::size_t call, std::size_t group, Now now) noexcept;  // both
  void fail(std::size_t call, std::size_t group, Now now) noexcept;    // as at the deadline
  void lose(std::size_t call, std::size_t group) noexcept;             // nothing will come any more

  // Something that is on its way, a request or a reply, arrives; false: nothing is.
  bool move_any(Random& random, Now now, bool replies = true) noexcept;
  void answer_all(Now now) noexcept;

  // The shared store refuses connections: groups follow `on_failure` at once, the rest waits.
  void set_reachable(bool reachable) noexcept { reachable_ = reachable; }
  // Shared groups are answered within decide_all().
  void answer_at_once(bool at_once) noexcept { at_once_ = at_once; }
  // A rejected group completes an all-or-nothing call, and the others count as not asked.
  void reject_early(bool early) noexcept { reject_early_ = early; }

  // From now on a seed decides when requests and replies arrive, and advance() moves them.
  struct Mood {
    Nanos slowest = std::chrono::milliseconds{30};  // way; a call has two
    std::uint64_t lost_percent = 5;                 // requests, and as many replies
    std::uint64_t failed_percent = 5;
    std::uint64_t at_once_percent = 10;  // calls
  };
  void be_random(std::uint64_t seed, Mood mood);
  void be_random(std::uint64_t seed) { be_random(seed, Mood{}); }

  // How many holdings have a ticket, and were neither refunded nor kept by now.
  [[nodiscard]] std::size_t tickets() const noexcept;

 private:
  void drop(store::Holding& holding) noexcept override;

  static constexpr MonoTime kNever = MonoTime::max();
  static constexpr std::size_t kGroupsMax = store::kCallChecksMax;
  // A store is not told when a holding without a ticket is kept: the oldest are forgotten.
  static constexpr std::size_t kGrantsMax = 4096;

  enum class Stage : std::uint8_t { none, asked, decided, over };

  // A group of shared limits.
  struct Part {
    Stage stage = Stage::none;
    bool awaited = false;  // by the call: it has no verdict yet
    bool fails = false;    // instead of a reply
    MonoTime arrives = kNever;
    MonoTime replies = kNever;
  };

  struct Flight {
    store::Call* call = nullptr;  // none: the caller waits no longer
    std::size_t id = 0;
    bool in_use = false;
    bool cancelled = false;
    bool fell_back = false;
    store::Call copy;  // what was asked; answers and verdicts as far as they are known
    std::array<store::Answer, store::kCallChecksMax> replies;
    std::array<store::GroupVerdict, kGroupsMax> reply_verdicts{};
    std::array<Part, kGroupsMax> parts;
    std::array<std::uint32_t, store::kCallChecksMax> grants{};  // + 1; 0: none
    MonoTime deadline = kNever;
  };

  // What a charge that was handed out stands for.
  struct Grant {
    enum class State : std::uint8_t { unused, held, refunded, kept };
    State state = State::unused;
    bool awaited = false;     // a late reply may add to it
    bool has_ticket = false;  // its holder has to say what becomes of it
    std::uint32_t generation = 0;
    std::uint32_t posts = 0;  // that concern it and were not sent yet
    store::Check check;       // with the number that was given out
    store::Cost cost = 0;
    std::optional<store::Holding> here;   // in the local store: of a local limit, or of a share
    std::optional<store::Holding> there;  // in the truth
  };

  enum class Doing : std::uint8_t { charge, refund, correct, renew };
  struct Post {
    Doing doing = Doing::charge;
    std::uint32_t grant = 0;
    store::Check check;
    store::Cost cost = 0;
    MonoTime due;
  };

  void misuse(const std::string& text) const noexcept;
  [[nodiscard]] bool is_well_formed(const store::Call& call) const noexcept;
  [[nodiscard]] bool is_shared_group(const store::Call& call, std::size_t group) const noexcept;

  [[nodiscard]] store::Completion decide_local(store::Call& call, Now now) noexcept;
  [[nodiscard]] bool decide_local_part(Flight& flight, Now now) noexcept;
  [[nodiscard]] bool charge_local_part(Flight& flight, Now now) noexcept;
  void gather_local(const Flight& flight, bool probe) noexcept;
  void take_local(Flight& flight) noexcept;
  void launch(Flight& flight, Now now) noexcept;
  [[nodiscard]] Flight& new_flight();
  [[nodiscard]] Flight* find(std::size_t call) noexcept;
  [[nodiscard]] const Flight* find(std::size_t call) const noexcept;
  void release_if_over(Flight& flight) noexcept;

  void arrive(Flight& flight, std::size_t group, Now now) noexcept;
  void reply(Flight& flight, std::size_t group, Now now) noexcept;
  void fail(Flight& flight, std::size_t group, Now now) noexcept;
  void fall_back(Flight& flight, std::size_t group, Now now) noexcept;
  void decide_share(Flight& flight, std::size_t group, Now now) noexcept;
  void take_late_reply(Flight& flight, std::size_t group, Now now) noexcept;
  void conclude_if_known(Flight& flight, Now now, bool notify) noexcept;
  void conclude(Flight& flight, Now now, bool notify) noexcept;
  void give_back_all(Flight& flight, Now now) noexcept;
  void give_back(Flight& flight, std::size_t group, Now now) noexcept;
  void hand_out(Flight& flight) noexcept;

  [[nodiscard]] store::Check at_truth(store::Check check) const noexcept;
  [[nodiscard]] store::Check at_share(store::Check check) const noexcept;
  [[nodiscard]] Grant& unused_grant() noexcept;
  [[nodiscard]] std::uint32_t new_grant(const store::Check& check, const store::Charge& charge,
                                        bool is_here) noexcept;
  [[nodiscard]] store::Charge handle_of(std::uint32_t grant) const noexcept;
  [[nodiscard]] Grant* grant_of(const store::Check* check, const store::Holding& holding,
                                const char* what) noexcept;
  static void give_ticket(Grant& grant, store::Holding& holding) noexcept;
  static void free_if_over(Grant& grant) noexcept;

  void post(Doing doing, const store::Check& check, Grant* grant, store::Cost cost,
            Now now) noexcept;
  void carry_out(const Post& post, Now now) noexcept;
  [[nodiscard]] bool move_earliest(Now now) noexcept;
  void move(Flight& flight, std::size_t group, Now now) noexcept;

  AwkwardStores& stores_;
  AwkwardLimits& limits_;
  std::unique_ptr<store::Store> local_;
  std::unique_ptr<store::Store> shared_;
  Nanos budget_;
  store::StoreCounts counts_;
  Now seen_;

  std::size_t calls_ = 0;
  std::vector<std::unique_ptr<Flight>> flights_;
  std::vector<Grant> grants_;
  std::size_t next_grant_ = 0;
  std::vector<Post> posts_;
  store::Call scratch_;

  bool reachable_ = true;
  bool at_once_ = false;
  bool reject_early_ = false;
  std::optional<Random> random_;
  Mood mood_;
};

}  // namespace sluice::testing
