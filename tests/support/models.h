// Reference models: what the design says about each algorithm, in the slowest and most obvious way.
//
// No model shares a line, a data structure or an arithmetic trick with the step functions. Buckets
// hold an exact fraction of tokens, logs a list of everything ever admitted, windows a map from
// window to count, and a wait is found by trying the instants at which something can change. Time
// is the number of nanoseconds since the epoch of whichever clock the algorithm uses; it must not
// go back.
#pragma once

#include <sluice/decision.h>
#include <sluice/limit.h>

#include <gmpxx.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace sluice::testing {

// Without bounds and exact. A quotient is written as one of two Rationals: a Rational made of a
// numerator and a denominator would not be reduced.
using BigInt = mpz_class;
using Rational = mpq_class;

[[nodiscard]] BigInt floor_of(const Rational& value);
[[nodiscard]] BigInt ceil_of(const Rational& value);

class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  [[nodiscard]] virtual Decision decide(std::int64_t now, std::uint32_t cost) = 0;
};

// token_bucket with continuous refill, leaky_bucket, gcra. Tokens below zero are requests that wait
// in the queue.
class BucketModel final : public Model {
 public:
  struct Numbers {
    Rational interval;  // nanoseconds per token
    std::uint64_t burst = 1;
    std::int64_t max_delay = 0;  // nanoseconds
    bool count_rejected = false;
  };
  explicit BucketModel(Numbers numbers) : numbers_(std::move(numbers)), tokens_(numbers_.burst) {}

  [[nodiscard]] Decision decide(std::int64_t now, std::uint32_t cost) override;

  // Charges a request that somebody else admitted; whether this model would have admitted it.
  [[nodiscard]] bool take(std::int64_t now, std::uint32_t cost);

 private:
  void refill(std::int64_t now);

  Numbers numbers_;
  Rational tokens_;
  std::int64_t last_ = 0;
};

// token_bucket, refill: interval.
class IntervalModel final : public Model {
 public:
  struct Numbers {
    std::uint64_t amount = 1;
    std::int64_t period = 1;
    std::uint64_t burst = 1;
    bool count_rejected = false;
  };
  explicit IntervalModel(Numbers numbers) : numbers_(numbers), tokens_(numbers.burst) {}

  [[nodiscard]] Decision decide(std::int64_t now, std::uint32_t cost) override;

 private:
  // Until so many tokens more have arrived.
  [[nodiscard]] Nanos wait_for(std::int64_t now, const BigInt& missing) const;

  Numbers numbers_;
  BigInt tokens_;
  std::int64_t period_seen_ = 0;
};

// fixed_window on any grid: `window` names the half-open window that holds an instant.
class WindowModel final : public Model {
 public:
  using Grid = std::function<std::pair<std::int64_t, std::int64_t>(std::int64_t)>;
  struct Numbers {
    std::uint64_t amount = 1;
    Grid window;
    bool count_rejected = false;
  };
  explicit WindowModel(Numbers numbers) : numbers_(std::move(numbers)) {}

  [[nodiscard]] Decision decide(std::int64_t now, std::uint32_t cost) override;

  [[nodiscard]] static Grid epoch(std::int64_t period);

 private:
  Numbers numbers_;
  std::map<std::int64_t, std::uint64_t> counts_;
};

// What the window algorithms without a grid share.
struct AmountPerPeriod {
  std::uint64_t amount = 1;
  std::int64_t period = 1;
  bool count_rejected = false;
};

// fixed_window, align: first_request.
class FirstRequestModel final : public Model {
 public:
  explicit FirstRequestModel(AmountPerPeriod numbers) : numbers_(numbers) {}
  [[nodiscard]] Decision decide(std::int64_t now, std::uint32_t cost) override;

 private:
  AmountPerPeriod numbers_;
  std::map<std::int64_t, std::uint64_t> counts_;  // by the instant that opened the window
};

class LogModel final : public Model {
 public:
  explicit LogModel(AmountPerPeriod numbers) : numbers_(numbers) {}
  [[nodiscard]] Decision decide(std::int64_t now, std::uint32_t cost) override;

 private:
  [[nodiscard]] std::uint64_t sum_at(std::int64_t now) const;
  [[nodiscard]] std::optional<std::int64_t> first_instant(std::int64_t now,
                                                          std::uint64_t sum_at_most) const;
  void push_out(std::int64_t now, std::uint64_t cost);

  AmountPerPeriod numbers_;
  std::vector<std::pair<std::int64_t, std::uint64_t>> admitted_;
};

class CounterModel final : public Model {
 public:
  explicit CounterModel(AmountPerPeriod numbers) : numbers_(numbers) {}
  [[nodiscard]] Decision decide(std::int64_t now, std::uint32_t cost) override;

 private:
  [[nodiscard]] std::uint64_t count(std::int64_t window) const;
  [[nodiscard]] Rational estimate(std::int64_t now) const;
  [[nodiscard]] Nanos wait_until(std::int64_t now, const Rational& estimate_at_most) const;

  AmountPerPeriod numbers_;
  std::map<std::int64_t, std::uint64_t> counts_;
};

class SlicesModel final : public Model {
 public:
  struct Numbers {
    std::uint64_t amount = 1;
    std::int64_t period = 1;
    std::int64_t width = 1;
    bool count_rejected = false;
  };
  explicit SlicesModel(Numbers numbers) : numbers_(numbers) {}
  [[nodiscard]] Decision decide(std::int64_t now, std::uint32_t cost) override;

 private:
  // The instant from which a slice no longer counts.
  [[nodiscard]] std::int64_t gone_at(std::int64_t slice) const;
  [[nodiscard]] std::uint64_t sum_at(std::int64_t now) const;
  [[nodiscard]] std::int64_t first_instant(std::int64_t now, std::uint64_t sum_at_most) const;
  void push_out(std::int64_t now, std::uint64_t cost);

  Numbers numbers_;
  std::map<std::int64_t, std::uint64_t> counts_;
};

// Leases one by one: each lapses when the generation after the one that took it ends.
class LeaseModel final : public Model {
 public:
  struct Numbers {
    std::uint64_t amount = 1;
    std::int64_t slot_ttl = 1;
  };
  explicit LeaseModel(Numbers numbers) : numbers_(numbers) {}
  [[nodiscard]] Decision decide(std::int64_t now, std::uint32_t cost) override;

  // By the position of the lease among all that were ever admitted.
  void release(std::size_t lease);
  bool renew(std::int64_t now, std::size_t lease);
  [[nodiscard]] std::size_t leases() const noexcept { return leases_.size(); }

 private:
  struct Lease {
    std::uint64_t cost;
    std::int64_t lapses_at;
  };
  [[nodiscard]] std::int64_t lapse(std::int64_t now) const;
  [[nodiscard]] std::uint64_t in_flight(std::int64_t now) const;

  Numbers numbers_;
  std::vector<Lease> leases_;
};

// The model of any limit that compiles. Calendar windows need their grid.
[[nodiscard]] std::unique_ptr<Model> model_of(const Limit& limit,
                                              WindowModel::Grid calendar = nullptr);

}  // namespace sluice::testing
