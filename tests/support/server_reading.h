// How a server reads the path of a request: decoded once, escaped slashes and all, then dot
// segments resolved. Written down apart from the product, to compare it with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::testing {

using Segments = std::vector<std::string>;

// nginx merges slashes before it resolves dot segments; other servers do not merge them.
enum class Slashes : std::uint8_t { merged, separate };

[[nodiscard]] std::string decoded_once(std::string_view text);

// Without empty ones. Nothing: the server rejects the path, as nginx does with one that leaves the
// root.
[[nodiscard]] std::optional<Segments> as_servers_read(std::string_view target, Slashes slashes);

}  // namespace sluice::testing
