// Paths in rules: /v1/users/{id}/files/**.
//
// A template is a list of segments. `*` matches one segment, `{name}` a segment with a name, and
// `**`, at the end only, any number of segments, none included. A slash at the end of a path is
// ignored: /login/ is /login, or a client could evade a limit on one by the other.
//
// Immutable.
#pragma once

#include "base/byte_words.h"
#include <sluice/diagnostic.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::rules {

struct PathSegment {
  // From the least specific to the most specific.
  enum class Kind : std::uint8_t { rest, any, parameter, literal };
  Kind kind = Kind::literal;
  std::string text;  // literal: the segment; parameter: its name

  friend bool operator==(const PathSegment&, const PathSegment&) = default;
};

// The segments as written, or the mistake in the text. A trailing slash is an empty last segment.
[[nodiscard]] Parsed<std::vector<PathSegment>> parse_path_template(std::string_view text);

class PathTemplate {
 public:
  // `case_insensitive_paths`: for paths that are in lower case.
  [[nodiscard]] static Parsed<PathTemplate> parse(std::string_view text,
                                                  bool case_insensitive_paths = false);

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] const std::vector<PathSegment>& segments() const noexcept { return segments_; }
  [[nodiscard]] std::size_t literals() const noexcept { return literals_; }

  // Whether a normalised path matches.
  [[nodiscard]] bool matches(std::string_view path) const noexcept;

  // The value of a parameter in a path that matches. Empty: there is no such parameter.
  [[nodiscard]] std::string_view value_in(std::string_view path,
                                          std::string_view parameter) const noexcept;

 private:
  // The unit of comparison: a run of literal segments with the slashes before them, or one segment
  // of another kind.
  struct Piece {
    PathSegment::Kind kind = PathSegment::Kind::literal;
    std::string text;
  };

  std::string text_;
  std::vector<PathSegment> segments_;
  std::vector<Piece> pieces_;
  std::size_t literals_ = 0;
};

// For a template that looks like a prefix, as `location /api/` is to nginx, but matches one path
// only, since it ends in a slash: the template to write instead. Empty for all others.
[[nodiscard]] std::string prefix_remedy(std::string_view text);

// The segments of a path, one after another, without the slashes between.
class PathWalker {
 public:
  explicit PathWalker(std::string_view path) noexcept : rest_(path) {
    if (rest_.ends_with('/')) rest_.remove_suffix(1);
  }
  [[nodiscard]] bool done() const noexcept { return rest_.empty(); }
  std::string_view next() noexcept {
    rest_.remove_prefix(1);
    const std::string_view segment{rest_.data(), find_byte(rest_, '/')};
    rest_.remove_prefix(segment.size());
    return segment;
  }

 private:
  std::string_view rest_;  // begins with a slash, unless it is empty
};

// Compares two templates: greater is more specific. First the number of literal segments, then,
// from the left, literal over parameter over * over **.
[[nodiscard]] int compare_specificity(const PathTemplate& a, const PathTemplate& b) noexcept;

}  // namespace sluice::rules
