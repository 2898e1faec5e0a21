#include "store/local/local_authority.h"

namespace sluice::store {

Completion LocalAuthority::decide_all(Call& call, Now now) noexcept {
  call.failed = false;
  if (call.count == 1) {
    const Check& check = call.checks[0];
    call.answers[0] = worker_.decide(
        check, {.remember_refusals = !check.may_be_refunded, .scale = check.scale}, now);
    call.admitted = call.answers[0].decision.allowed();
  } else {
    call.admitted = table_.decide_all(call.asked(), now, call.answered());
  }
  return Completion::now;
}

}  // namespace sluice::store
