#include "base/characters.h"
#include <sluice/request.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace sluice {

// Eight characters at a time: where they differ, they may do so in the bit that tells lower from
// upper case, and only if they are letters.
bool detail::same_letters(const char* a, const char* b, std::size_t size) noexcept {
  constexpr std::uint64_t kEach = 0x0101010101010101U;
  for (; size >= 8; size -= 8, a += 8, b += 8) {
    std::uint64_t x = 0;
    std::uint64_t y = 0;
    std::memcpy(&x, a, 8);
    std::memcpy(&y, b, 8);
    const std::uint64_t differs = x ^ y;
    if (differs == 0) continue;
    if ((differs & ~(kEach * 0x20)) != 0) return false;
    const std::uint64_t low =
        (x | kEach * 0x20) & kEach * 0x7f;  // as lower case, if it is a letter
    const std::uint64_t from_a = low + kEach * (0x80 - 'a');
    const std::uint64_t after_z = low + kEach * (0x80 - 'z' - 1);
    const std::uint64_t letters = from_a & ~after_z & ~x & kEach * 0x80;
    if ((differs << 2U & ~letters) != 0) return false;
  }
  return std::equal(a, a + size, b, [](char x, char y) { return lower(x) == lower(y); });
}

std::optional<std::string_view> RequestView::header(std::string_view lower_name) const noexcept {
  for (const HeaderView& one : headers) {
    if (equals_ignoring_case(one.name, lower_name)) return one.value;
  }
  return std::nullopt;
}

}  // namespace sluice
