// What this program was built from. Written at build time.
#pragma once

#include <string_view>

namespace sluice::cli {

// The beginning of a commit; "unknown" of a tree without its history.
[[nodiscard]] std::string_view revision() noexcept;

}  // namespace sluice::cli
