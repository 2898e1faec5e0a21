// Rules instead of numbers: the engine of `sluice serve` inside a program, without the gateway.
#include <sluice/clock.h>
#include <sluice/engine.h>

#include <cstdint>
#include <cstdio>

constexpr const char* kRules = R"(
state: {memory: 4MiB}
rules:
  - {name: login, match: {path: /login}, per: ip, limit: 2/1h, count: {status: 401}}
  - {name: everybody, limit: 1000/1s}
)";

// The program itself, as far as limits are concerned.
void answer(sluice::EngineWorker& worker, const sluice::RequestView& request, std::uint16_t made) {
  sluice::Admission admission = worker.decide(request);
  if (!admission.allowed()) {
    const auto rule = admission.rule();
    std::printf("%d by %.*s\n", admission.status(), static_cast<int>(rule.size()), rule.data());
    return;
  }
  std::printf("%d\n", made);
  admission.report({.status = made});
}

int main() {
  const sluice::ManualClock clock;  // so that this example always prints the same
  const auto engine =
      sluice::Engine::from_text(kRules, "rules", {.clock = &clock, .workers = 1}).value();
  sluice::EngineWorker worker{*engine};  // one for each thread

  const sluice::RequestView login{.method = "POST",
                                  .host = "example.com",
                                  .target = "/login",
                                  .peer = *sluice::IpAddress::parse("192.0.2.1")};
  answer(worker, login, 200);
  for (int attempt = 0; attempt < 3; ++attempt) answer(worker, login, 401);

  // What is wrong is rejected as a whole, and the rules before it stay.
  const auto wrong = engine->load_text("rules: [{name: login, limt: 2/1h}]");
  std::puts(wrong.error().text().substr(0, 30).c_str());
  answer(worker, login, 401);
  if (!engine->load_text("rules: [{name: everybody, limit: 1000/1s}]")) return 1;
  answer(worker, login, 401);
}

// prints:
// 200
// 401
// 401
// 429 by login
// rules:1:23: unknown key 'limt'
// 429 by login
// 401
