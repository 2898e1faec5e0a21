// A program of somebody else: it touches every part of the library that has to be linked.
#include <sluice/core/limit_text.h>
#include <sluice/limiter.h>

#include <cstdio>

int main() {
  sluice::Limiter limiter{"2/1h", "1000/month"};
  for (int i = 0; i < 3; ++i) std::puts(limiter.allow("alice") ? "allowed" : "rejected");
  const sluice::Limit limit = limiter.limits()[1];
  std::printf("%s %s\n", sluice::core::rate_text(limit).c_str(),
              std::string{sluice::to_string(limit.algorithm)}.c_str());
}
