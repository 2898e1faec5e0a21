#include "base/digest.h"

#include "support/property.h"

#include <gtest/gtest.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <rapidcheck.h>

#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace sluice {
namespace {

using sluice::testing::check_property;

// SipHash and its results are little-endian, whatever the machine is.
void store_word(std::uint64_t word, unsigned char* bytes) {
  for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(word >> (8 * i));
}
std::uint64_t load_word(const unsigned char* bytes) {
  std::uint64_t word = 0;
  for (unsigned i = 0; i < 8; ++i) word |= std::uint64_t{bytes[i]} << (8 * i);
  return word;
}

// The same digest by OpenSSL.
Digest openssl_digest(DigestSecret secret, const std::string& bytes) {
  const std::unique_ptr<EVP_MAC, decltype(&EVP_MAC_free)> mac(
      EVP_MAC_fetch(nullptr, "SIPHASH", nullptr), &EVP_MAC_free);
  const std::unique_ptr<EVP_MAC_CTX, decltype(&EVP_MAC_CTX_free)> context(
      EVP_MAC_CTX_new(mac.get()), &EVP_MAC_CTX_free);
  unsigned int c_rounds = 1;
  unsigned int d_rounds = 3;
  std::size_t size = 16;
  const OSSL_PARAM params[] = {
      OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
      OSSL_PARAM_construct_uint(OSSL_MAC_PARAM_C_ROUNDS, &c_rounds),
      OSSL_PARAM_construct_uint(OSSL_MAC_PARAM_D_ROUNDS, &d_rounds),
      OSSL_PARAM_construct_end(),
  };
  std::array<unsigned char, 16> key{};
  store_word(secret.first, key.data());
  store_word(secret.second, key.data() + 8);
  std::array<unsigned char, 16> out{};
  std::size_t written = 0;
  const bool good =
      EVP_MAC_init(context.get(), key.data(), key.size(), params) == 1 &&
      EVP_MAC_update(context.get(), reinterpret_cast<const unsigned char*>(bytes.data()),
                     bytes.size()) == 1 &&
      EVP_MAC_final(context.get(), out.data(), &written, out.size()) == 1 && written == 16;
  if (!good) throw std::runtime_error("OpenSSL has no SipHash");
  return {.low = load_word(out.data()), .high = load_word(out.data() + 8)};
}

rc::Gen<DigestSecret> secrets() {
  return rc::gen::build<DigestSecret>(
      rc::gen::set(&DigestSecret::first, rc::gen::resize(100, rc::gen::arbitrary<std::uint64_t>())),
      rc::gen::set(&DigestSecret::second,
                   rc::gen::resize(100, rc::gen::arbitrary<std::uint64_t>())));
}

rc::Gen<std::string> bytes(std::size_t longest) {
  return rc::gen::mapcat(rc::gen::resize(100, rc::gen::inRange<std::size_t>(0, longest + 1)),
                         [](std::size_t size) {
                           return rc::gen::container<std::string>(
                               size, rc::gen::resize(100, rc::gen::arbitrary<char>()));
                         });
}

// Every length up to 200, so that every tail and the length byte's neighbourhood occur.
TEST(Digest, AgreesWithOpensslAtEveryLength) {
  check_property(20, [] {
    const DigestSecret secret = *secrets();
    const std::string all = *rc::gen::container<std::string>(200, rc::gen::arbitrary<char>());
    for (std::size_t length = 0; length <= all.size(); ++length) {
      SipHash13 hash{secret};
      hash.append(std::string_view{all}.substr(0, length));
      RC_ASSERT(hash.finish() == openssl_digest(secret, all.substr(0, length)));
    }
  });
}

// Only the concatenation counts, not the pieces it comes in.
TEST(Digest, AgreesWithOpensslInAnyPieces) {
  check_property(1000, [] {
    const DigestSecret secret = *secrets();
    const std::vector<std::string> pieces =
        *rc::gen::container<std::vector<std::string>>(bytes(20));
    SipHash13 hash{secret};
    std::string whole;
    for (const std::string& piece : pieces) {
      hash.append(piece);
      whole += piece;
      RC_ASSERT(hash.finish() == openssl_digest(secret, whole));
    }
  });
}

// Two lists of parts have one digest only if they are the same list.
TEST(KeyDigest, DifferentTuplesOfTheSameTextDiffer) {
  const DigestSecret secret{.first = 1, .second = 2};
  using Part = std::pair<std::uint8_t, std::string>;
  enum Kind : std::uint8_t { text = 9, user, tenant, address, header };
  const auto digest = [&](const std::vector<Part>& parts) {
    KeyDigest key{secret};
    for (const auto& [part, value] : parts) key.add(part, value);
    return key.finish();
  };
  const std::vector<std::vector<Part>> tuples{
      {},
      {{text, ""}},
      {{text, ""}, {text, ""}},
      {{text, "ab"}, {text, "c"}},
      {{text, "a"}, {text, "bc"}},
      {{text, "abc"}},
      {{text, "abc"}, {text, ""}},
      {{text, ""}, {text, "abc"}},
      {{user, "1.2.3.4"}},
      {{address, "1.2.3.4"}},
      {{header, "1.2.3.4"}},
      {{user, "a"}, {tenant, "b"}},
      {{tenant, "a"}, {user, "b"}},
      {{tenant, "b"}, {user, "a"}},
      // A value that spells the prefix of the next part.
      {{text, std::string("a\x09\x01\0\0\0\0\0\0\0b", 11)}},
      {{text, "a"}, {text, "b"}},
  };
  std::set<Digest> digests;
  for (const auto& tuple : tuples) digests.insert(digest(tuple));
  EXPECT_EQ(digests.size(), tuples.size());
}

TEST(KeyDigest, RandomTuplesCollideOnlyIfEqual) {
  check_property(2000, [] {
    const auto parts = [] {
      return *rc::gen::container<std::vector<std::pair<int, std::string>>>(
          rc::gen::pair(rc::gen::inRange(1, 10),
                        rc::gen::container<std::string>(rc::gen::element('a', 'b', '\0'))));
    };
    const auto a = parts();
    const auto b = parts();
    const auto digest = [](const auto& tuple) {
      KeyDigest key{DigestSecret{.first = 7, .second = 9}};
      for (const auto& [part, value] : tuple) key.add(static_cast<std::uint8_t>(part), value);
      return key.finish();
    };
    RC_ASSERT((a == b) == (digest(a) == digest(b)));
  });
}

}  // namespace
}  // namespace sluice
