// The algorithms alone, with states in memory of one's own: no table, no clock, no threads.
#include <sluice/core/compiled_limit.h>
#include <sluice/core/limit_text.h>
#include <sluice/core/uniform.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <unordered_map>
#include <variant>

using namespace std::chrono_literals;
namespace core = sluice::core;

int main() {
  const sluice::Limit limit = core::parse_limit("2/1s", std::nullopt).value();
  const core::CompiledLimit compiled = core::compile(limit).value();
  const auto& bucket = std::get<core::GcraLimit>(compiled);  // token_bucket is one, too

  std::unordered_map<std::string, core::GcraState> states;
  sluice::Now now;
  for (int i = 0; i < 4; ++i) {
    core::GcraState& state =
        states.try_emplace("alice", core::gcra_idle(bucket, now.mono)).first->second;
    const core::Step<core::GcraState> step = core::step(bucket, state, now, 1);
    state = step.state;
    std::printf("%s, %d left\n", step.decision.allowed() ? "allowed" : "rejected",
                static_cast<int>(step.decision.remaining));
    now.mono += 100ms;
  }
}

// prints:
// allowed, 1 left
// allowed, 0 left
// rejected, 0 left
// rejected, 0 left
