// Many requests at once, as a server has them after reading its sockets.
#include <sluice/limiter.h>

#include <cstdio>
#include <vector>

int main() {
  sluice::Limiter limiter{"3/1h"};
  const std::vector<sluice::Limiter::Request> requests{
      {.key = "alice"}, {.key = "bob", .cost = 3}, {.key = "alice", .cost = 2}, {.key = "bob"}};
  std::vector<sluice::Decision> decisions(requests.size());
  limiter.check(requests, decisions);

  for (std::size_t i = 0; i < requests.size(); ++i) {
    std::printf("%.*s: %s\n", static_cast<int>(requests[i].key.size()), requests[i].key.data(),
                decisions[i].allowed() ? "allowed" : "rejected");
  }
}

// prints:
// alice: allowed
// bob: allowed
// alice: allowed
// bob: rejected
