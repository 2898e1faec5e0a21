// Limits by number: all that rules and trees need from a store before there are requests.
//
// On the control path: these may allocate, lock and wait.
#pragma once

#include "store/check.h"
#include <sluice/diagnostic.h>
#include <sluice/limit.h>
#include <sluice/time.h>

namespace sluice::store {

class LimitNumbers {
 public:
  LimitNumbers() = default;
  LimitNumbers(const LimitNumbers&) = delete;
  LimitNumbers& operator=(const LimitNumbers&) = delete;
  virtual ~LimitNumbers() = default;

  // Equal limits get the same number. Each use is ended by one stop_using().
  [[nodiscard]] virtual Parsed<LimitNumber> use(const Limit& limit, Now now) = 0;
  virtual void stop_using(LimitNumber number) noexcept = 0;
  [[nodiscard]] virtual DigestSecret secret() const noexcept = 0;
};

}  // namespace sluice::store
