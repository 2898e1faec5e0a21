// A table as the authority of shared limits, for stores whose calls travel: commands and replies
// move when a test says so, commands of one key in their order, and may be lost.
//
// One thread.
#pragma once

#include "base/random.h"
#include "store/local/local_store.h"
#include "store/shared/authority.h"

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sluice::contract {

// What the authorities of all workers have in common.
class TableTruth {
 public:
  explicit TableTruth(store::LocalStore& table) noexcept : table_(table) {}

  // CompileLimit.
  [[nodiscard]] static Parsed<std::unique_ptr<const store::AuthorityLimit>> compile(
      const Limit& limit);
  [[nodiscard]] store::LimitNumber number_of(const store::AuthorityLimit& limit, Now now);
  [[nodiscard]] store::LocalStore& table() noexcept { return table_; }

 private:
  store::LocalStore& table_;
  std::map<std::string, store::LimitNumber> numbers_;
};

class TableAuthority final : public store::Authority {
 public:
  explicit TableAuthority(TableTruth& truth) noexcept : truth_(truth) {}

  [[nodiscard]] bool decide(store::AuthorityTicket ticket, const Digest& key,
                            std::span<const store::AuthorityCheck> checks,
                            Now now) noexcept override;
  [[nodiscard]] bool charge(store::AuthorityTicket ticket, const Digest& key,
                            const store::AuthorityCheck& check, Reason reason,
                            Now now) noexcept override;
  [[nodiscard]] bool refund(const Digest& key, std::span<const store::AuthorityRefund> refunds,
                            MonoTime until, Now now) noexcept override;
  [[nodiscard]] bool renew(store::AuthorityTicket ticket, const Digest& key,
                           std::span<const store::AuthorityRefund> slots, MonoTime until,
                           Now now) noexcept override;
  void advance(Now now, store::AuthorityListener& listener) noexcept override;
  [[nodiscard]] Now wait(MonoTime until) noexcept override { return {.mono = until}; }
  [[nodiscard]] const store::AuthorityCounts& counts() const noexcept override { return counts_; }

  // Some command that may go next is carried out; its reply is on its way. False: there is none.
  bool move_any(Random& order, Now now);
  // Replies arrive with the next turn, in any order.
  void let_arrive(Random& order);
  [[nodiscard]] bool has_arrivals() const noexcept { return !arrived_.empty(); }
  // Commands and replies that are on their way. What is numbered would be sent again.
  void lose();

 private:
  struct Command {
    enum class Kind { decide, charge, refund, renew };
    Kind kind = Kind::decide;
    store::AuthorityTicket ticket = 0;
    std::vector<store::Check> checks;
    std::vector<store::Charge> charges;
  };
  struct Reply {
    bool is_decision = false;
    store::AuthorityTicket ticket = 0;
    store::AuthorityOutcome outcome = store::AuthorityOutcome::done;
    std::vector<store::Answer> answers;
  };

  [[nodiscard]] static store::Check check_of(const Digest& key, std::uint64_t salt) noexcept;
  void add_slots(Command& command, const Digest& key,
                 std::span<const store::AuthorityRefund> slots);
  [[nodiscard]] Reply carry_out(const Command& command, Now now);

  TableTruth& truth_;
  std::deque<Command> commands_;
  std::vector<Reply> replies_;
  std::deque<Reply> arrived_;
  store::AuthorityCounts counts_;
};

}  // namespace sluice::contract
