// The limits of a node that shares some of them with other nodes.
//
// Local limits are the table's, numbers and all. Shared limits have numbers above kLimitNumbers,
// with what an authority and a worker need: the compiled limit, the terms, and the number of the
// node's share, a limit of the table that counts while the authority cannot be reached.
//
// A number names one limit for good: places are used again, but a new tenant's number carries
// another generation, so that calls, holdings and notes which outlive their limit find nothing,
// never another limit. (The same number would come again after two thousand million registrations.)
// A limit without users keeps its place for kGrace, longer than any decision takes, so that no
// thread still reads what is freed, and a limit that returns in time gets its old number.
//
// Until the cluster's secret is known, no key of a shared limit can be formed. Limits that are
// registered before have numbers of their own: the store does not ask the authority about them, and
// rules have to be compiled again when the secret has arrived.
//
// Thread-safe. Finding a limit costs two loads and waits for nobody; all else may allocate and
// lock.
#pragma once

#include "store/limits.h"
#include "store/local/local_authority.h"
#include "store/shared/authority.h"
#include <sluice/sharing.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace sluice::store {

// Distinguishes the keys of shares from all others in the table.
inline constexpr std::uint64_t kShareSalt = 0x7368'6172'6520'6f66ULL;

// A shared limit, as workers read it.
struct SharedTerms {
  static constexpr LimitNumber kNoShare = ~LimitNumber{0};

  LimitNumber number = 0;
  Sharing sharing;
  std::unique_ptr<const AuthorityLimit> limit;
  // Whether the cluster's secret was known when it was registered. If not, the keys of its checks
  // are the node's own, which mean nothing to the authority.
  bool is_keyed = false;
  // Of the table; kNoShare: there is none that is small enough, or another policy holds.
  std::atomic<LimitNumber> share{kNoShare};

  // Whether a rejection holds until its time: no slot is given back, and none has to be counted.
  [[nodiscard]] bool rejections_last() const noexcept {
    return limit->limit.algorithm != Algorithm::concurrency && !limit->limit.count_rejected;
  }
};

class SharedLimits final : public Limits {
 public:
  static constexpr std::size_t kLimitsMax = 65'536;
  static constexpr Nanos kGrace = std::chrono::minutes{10};

  // `nodes`: how many share the limits, at least 1.
  SharedLimits(LocalStore& table, CompileLimit compile, std::uint32_t nodes);

  [[nodiscard]] Parsed<LimitNumber> use(const Limit& limit, const Sharing& sharing,
                                        Now now) override;
  [[nodiscard]] Parsed<LimitNumber> use_for_request(const Limit& limit, const Sharing& sharing,
                                                    Now now) override;
  void stop_using(LimitNumber number) noexcept override;

  // `automatic` is shared: there is an authority.
  [[nodiscard]] bool is_local(const Sharing& sharing) const noexcept override {
    return sharing.mode == Mode::local;
  }
  [[nodiscard]] DigestSecret secret() const noexcept override { return local_.secret(); }
  [[nodiscard]] std::optional<DigestSecret> shared_secret() const noexcept override;
  // By the thread that compiles rules, which it does again afterwards.
  void set_shared_secret(DigestSecret secret) noexcept;

  // All shares change with it, from the next decision on. What was used of them stays used.
  void set_nodes(std::uint32_t nodes, Now now);

  // ---- workers ----------------------------------------------------------------------------------

  // Null: a number of a limit that is gone, or of a local one. Valid for as long as a decision
  // takes.
  [[nodiscard]] const SharedTerms* find(LimitNumber number) const noexcept {
    const SharedTerms* const terms = places_[number % kLimitsMax].load(std::memory_order_acquire);
    return terms != nullptr && terms->number == number ? terms : nullptr;
  }

 private:
  struct Place {
    std::unique_ptr<SharedTerms> terms;
    std::string identity;
    std::uint32_t users = 0;
    std::uint32_t generation = 0;
    std::optional<MonoTime> unused_since;  // as far as a registration has noticed
  };
  struct Retired {
    std::unique_ptr<SharedTerms> terms;
    MonoTime since;
  };

  [[nodiscard]] Parsed<LimitNumber> use_shared(const Limit& limit, const Sharing& sharing,
                                               std::size_t places_max, Now now);
  [[nodiscard]] Parsed<LimitNumber> share_number(const SharedTerms& terms, Now now);
  void note_unused(Now now);
  [[nodiscard]] std::optional<std::size_t> free_place(std::size_t places_max, Now now);
  void vacate(std::size_t index, Now now) noexcept;

  LocalLimits local_;
  const CompileLimit compile_;
  const std::unique_ptr<std::atomic<const SharedTerms*>[]> places_;

  mutable std::mutex mutex_;
  // Guarded by mutex_:
  std::uint32_t nodes_;
  std::vector<Place> tenants_;
  std::map<std::string, std::size_t, std::less<>> by_identity_;
  std::vector<std::size_t> left_;  // by their last user, not yet noticed
  std::vector<Retired> retired_;
  std::optional<DigestSecret> secret_;
};

}  // namespace sluice::store
