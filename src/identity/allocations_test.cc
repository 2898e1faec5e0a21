// A client that was seen before is identified without an allocation, neither by `new` nor by
// OpenSSL. A program of its own, since it counts both.
#include "identity/identifier.h"
#include "identity/path.h"
#include "support/counted_new.h"
#include "support/token_maker.h"

#include <gtest/gtest.h>
#include <openssl/crypto.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace sluice::identity {
namespace {

using namespace std::chrono_literals;

std::atomic<std::uint64_t> g_openssl_allocations{0};

void* counted_malloc(std::size_t size, const char* /*file*/, int /*line*/) {
  ++g_openssl_allocations;
  return std::malloc(size);
}
void* counted_realloc(void* memory, std::size_t size, const char* /*file*/, int /*line*/) {
  ++g_openssl_allocations;
  return std::realloc(memory, size);
}
void counted_free(void* memory, const char* /*file*/, int /*line*/) { std::free(memory); }

// Accepted only before OpenSSL has allocated anything.
const bool kCountsOpenssl =
    CRYPTO_set_mem_functions(counted_malloc, counted_realloc, counted_free) == 1;

template <class Work>
std::uint64_t allocations_of(const Work& work) {
  const std::uint64_t before = testing::allocations() + g_openssl_allocations;
  work();
  return testing::allocations() + g_openssl_allocations - before;
}

const std::string kSecret(32, 's');
const std::string kKeySecret(32, 'k');
constexpr Now kNow{MonoTime{1h}, 1'800'000'000s};

std::shared_ptr<const Identifier> identifier() {
  std::vector<ApiKeyRecord> records{{.name = "plain", .hash = hash_api_key("key-1")},
                                    {.name = "keyed", .hash = hash_api_key("key-2", kKeySecret)}};
  IdentifierConfig config{
      .address = {.source = AddressSource::forwarded,
                  .trusted_proxies = {IpRange::parse("10.0.0.0/8").value()}},
      .geo = std::make_shared<const Geo>(
          Geo::open({.country_file = SLUICE_IDENTITY_TESTDATA "/country.mmdb",
                     .asn_file = SLUICE_IDENTITY_TESTDATA "/asn.mmdb"})
              .value()),
      .tokens = std::make_shared<const TokenVerifier>(
          TokenVerifier::create({}, {VerificationKey::from_secret(kSecret).value()}).value()),
      .api_keys =
          std::make_shared<const ApiKeys>(ApiKeys::create(std::move(records), kKeySecret).value()),
      .api_key_sources = {{ApiKeySource::Kind::header, "x-api-key"},
                          {ApiKeySource::Kind::query, "key"},
                          {ApiKeySource::Kind::cookie, "key"},
                          {ApiKeySource::Kind::basic, ""}}};
  return Identifier::create(std::move(config)).value();
}

TEST(Allocations, AreCounted) {
  ASSERT_TRUE(kCountsOpenssl);
  EXPECT_GT(allocations_of([] { const std::vector<int> some(10); }), 0U);
  EXPECT_GT(allocations_of([] { EVP_MD_CTX_free(EVP_MD_CTX_new()); }), 0U);
}

TEST(Allocations, NoClientThatIsKnownCausesOne) {
  const auto shared = identifier();
  IdentifierScratch scratch;
  const std::string good =
      "Bearer " + testing::IssuerKey::hmac(kSecret).token(R"({"sub":"u1","exp":1900000000})");
  const std::string forged =
      "Bearer " +
      testing::IssuerKey::hmac(std::string(32, 'x')).token(R"({"sub":"u1","exp":1900000000})");
  const std::vector<std::vector<HeaderView>> requests{
      {{"accept", "*/*"}},
      {{"forwarded", "for=1.2.3.4;proto=http, for=\"[2001:db8:1::1]:80\""}},
      {{"authorization", good}},
      {{"authorization", forged}},
      {{"authorization", "Basic a2V5LTE6"}},
      {{"x-api-key", "key-1"}, {"authorization", good}},
      {{"x-api-key", "key-2"}},
      {{"x-api-key", "key-3"}},
      {{"cookie", "a=b; key=key-2"}}};
  for (const std::vector<HeaderView>& headers : requests) {
    RequestView request;
    request.headers = headers;
    request.peer = IpAddress::parse("10.0.0.1").value();
    request.target = "/a/%2e%2e/b?key=%6bey-1";
    const Identity first = shared->identify(request, kNow, scratch);
    Identity second;
    EXPECT_EQ(allocations_of([&] { second = shared->identify(request, kNow, scratch); }), 0U)
        << headers[0].name << ": " << headers[0].value;
    EXPECT_EQ(second.proof, first.proof);
    EXPECT_EQ(second.user, first.user);
  }
}

TEST(Allocations, NoPathCausesOne) {
  std::array<char, kPathScratchBytes> scratch{};
  EXPECT_EQ(allocations_of([&] {
              EXPECT_EQ(normalise_target("http://h//a/./b/../%63?q", {}, scratch).path, "/a/c");
            }),
            0U);
}

}  // namespace
}  // namespace sluice::identity
