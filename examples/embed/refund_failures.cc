// Only failed logins count: a try is charged first, so that no flood slips through while passwords
// are being checked, and refunded when it succeeds.
#include <sluice/limiter.h>

#include <cstdio>
#include <string_view>

bool log_in(sluice::Limiter& limiter, std::string_view user, std::string_view password) {
  const sluice::Reservation attempt = limiter.reserve(user);
  if (!attempt.decision.allowed()) {
    std::puts("locked");
    return false;
  }
  const bool right = password == "correct horse";
  if (right) limiter.refund(attempt.ticket);
  std::printf("%s, %d tries left\n", right ? "welcome" : "wrong",
              static_cast<int>(limiter.peek(user).remaining));
  return right;
}

int main() {
  sluice::Limiter failures{"3/1h"};
  for (const char* password : {"correct horse", "correct horse", "1234", "0000"}) {
    log_in(failures, "alice", password);
  }
  log_in(failures, "alice", "correct horse");
  for (const char* password : {"qwerty", "correct horse"}) log_in(failures, "alice", password);
  failures.forget("alice");  // by an administrator
  log_in(failures, "alice", "correct horse");
}

// prints:
// welcome, 3 tries left
// welcome, 3 tries left
// wrong, 2 tries left
// wrong, 1 tries left
// welcome, 1 tries left
// wrong, 0 tries left
// locked
// welcome, 3 tries left
