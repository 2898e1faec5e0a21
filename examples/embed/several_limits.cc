// Several limits for one key, and one request under several limiters: all or nothing.
#include <sluice/limiter.h>

#include <array>
#include <cstdio>

int main() {
  sluice::ManualClock clock;
  sluice::Limiter user{{"2/1s", "100/1h"}, {.name = "user", .clock = &clock}};
  sluice::Limiter tenant{"3/1s", {.name = "tenant", .table = user.table(), .clock = &clock}};

  for (const char* name : {"alice", "alice", "alice", "bob", "carol"}) {
    const std::array asks{
        sluice::Limiter::Ask{.limiter = &user, .key = name},
        sluice::Limiter::Ask{.limiter = &tenant, .key = "acme"},
    };
    std::array<sluice::Decision, 2> decisions;
    if (sluice::Limiter::check_all(asks, decisions, clock.now())) {
      std::printf("%s: passed\n", name);
    } else {
      std::printf("%s: rejected by %s\n", name, decisions[0].allowed() ? "tenant" : "user");
    }
  }
}

// prints:
// alice: passed
// alice: passed
// alice: rejected by user
// bob: passed
// carol: rejected by tenant
