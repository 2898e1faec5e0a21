#include "base/digest.h"

#include "base/random.h"
#include "support/property.h"

#include <gtest/gtest.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

// Every value at the end of an allocation of its size, where AddressSanitizer notices a read
// beyond.
class ExactValues {
 public:
  void add(std::string_view value) {
    auto copy = std::make_unique<char[]>(value.size());
    std::copy(value.begin(), value.end(), copy.get());
    views_.emplace_back(copy.get(), value.size());
    copies_.push_back(std::move(copy));
  }
  [[nodiscard]] const std::vector<std::string_view>& views() const { return views_; }

 private:
  std::vector<std::unique_ptr<char[]>> copies_;
  std::vector<std::string_view> views_;
};

// Fixed parts whose bytes, with the kind of the last part, leave `tail` of them in the last word.
KeyDigest fixed_parts(std::size_t tail) {
  KeyDigest fixed{DigestSecret{.first = 0x0706050403020100, .second = 0x0f0e0d0c0b0a0908}};
  return fixed.add(1, std::string(6 + tail, 'f'));
}

// In every way that this machine has, one by one and as a batch.
void expect_same_as_key_digest(const KeyDigest& fixed, std::uint8_t kind,
                               std::span<const std::string_view> values) {
  const KeyHasher hasher{fixed, kind};
  std::vector<Digest> expected;
  for (const std::string_view value : values) {
    expected.push_back(fixed.finish(kind, value));
    ASSERT_EQ(hasher(value), expected.back()) << value.size() << " bytes";
  }
  const Digest untouched{.low = 1, .high = 2};
  expected.push_back(untouched);
  for (const auto lanes : {KeyHasher::Lanes::one, KeyHasher::Lanes::several}) {
    if (!KeyHasher::can_use(lanes)) continue;
    std::vector<Digest> digests(values.size() + 1, untouched);
    hasher.batch(values, digests, lanes);
    ASSERT_EQ(digests, expected) << values.size() << " values, lanes " << static_cast<int>(lanes);
  }
  std::vector<Digest> digests(values.size() + 1, untouched);
  hasher.batch(values, digests);
  ASSERT_EQ(digests, expected);

  std::vector<std::uint64_t> lows(values.size() + 1, untouched.low);
  hasher.batch_low(values, lows);
  for (std::size_t i = 0; i < lows.size(); ++i) ASSERT_EQ(lows[i], expected[i].low);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(hasher.low(values[i]), expected[i].low);
}

std::string random_bytes(Random& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

TEST(KeyHasher, AgreesWithKeyDigestAtEveryLengthAfterEveryTail) {
  Random random{1};
  for (std::size_t tail = 0; tail < 8; ++tail) {
    for (std::size_t length = 0; length <= 300; ++length) {
      ExactValues values;
      for (int i = 0; i < 8; ++i) values.add(random_bytes(random, length));
      expect_same_as_key_digest(fixed_parts(tail), 7, values.views());
    }
  }
}

// Neighbours in a batch, one of which has more words than the other, in either order.
TEST(KeyHasher, AgreesWithKeyDigestForEveryPairOfLengths) {
  Random random{2};
  for (std::size_t a = 0; a <= 82; ++a) {
    for (std::size_t b = 0; b <= 82; ++b) {
      ExactValues values;
      for (int i = 0; i < 3; ++i) {
        values.add(random_bytes(random, a));
        values.add(random_bytes(random, b));
      }
      expect_same_as_key_digest(fixed_parts((a + b) % 8), 7, values.views());
    }
  }
}

TEST(KeyHasher, AgreesWithKeyDigestForBatchesOfEverySize) {
  Random random{3};
  for (std::size_t size = 0; size <= 40; ++size) {
    ExactValues values;
    for (std::size_t i = 0; i < size; ++i) {
      values.add("user-" + std::to_string(random.below(10'000'000) >> random.below(24)));
    }
    expect_same_as_key_digest(fixed_parts(size % 8), 7, values.views());
  }
}

TEST(KeyHasher, AgreesWithKeyDigestForRandomBatches) {
  check_property(500, [] {
    KeyDigest fixed{*secrets()};
    for (const std::string& part : *rc::gen::container<std::vector<std::string>>(bytes(20))) {
      fixed.add(3, part);
    }
    const auto longest = *rc::gen::element<std::size_t>(8, 30, 80, 300);
    const auto size = *rc::gen::resize(100, rc::gen::inRange<std::size_t>(0, 41));
    ExactValues values;
    for (const std::string& value :
         *rc::gen::container<std::vector<std::string>>(size, bytes(longest))) {
      values.add(value);
    }
    const auto kind = *rc::gen::resize(100, rc::gen::arbitrary<std::uint8_t>());
    expect_same_as_key_digest(fixed, kind, values.views());
    RC_ASSERT(!::testing::Test::HasFailure());
  });
}

TEST(KeyHasher, DoesNotDependOnAlignment) {
  Random random{4};
  const std::string buffer = random_bytes(random, 200);
  for (std::size_t length = 0; length <= 80; ++length) {
    std::vector<std::string_view> values;
    for (std::size_t at = 0; at < 33; ++at) {
      values.push_back(std::string_view{buffer}.substr(at, length));
    }
    expect_same_as_key_digest(fixed_parts(length % 8), 7, values);
  }
}

TEST(KeyHasher, TakesAViewOfNothing) {
  const std::vector<std::string_view> values(5);
  for (std::size_t tail = 0; tail < 8; ++tail) {
    expect_same_as_key_digest(fixed_parts(tail), 7, values);
  }
}

}  // namespace
}  // namespace sluice
