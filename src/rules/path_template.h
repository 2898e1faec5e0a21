// Paths with places to fill in: /v1/users/{id}, /files/*/raw, /static/**.
//
// A template is a list of segments between slashes. `*` and `{name}` stand for one whole segment
// that is not empty, a final `**` for whatever follows, also nothing. A trailing slash is a last
// segment that is empty.
#pragma once

#include <sluice/diagnostic.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::rules {

struct PathSegment {
  enum class Kind : std::uint8_t { literal, parameter, any, rest };
  Kind kind = Kind::literal;
  std::string text;  // of a literal; name of a parameter

  friend bool operator==(const PathSegment&, const PathSegment&) = default;
};

[[nodiscard]] Parsed<std::vector<PathSegment>> parse_path_template(std::string_view text);

}  // namespace sluice::rules
