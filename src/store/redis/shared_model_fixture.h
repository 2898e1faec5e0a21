// What a field in Redis has to do, by the algorithms of core.
//
// The reference for a function is the core's step at whole-microsecond instants, waits rounded up
// to a microsecond; conversion is kept only where the step writes. Of a continuous bucket it is the
// meter in ticks of its own: a cell, made for ticks that wrap, writes the time into a bucket that
// drained long ago, after which an old receipt may seem alive when the clock goes back.
#pragma once

#include "store/redis/shared_limit.h"
#include <sluice/core/cell.h>
#include <sluice/decision.h>
#include <sluice/limit.h>
#include <sluice/time.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace sluice::store {

using SharedLimitPtr = std::shared_ptr<const SharedLimit>;

// A charge as the core names it, and the life of the field that issued it.
struct ModelCharge {
  core::Receipt receipt;
  std::uint32_t life = 0;
};

struct ModelAnswer {
  Decision decision;
  ModelCharge charge;
};

// One key's state under one limit.
class ModelState {
 public:
  [[nodiscard]] core::Outcome decide(const SharedLimit& limit, std::int64_t micros,
                                     core::Cost cost);
  core::Outcome charge(const SharedLimit& limit, std::int64_t micros, core::Cost cost);
  void refund(const SharedLimit& limit, std::int64_t micros, core::Receipt receipt,
              core::Cost amount);
  [[nodiscard]] core::Receipt renew(const SharedLimit& limit, std::int64_t micros,
                                    core::Receipt lease);
  void convert(const SharedLimit& from, const SharedLimit& to, std::int64_t micros,
               OnChange change);
  [[nodiscard]] Decision peek(const SharedLimit& limit, std::int64_t micros) const;

 private:
  [[nodiscard]] core::GcraState meter_at(const SharedLimit& limit, std::int64_t micros) const;

  core::Cell cell_;
  std::optional<core::GcraState> meter_;
  std::uint32_t edition_ = 0;  // of the meter; a cell has its own
};

class ModelField {
 public:
  // The answer, and the field as it is afterwards if the answer counts.
  struct Trial;
  [[nodiscard]] Trial decide(const SharedLimitPtr& limit, OnChange change, std::int64_t micros,
                             core::Cost cost) const;
  [[nodiscard]] Decision peek(const SharedLimitPtr& limit, OnChange change,
                              std::int64_t micros) const;

  ModelAnswer charge(const SharedLimitPtr& limit, OnChange change, std::int64_t micros,
                     core::Cost cost);
  void refund(std::int64_t micros, const ModelCharge& charge, core::Cost amount);
  ModelCharge renew(std::int64_t micros, const ModelCharge& lease);

  // Whether the key may go at this instant: nothing is used any more.
  [[nodiscard]] bool is_idle(std::int64_t micros) const;
  void expire();

 private:
  [[nodiscard]] bool is_under(const SharedLimitPtr& limit) const;
  // Whether a clock that was set back was found, and written down.
  bool settle(std::int64_t micros);
  void convert(const SharedLimitPtr& to, OnChange change, std::int64_t micros);

  SharedLimitPtr limit_;  // that wrote the field; none: there is no field
  ModelState state_;
  std::uint32_t life_ = 0;
};

struct ModelField::Trial {
  ModelAnswer answer;
  ModelField after;
};

}  // namespace sluice::store
