// What identifying a request costs: a token in the verdict cache and one that is not, an API key,
// a path.

#include "identity/identifier.h"
#include "identity/path.h"
#include "support/token_maker.h"

#include <benchmark/benchmark.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace sluice::identity {
namespace {

using testing::IssuerKey;
using namespace std::chrono_literals;

constexpr Now kNow{MonoTime{1h}, 1'800'000'000s};
const std::string kPayload =
    R"({"iss":"https://issuer.example.com/","sub":"user-4711","aud":["api","web"],)"
    R"("exp":1900000000,"iat":1700000000,"org":{"id":"acme","plan":"gold"},"scope":"read write"})";

IssuerKey issuer(int which) {
  switch (which) {
    case 0: return IssuerKey::hmac(std::string(32, 's'));
    case 1: return IssuerKey::rsa();
    case 2: return IssuerKey::p256();
    default: return IssuerKey::ed25519();
  }
}

TokenVerifier verifier(const IssuerKey& from) {
  const bool shared = from.algorithm() == "HS256";
  return TokenVerifier::create({},
                               {shared ? VerificationKey::from_secret(std::string(32, 's')).value()
                                       : VerificationKey::from_pem(from.public_pem()).value()})
      .value();
}

void checking_a_token(benchmark::State& state) {
  const IssuerKey from = issuer(static_cast<int>(state.range(0)));
  const TokenVerifier checks = verifier(from);
  const std::string token = from.token(kPayload);
  state.SetLabel(from.algorithm());
  for (auto _ : state) benchmark::DoNotOptimize(checks.verify(token, kNow.wall()).fault);
}
BENCHMARK(checking_a_token)->DenseRange(0, 3);

void identify(benchmark::State& state, const std::vector<HeaderView>& headers) {
  const IssuerKey from = issuer(1);
  const std::string bearer = "Bearer " + from.token(kPayload);
  std::vector<HeaderView> all{{"host", "api.example.com"}, {"accept", "*/*"},
                              {"user-agent", "bench"},     {"accept-encoding", "gzip"},
                              {"x-request-id", "1234567"}, {"content-type", "application/json"}};
  all.insert(all.end(), headers.begin(), headers.end());
  for (HeaderView& one : all) {
    if (one.value == "TOKEN") one.value = bearer;
  }
  std::vector<ApiKeyRecord> records{{.name = "ci", .hash = hash_api_key("key-1")}};
  IdentifierConfig config{
      .address = {.source = AddressSource::x_forwarded_for,
                  .trusted_proxies = {IpRange::parse("10.0.0.0/8").value()}},
      .tokens = std::make_shared<const TokenVerifier>(verifier(from)),
      .api_keys = std::make_shared<const ApiKeys>(ApiKeys::create(std::move(records)).value())};
  const auto identifier = Identifier::create(std::move(config)).value();
  IdentifierScratch scratch;
  RequestView request;
  request.headers = all;
  request.peer = IpAddress::v4(0x0a000001);
  for (auto _ : state) {
    benchmark::DoNotOptimize(identifier->identify(request, kNow, scratch).proof);
  }
}
BENCHMARK_CAPTURE(identify, nobody, {});
BENCHMARK_CAPTURE(identify, behind_a_proxy, {{"x-forwarded-for", "192.0.2.7, 10.0.0.2"}});
BENCHMARK_CAPTURE(identify, token_in_the_cache, {{"authorization", "TOKEN"}});
BENCHMARK_CAPTURE(identify, api_key, {{"x-api-key", "key-1"}});

void finding_a_verdict(benchmark::State& state) {
  const IssuerKey from = issuer(1);
  const std::string token = from.token(kPayload);
  TokenCache cache{{}, {1, 2}};
  cache.put(cache.digest(token), verifier(from).verify(token, kNow.wall()), kNow);
  state.SetLabel(std::to_string(token.size()) + " bytes");
  for (auto _ : state) benchmark::DoNotOptimize(cache.find(cache.digest(token), kNow));
}
BENCHMARK(finding_a_verdict);

void normalising_a_path(benchmark::State& state) {
  std::array<char, kPathScratchBytes> scratch{};
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        normalise_target("/v1/accounts/4711/orders?limit=20", {}, scratch).path);
  }
}
BENCHMARK(normalising_a_path);

}  // namespace
}  // namespace sluice::identity
