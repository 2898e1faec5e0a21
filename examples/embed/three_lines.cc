// The least that limits anything.
#include <sluice/limiter.h>

#include <cstdio>

int main() {
  sluice::Limiter limiter{"2/1h"};
  for (const char* user : {"alice", "alice", "alice", "bob"}) {
    std::printf("%s: %s\n", user, limiter.allow(user) ? "welcome" : "too many requests");
  }
}

// prints:
// alice: welcome
// alice: welcome
// alice: too many requests
// bob: welcome
