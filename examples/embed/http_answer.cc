// What a web server tells its client: status and headers, all from one Decision.
#include <sluice/clock.h>
#include <sluice/limiter.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

// Rounded up: a client that waits that many seconds is never early.
std::int64_t seconds(sluice::Nanos time) {
  return std::chrono::ceil<std::chrono::seconds>(time).count();
}

std::string answer_to(const sluice::Decision& decision) {
  std::string answer = decision.allowed() ? "200 OK\n" : "429 Too Many Requests\n";
  answer += "RateLimit-Limit: " + std::to_string(decision.limit) + "\n";
  answer += "RateLimit-Remaining: " + std::to_string(decision.remaining) + "\n";
  answer += "RateLimit-Reset: " + std::to_string(seconds(decision.reset_after)) + "\n";
  if (decision.retry_after) {
    answer += "Retry-After: " + std::to_string(seconds(*decision.retry_after)) + "\n";
  }
  return answer;
}

int main() {
  sluice::ManualClock clock;  // so that this example always prints the same
  sluice::Limiter limiter{"3/1m", {.clock = &clock}};
  std::puts(answer_to(limiter.check("203.0.113.7", 3)).c_str());
  clock.advance(std::chrono::milliseconds{1500});
  std::puts(answer_to(limiter.check("203.0.113.7")).c_str());
}

// prints:
// 200 OK
// RateLimit-Limit: 3
// RateLimit-Remaining: 0
// RateLimit-Reset: 60
//
// 429 Too Many Requests
// RateLimit-Limit: 3
// RateLimit-Remaining: 0
// RateLimit-Reset: 59
// Retry-After: 19
//
