#include "identity/path.h"

#include "base/byte_words.h"
#include "base/characters.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace sluice::identity {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

// What RFC 3986 lets stand in a segment as it is.
constexpr std::array<bool, 256> kSegmentCharacters = [] {
  std::array<bool, 256> may_stand{};
  for (unsigned i = 0; i < may_stand.size(); ++i) {
    const char c = static_cast<char>(i);
    may_stand[i] =
        is_letter(c) || is_digit(c) || std::string_view{"-._~!$&'()*+,;=:@"}.find(c) != kNone;
  }
  return may_stand;
}();

constexpr bool is_segment_character(char c) noexcept {
  return kSegmentCharacters[static_cast<unsigned char>(c)];
}

constexpr std::array<bool, 256> kRefused = [] {
  std::array<bool, 256> refused{};
  for (unsigned i = 0; i <= ' '; ++i) refused[i] = true;
  refused[0x7f] = refused['#'] = true;
  return refused;
}();

constexpr bool is_refused(char c) noexcept { return kRefused[static_cast<unsigned char>(c)]; }

// Writes a path segment by segment. Invariant: what is written begins with a slash, holds no empty
// or dot segment before the current one, and the current one begins behind the last slash.
class PathWriter {
 public:
  PathWriter(const PathOptions& options, std::span<char> out) noexcept
      : options_(options), out_(out) {}

  TargetFault write(std::string_view path) noexcept {
    put('/');
    segment_ = size_;
    while (!path.empty() && fault_ == TargetFault::none) write_next(path);
    end_segment(false);
    return fault_;
  }
  [[nodiscard]] std::string_view written() const noexcept { return {out_.data(), size_}; }

 private:
  void write_next(std::string_view& rest) noexcept {
    const char c = rest.front();
    if (is_segment_character(c)) return write_plain(rest);
    if (c == '%') return write_encoded(rest);
    rest.remove_prefix(1);
    if (c == '/') return end_segment(true);
    if (c == '\\') return write_backslash();
    if (is_refused(c)) return fail(TargetFault::bad_character);
    put_encoded(c);
  }

  // As many as stand in a row: that is most of most paths.
  void write_plain(std::string_view& rest) noexcept {
    std::size_t length = 1;
    while (length < rest.size() && is_segment_character(rest[length])) ++length;
    if (length > out_.size() - size_) return fail(TargetFault::too_long);
    char* const to = out_.data() + size_;
    if (options_.ignore_case) {
      std::transform(rest.begin(), rest.begin() + length, to, lower);
    } else {
      std::copy_n(rest.begin(), length, to);
    }
    size_ += length;
    rest.remove_prefix(length);
  }

  void write_encoded(std::string_view& rest) noexcept {
    const std::optional<char> decoded = decode_percent(rest);
    if (!decoded) return fail(TargetFault::bad_percent);
    rest.remove_prefix(3);
    const char c = *decoded;
    if (c == '\0') return fail(TargetFault::nul);
    if (c == '\\' && options_.backslash == Backslash::slash) return end_segment(true);
    if (is_segment_character(c) && c != ';') return put(options_.ignore_case ? lower(c) : c);
    put_encoded(c);
  }

  void write_backslash() noexcept {
    switch (options_.backslash) {
      case Backslash::refuse: return fail(TargetFault::backslash);
      case Backslash::slash: return end_segment(true);
      case Backslash::encode: return put_encoded('\\');
    }
  }

  // At a slash, or at the end of the path, where a dot segment leaves the slash in front of it.
  void end_segment(bool at_slash) noexcept {
    if (fault_ != TargetFault::none) return;
    const std::string_view segment = written().substr(segment_);
    if (segment == ".") {
      size_ = segment_;
    } else if (segment == "..") {
      size_ = segment_;
      if (size_ > 1) size_ = written().substr(0, size_ - 1).rfind('/') + 1;
    } else if (is_dots_with_parameter(segment)) {
      return fail(TargetFault::dot_parameter);
    } else if (!segment.empty() && at_slash) {
      put('/');
    }
    segment_ = size_;
  }

  static bool is_dots_with_parameter(std::string_view segment) noexcept {
    return segment.starts_with(".;") || segment.starts_with("..;");
  }

  void put_encoded(char c) noexcept {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    put('%');
    put(kDigits[byte >> 4U]);
    put(kDigits[byte & 0x0fU]);
  }

  void put(char c) noexcept {
    if (size_ == out_.size()) return fail(TargetFault::too_long);
    out_[size_++] = c;
  }

  void fail(TargetFault fault) noexcept {
    if (fault_ == TargetFault::none) fault_ = fault;
  }

  const PathOptions& options_;
  std::span<char> out_;
  std::size_t size_ = 0;
  std::size_t segment_ = 0;  // where the current one begins
  TargetFault fault_ = TargetFault::none;
};

// How far a text consists of characters that are true in the table; four at a time, since this is
// done to every byte of every target.
std::size_t length_of(std::string_view text, const std::array<bool, 256>& among) noexcept {
  const auto is_among = [&](std::size_t i) {
    return static_cast<unsigned>(among[static_cast<unsigned char>(text[i])]);
  };
  std::size_t i = 0;
  while (i + 4 <= text.size() &&
         (is_among(i) & is_among(i + 1) & is_among(i + 2) & is_among(i + 3)) != 0) {
    i += 4;
  }
  while (i < text.size() && is_among(i) != 0) ++i;
  return i;
}

constexpr std::array<bool, 256> kPathCharacters = [] {
  std::array<bool, 256> characters = kSegmentCharacters;
  characters['/'] = true;
  return characters;
}();

constexpr std::array<bool, 256> kQueryCharacters = [] {
  std::array<bool, 256> characters{};
  for (std::size_t i = 0; i < characters.size(); ++i) characters[i] = !kRefused[i];
  return characters;
}();

// Whether a slash may be followed by another one or by a dot: never missed, but sometimes seen
// where it is not, which costs time only. Eight pairs of neighbours at a time.
bool may_have_special_segment(std::string_view path) noexcept {
  std::size_t i = 0;
  for (; i + sizeof(std::uint64_t) + 1 <= path.size(); i += sizeof(std::uint64_t)) {
    const std::uint64_t next = load_word(path.data() + i + 1);
    const std::uint64_t slashes = where_equal(load_word(path.data() + i), '/');
    if ((slashes & (where_equal(next, '/') | where_equal(next, '.'))) != 0) return true;
  }
  for (; i + 1 < path.size(); ++i) {
    if (path[i] == '/' && (path[i + 1] == '/' || path[i + 1] == '.')) return true;
  }
  return false;
}

// Most paths are written as they should be, and are used where they stand: nothing encoded, no
// empty segment, none that begins with a dot. The length of such a path, or kNone.
std::size_t normal_length(std::string_view target) noexcept {
  const std::size_t length = length_of(target, kPathCharacters);
  if (length < target.size() && target[length] != '?') return kNone;
  return may_have_special_segment(target.substr(0, length)) ? kNone : length;
}

// Length of "scheme://", or 0.
std::size_t scheme_length(std::string_view target) noexcept {
  const std::size_t colon = target.find("://");
  if (colon == kNone || colon == 0 || !is_letter(target.front())) return 0;
  const std::string_view scheme = target.substr(0, colon);
  const bool valid = std::all_of(scheme.begin(), scheme.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '+' || c == '-' || c == '.';
  });
  return valid ? colon + 3 : 0;
}

}  // namespace

std::string_view to_string(TargetFault fault) noexcept {
  switch (fault) {
    case TargetFault::none: return "nothing";
    case TargetFault::not_a_target: return "neither a path nor an absolute address";
    case TargetFault::bad_character: return "a control character, a space or # in the target";
    case TargetFault::bad_percent: return "% without two hexadecimal digits";
    case TargetFault::nul: return "%00 in the path";
    case TargetFault::backslash: return "a backslash in the path";
    case TargetFault::dot_parameter: return "a dot segment with a parameter";
    case TargetFault::too_long: return "the path is too long";
  }
  return "unknown";
}

Target normalise_target(std::string_view target, const PathOptions& options,
                        std::span<char> scratch) noexcept {
  if (target == "*") return {.path = target};
  Target result;
  if (!target.starts_with('/')) {
    const std::size_t scheme = scheme_length(target);
    if (scheme == 0) return {.fault = TargetFault::not_a_target};
    target.remove_prefix(scheme);
    result.authority = target.substr(0, target.find_first_of("/?\\#"));
    if (result.authority.empty()) return {.fault = TargetFault::not_a_target};
    target.remove_prefix(result.authority.size());
  }
  const std::size_t normal =
      !target.empty() && !options.ignore_case ? normal_length(target) : kNone;
  const std::size_t question =
      normal != kNone ? (normal < target.size() ? normal : kNone) : target.find('?');
  if (question != kNone) result.query = target.substr(question + 1);
  if (length_of(result.query, kQueryCharacters) < result.query.size() ||
      length_of(result.authority, kQueryCharacters) < result.authority.size()) {
    return {.fault = TargetFault::bad_character};
  }
  if (normal != kNone && normal > 0 && normal <= scratch.size()) {
    result.path = target.substr(0, normal);
    return result;
  }
  PathWriter writer{options, scratch};
  const TargetFault fault = writer.write(target.substr(0, question));
  if (fault != TargetFault::none) return {.fault = fault};
  result.path = writer.written();
  return result;
}

}  // namespace sluice::identity
