// At most so many at once: a slot is taken when a request begins and given back when it ends.
#include <sluice/limiter.h>

#include <chrono>
#include <cstdio>

using namespace std::chrono_literals;

int main() {
  sluice::ManualClock clock;
  const sluice::Limit limit{
      .algorithm = sluice::Algorithm::concurrency, .amount = 1, .slot_ttl = 30s};
  sluice::Limiter limiter{limit, {.clock = &clock}};

  sluice::Reservation request = limiter.reserve("reports");
  std::printf("first: %s\n", request.decision.allowed() ? "begins" : "rejected");
  clock.advance(15s);
  request.ticket = limiter.renew(request.ticket);  // half of slot_ttl is over
  clock.advance(20s);
  std::printf("second: %s\n", limiter.allow("reports") ? "begins" : "rejected");
  limiter.refund(request.ticket);  // it has ended
  std::printf("third: %s\n", limiter.allow("reports") ? "begins" : "rejected");
}

// prints:
// first: begins
// second: rejected
// third: begins
