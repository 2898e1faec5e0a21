// Counts the limits for which a table would need numbers, without a table: there are as many as
// the caller uses, until the counter is destroyed.
//
// One thread.
#pragma once

#include "store/limits.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace sluice::store {

class LimitCounter final : public Limits {
 public:
  // Fails where a table of any size would.
  [[nodiscard]] Parsed<LimitNumber> use(const Limit& limit, const Sharing& sharing,
                                        Now now) override;
  [[nodiscard]] Parsed<LimitNumber> use_for_request(const Limit& limit, const Sharing& sharing,
                                                    Now now) override {
    return use(limit, sharing, now);
  }
  void stop_using(LimitNumber /*number*/) noexcept override {}
  [[nodiscard]] bool is_local(const Sharing& /*sharing*/) const noexcept override { return true; }
  [[nodiscard]] DigestSecret secret() const noexcept override { return {}; }

  [[nodiscard]] std::size_t size() const noexcept { return numbers_.size(); }

 private:
  std::unordered_map<std::uint64_t, LimitNumber> numbers_;  // by limit_identity()
};

}  // namespace sluice::store
