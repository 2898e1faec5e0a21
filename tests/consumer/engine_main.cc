// A program of somebody else that decides by rules.
#include <sluice/engine.h>

#include <cstdio>

int main() {
  auto engine = sluice::Engine::from_text(
      "rules: [{name: login, match: {path: /login}, per: [ip], limit: 2/1h}]\n");
  if (!engine) {
    std::fputs(engine.error().text().c_str(), stderr);
    return 1;
  }
  sluice::EngineWorker worker{**engine};
  const auto client = sluice::IpAddress::parse("192.0.2.1");
  sluice::RequestView request;
  request.peer = *client;
  request.method = "POST";
  request.target = "/%6cogin";
  for (int i = 0; i < 3; ++i) {
    const sluice::Admission admission = worker.decide(request);
    std::printf("%s\n", admission.allowed() ? "allowed" : "rejected");
  }
  std::printf("%s\n", worker.is_rate_limited("login", {.address = client}) ? "limited" : "free");
  const auto wrong = (*engine)->load_text("rules: [{name: login}]\n");
  std::printf("%s\n", wrong ? "loaded" : "kept");
}
