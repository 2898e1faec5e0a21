// A client that obeys a server's limit: it waits instead of being rejected.
#include <sluice/limiter.h>

#include <chrono>
#include <cstdio>

using namespace std::chrono_literals;

int main() {
  sluice::Limiter limiter{"1/10ms"};
  for (int page = 1; page <= 3; ++page) {
    if (limiter.acquire("api.example.com", 5s).allowed()) std::printf("fetched page %d\n", page);
  }
  const sluice::Decision decision = limiter.acquire("api.example.com", 1ms);
  if (!decision.allowed()) std::puts("no page 4 within a millisecond");
}

// prints:
// fetched page 1
// fetched page 2
// fetched page 3
// no page 4 within a millisecond
