#include "base/characters.h"
#include <sluice/request.h>

#include <algorithm>

namespace sluice {

bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::optional<std::string_view> RequestView::header(std::string_view lower_name) const noexcept {
  for (const HeaderView& one : headers) {
    if (equals_ignoring_case(one.name, lower_name)) return one.value;
  }
  return std::nullopt;
}

}  // namespace sluice
