#include "base/byte_words.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {
namespace {

// Each value in each place, among neighbours that would disturb a careless sum.
template <class Check>
void for_each_byte(Check&& check) {
  for (const int others : {0x00, 0x20, 0x2f, 0x7f, 0x80, 0xff}) {
    for (unsigned place = 0; place < 8; ++place) {
      for (unsigned value = 0; value < 256; ++value) {
        std::array<char, 8> bytes;
        bytes.fill(static_cast<char>(others));
        bytes[place] = static_cast<char>(value);
        check(load_word(bytes.data()), place, static_cast<unsigned char>(value));
      }
    }
  }
}

bool is_set(std::uint64_t found, unsigned place) { return (found >> (8 * place + 7) & 1U) != 0; }

TEST(ByteWords, TellExactlyWhichBytesAreInARange) {
  for_each_byte([](std::uint64_t word, unsigned place, unsigned char value) {
    EXPECT_EQ(is_set(where_between(word, '&', ';'), place), value >= '&' && value <= ';');
    EXPECT_EQ(is_set(where_between(word, '_', '_'), place), value == '_');
    EXPECT_EQ(is_set(where_between(word, 0x00, 0x7f), place), value <= 0x7f);
    EXPECT_EQ(where_between(word, 'a', 'z') & ~kHighBits, 0U);
  });
}

TEST(ByteWords, MissNoByteAndAreExactForTheFirst) {
  for_each_byte([](std::uint64_t word, unsigned place, unsigned char value) {
    const std::uint64_t slashes = where_equal(word, '/');
    const std::uint64_t controls = where_below(word, 0x21);
    if (value == '/') {
      EXPECT_TRUE(is_set(slashes, place));
    }
    if (value < 0x21) {
      EXPECT_TRUE(is_set(controls, place));
    }
    const auto first = [](std::uint64_t found, std::uint64_t in) {
      return static_cast<unsigned char>(in >> (std::countr_zero(found) - 7));
    };
    if (slashes != 0) {
      EXPECT_EQ(first(slashes, word), '/');
    }
    if (controls != 0) {
      EXPECT_LT(first(controls, word), 0x21);
    }
  });
}

TEST(ByteWords, CompareEveryByteOfATextAndNoneBeyondIt) {
  for (std::size_t size = 0; size < 40; ++size) {
    const std::string text = std::string(size, 'a') + "x";
    EXPECT_TRUE(same_bytes(text.data(), (std::string(size, 'a') + "y").data(), size)) << size;
    EXPECT_FALSE(same_bytes(text, std::string(size, 'a')));
    for (std::size_t place = 0; place < size; ++place) {
      std::string other = text;
      other[place] = 'b';
      EXPECT_FALSE(same_bytes(text.data(), other.data(), size)) << size << " at " << place;
    }
  }
}

TEST(ByteWords, FindTheFirstOfACharacter) {
  for (std::size_t size = 0; size < 40; ++size) {
    std::string text = std::string(size, '.') + "/";  // the bytes beside a slash
    EXPECT_EQ(find_byte(std::string_view{text}.substr(0, size), '/'), size);
    for (std::size_t place = size; place-- > 0;) {
      text[place] = '/';
      EXPECT_EQ(find_byte(std::string_view{text}.substr(0, size), '/'), place);
    }
  }
}

}  // namespace
}  // namespace sluice
