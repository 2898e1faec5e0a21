#include "base/byte_words.h"
#include <sluice/request.h>

#include <cstdint>

namespace sluice {

// Eight characters at a time: where they differ, they may do so in the bit that tells lower from
// upper case, and only if they are letters.
bool detail::same_letters(const char* a, const char* b, std::size_t size) noexcept {
  constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
  const auto are_same = [](std::uint64_t x, std::uint64_t y) {
    constexpr std::uint64_t kCaseBits = kOneInEachByte * 0x20U;
    const std::uint64_t letters = where_between(x | kCaseBits, 'a', 'z');
    return ((x ^ y) & ~(letters >> 2U)) == 0;  // the high bit becomes that of the case
  };
  if (size < kWordBytes) return are_same(load_short(a, size), load_short(b, size));
  for (std::size_t i = 0; i + kWordBytes < size; i += kWordBytes) {
    if (!are_same(load_word(a + i), load_word(b + i))) return false;
  }
  return are_same(load_word(a + size - kWordBytes), load_word(b + size - kWordBytes));
}

std::optional<std::string_view> RequestView::header(std::string_view lower_name) const noexcept {
  for (const HeaderView& one : headers) {
    if (equals_ignoring_case(one.name, lower_name)) return one.value;
  }
  return std::nullopt;
}

}  // namespace sluice
