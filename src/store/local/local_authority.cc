#include "store/local/local_authority.h"

namespace sluice::store {

Completion LocalAuthority::decide_all(Call& call, Now now) noexcept {
  ++counts_.decides;
  call.failed = false;
  if (call.count == 1 && !call.checks[0].probe) {
    const Check& check = call.checks[0];
    // Leased units have no receipt by which they could be refunded.
    const ThreadCache::Use use{.remember_refusals = !check.may_be_refunded,
                               .thread_leases = check.thread_leases && !check.may_be_refunded};
    worker_.decide(check, use, now, call.answers[0]);
    call.admitted = call.answers[0].decision.allowed();
  } else {
    call.admitted = table_.decide_all(call.asked(), now, call.answered());
  }
  return Completion::now;
}

}  // namespace sluice::store
