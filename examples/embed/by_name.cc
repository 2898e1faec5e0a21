// One rule by its name, where a program knows itself what a request is about; and many at once.
#include <sluice/clock.h>
#include <sluice/engine.h>

#include <array>
#include <cstdio>

constexpr const char* kRules = R"(
state: {memory: 4MiB}
rules:
  - {name: create-url, per: user, limit: 2/1h}
  - {name: export, domain: reports, per: [tenant, header.x-format], limit: 100/1h}
)";

int main() {
  const sluice::ManualClock clock;
  const auto engine =
      sluice::Engine::from_text(kRules, "rules", {.clock = &clock, .workers = 1}).value();
  sluice::EngineWorker worker{*engine};

  for (const char* user : {"ann", "ann", "ann", "bob"}) {
    const bool limited = worker.is_rate_limited("create-url", {.user = user});
    std::printf("%s: %s\n", user, limited ? "too many" : "created");
  }

  const std::array headers{sluice::HeaderView{.name = "X-Format", .value = "pdf"}};
  sluice::Caller acme{.domain = "reports", .tenant = "acme", .headers = headers, .cost = 30};
  const auto remaining = worker.decide("export", acme)->decision().remaining;
  std::printf("%u left\n", static_cast<unsigned>(remaining));
  acme.headers = {};
  std::puts(worker.decide("export", acme).error().message.c_str());

  const sluice::RequestView request{.method = "GET", .host = "example.com", .target = "/"};
  const std::array requests{request, request, request};
  std::array<sluice::Admission, 3> admissions;
  worker.decide(requests, admissions, clock.now());
  for (const sluice::Admission& one : admissions) std::puts(one.allowed() ? "pass" : "reject");
}

// prints:
// ann: created
// ann: created
// ann: too many
// bob: created
// 70 left
// rule 'export' counts per header.x-format, which the caller does not have
// pass
// pass
// reject
