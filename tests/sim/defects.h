// The decorators that put known defects back: see defect.h.
#pragma once

#include "base/random.h"
#include "sim/defect.h"
#include "sim/process.h"
#include "store/redis/function_library.h"
#include "store/redis/transport.h"
#include "store/shared/authority.h"
#include "store/store.h"

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sluice::sim {

// The functions, with the defect if it is one of theirs.
[[nodiscard]] store::FunctionLibrary library_with(Defect defect);

// Between the authority and its transport. One thread; everything outlives it.
class DefectiveTransport final : public store::Transport {
 public:
  DefectiveTransport(store::Transport& inner, Process& process, Defect defect)
      : inner_(inner), process_(process), defect_(defect) {}

  [[nodiscard]] bool send(std::uint64_t tag, const Digest& key,
                          std::span<const std::string_view> words) noexcept override;
  void flush() noexcept override;
  [[nodiscard]] bool receive(store::TransportReply& reply) noexcept override;
  [[nodiscard]] Now wait(MonoTime until) noexcept override { return inner_.wait(until); }

 private:
  struct Sent {
    Digest key;
    std::vector<std::string> words;
    MonoTime at;
    bool is_again = false;  // the second of two
    bool is_look = false;   // a read, after which it will be charged
  };

  [[nodiscard]] bool pass(std::uint64_t tag, const Digest& key,
                          const std::vector<std::string>& words) noexcept;
  [[nodiscard]] bool looked(std::uint64_t tag, store::TransportReply& reply);
  void send_again(std::uint64_t tag) noexcept;

  store::Transport& inner_;
  Process& process_;
  Defect defect_;
  std::map<std::uint64_t, Sent> sent_;                // decisions without a reply, by tag
  std::map<std::uint64_t, std::uint64_t> last_tags_;  // by place
  std::map<std::uint64_t, std::int64_t> ignored_;     // tags of duplicates, and how many
  std::vector<std::int64_t> numbers_;
  std::uint64_t duplicates_ = 0;
};

// Between the store and its authority. One thread.
class DefectiveAuthority final : public store::Authority {
 public:
  DefectiveAuthority(store::Authority& inner, Defect defect) : inner_(inner), defect_(defect) {}

  [[nodiscard]] bool decide(store::AuthorityTicket ticket, const Digest& key,
                            std::span<const store::AuthorityCheck> checks,
                            Now now) noexcept override {
    return inner_.decide(ticket, key, checks, now);
  }
  [[nodiscard]] bool charge(store::AuthorityTicket ticket, const Digest& key,
                            const store::AuthorityCheck& check, Reason reason,
                            Now now) noexcept override;
  [[nodiscard]] bool refund(const Digest& key, std::span<const store::AuthorityRefund> refunds,
                            MonoTime until, Now now) noexcept override;
  [[nodiscard]] bool renew(store::AuthorityTicket ticket, const Digest& key,
                           std::span<const store::AuthorityRefund> slots, MonoTime until,
                           Now now) noexcept override {
    return inner_.renew(ticket, key, slots, until, now);
  }
  void advance(Now now, store::AuthorityListener& listener) noexcept override;
  void flush() noexcept override { inner_.flush(); }
  [[nodiscard]] MonoTime wake_at() const noexcept override { return inner_.wake_at(); }
  [[nodiscard]] Now wait(MonoTime until) noexcept override { return inner_.wait(until); }
  [[nodiscard]] const store::AuthorityCounts& counts() const noexcept override {
    return inner_.counts();
  }
  // Whether the engine asks for a refund; others are given back by the store itself.
  void engine_refunds(bool does) noexcept { engine_refunds_ = does; }

 private:
  store::Authority& inner_;
  Defect defect_;
  bool engine_refunds_ = false;
  std::vector<store::AuthorityTicket> forgotten_;
};

// Between the engine's store and the shared one. One thread.
class DefectiveStore final : public store::Store {
 public:
  DefectiveStore(store::Store& inner, DefectiveAuthority& authority, Defect defect)
      : inner_(inner), authority_(authority), defect_(defect) {}

  [[nodiscard]] store::Completion decide_all(store::Call& call, Now now) noexcept override {
    return inner_.decide_all(call, now);
  }
  void expect(const Digest& key) noexcept override { inner_.expect(key); }
  void cancel(store::Call& call, Now now) noexcept override { inner_.cancel(call, now); }
  void charge(const store::Check& check, Now now) noexcept override { inner_.charge(check, now); }
  void refund(const store::Check& check, store::Holding& holding, Now now) noexcept override;
  void correct(const store::Check& check, store::Holding& holding, store::Cost cost,
               Now now) noexcept override;
  void renew(const store::Check& check, store::Holding& slot, Now now) noexcept override {
    inner_.renew(check, slot, now);
  }
  void advance(Now now) noexcept override { inner_.advance(now); }
  [[nodiscard]] MonoTime wake_at() const noexcept override { return inner_.wake_at(); }
  void wait() noexcept override { inner_.wait(); }
  [[nodiscard]] const store::StoreCounts& counts() const noexcept override {
    return inner_.counts();
  }

 private:
  void drop(store::Holding& holding) noexcept override { inner_.keep(holding); }

  store::Store& inner_;
  DefectiveAuthority& authority_;
  Defect defect_;
};

}  // namespace sluice::sim
