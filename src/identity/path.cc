#include "identity/path.h"

#include "base/byte_words.h"
#include "base/characters.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <bit>
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
    const std::string_view whole = written().substr(segment_);
    if (is_dots_with_parameter(whole)) return fail(TargetFault::dot_parameter);
    const std::string_view segment =
        options_.ignore_parameters ? whole.substr(0, whole.find(';')) : whole;
    size_ = segment_ + segment.size();
    if (segment == ".") {
      size_ = segment_;
    } else if (segment == "..") {
      size_ = segment_;
      if (size_ > 1) size_ = written().substr(0, size_ - 1).rfind('/') + 1;
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

// The high bit of each byte that most paths are made of: letters, digits, and what stands beside
// them in ASCII, from & to ;.
constexpr std::uint64_t where_common(std::uint64_t word) noexcept {
  const std::uint64_t in_lower_case = word | (kOneInEachByte * 0x20U);
  return where_between(in_lower_case, 'a', 'z') | where_between(word, '&', ';') |
         where_between(word, '_', '_');
}

// Most paths are written as they should be, and are used where they stand: nothing encoded, no
// empty segment, none that begins with a dot. The length of such a path, or kNone where it takes a
// closer look. This is done to every target, so by words; what is missing of the last one is
// filled up with the character that ends a path.
std::size_t normal_length(std::string_view target) noexcept {
  constexpr std::uint64_t kEnds = kOneInEachByte * '?';
  std::uint64_t slash_before = 0;
  for (std::size_t i = 0;; i += sizeof(std::uint64_t)) {
    const std::size_t left = target.size() - i;
    const std::uint64_t word = left >= sizeof(std::uint64_t)
                                   ? load_word(target.data() + i)
                                   : load_short(target.data() + i, left) | kEnds << (8 * left);
    // A slash that another one or a dot follows. Some are seen where there are none, none is
    // missed.
    const std::uint64_t slashes = where_equal(word, '/');
    std::uint64_t special = (slashes << 8U | slash_before) & (slashes | where_equal(word, '.'));
    slash_before = slashes >> 56U;
    const std::uint64_t others = where_common(word) ^ kHighBits;
    if (others == 0) {
      if (special != 0) return kNone;
      continue;
    }
    special &= (others & -others) - 1;
    const std::size_t end = i + static_cast<unsigned>(std::countr_zero(others)) / 8U;
    return special == 0 && (end == target.size() || target[end] == '?') ? end : kNone;
  }
}

bool has_refused(std::string_view text) noexcept {
  const auto is_in = [](std::uint64_t word) {
    return (where_below(word, ' ' + 1) | where_equal(word, 0x7f) | where_equal(word, '#')) != 0;
  };
  std::size_t left = text.size();
  const char* at = text.data();
  for (; left >= sizeof(std::uint64_t);
       left -= sizeof(std::uint64_t), at += sizeof(std::uint64_t)) {
    if (is_in(load_word(at))) return true;
  }
  constexpr std::uint64_t kHarmless = kOneInEachByte * 'a';  // for bytes that are not there
  return left > 0 && is_in(load_short(at, left) | kHarmless << (8 * left));
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

// Where it fails, `result` is of no use.
TargetFault normalise(std::string_view target, const PathOptions& options, std::span<char> scratch,
                      Target& result) noexcept {
  if (target == "*") {
    result.path = target;
    return TargetFault::none;
  }
  if (!target.starts_with('/')) {
    const std::size_t scheme = scheme_length(target);
    if (scheme == 0) return TargetFault::not_a_target;
    target.remove_prefix(scheme);
    result.authority = target.substr(0, target.find_first_of("/?\\#"));
    if (result.authority.empty()) return TargetFault::not_a_target;
    if (has_refused(result.authority)) return TargetFault::bad_character;
    target.remove_prefix(result.authority.size());
  }
  const bool stays = !options.ignore_case && !options.ignore_parameters;
  const std::size_t normal = !target.empty() && stays ? normal_length(target) : kNone;
  const std::size_t question =
      normal != kNone ? (normal < target.size() ? normal : kNone) : target.find('?');
  if (question != kNone) {
    result.query = target.substr(question + 1);
    if (has_refused(result.query)) return TargetFault::bad_character;
  }
  if (normal != kNone && normal > 0 && normal <= scratch.size()) {
    result.path = target.substr(0, normal);
    return TargetFault::none;
  }
  PathWriter writer{options, scratch};
  const TargetFault fault = writer.write(target.substr(0, question));
  result.path = writer.written();
  return fault;
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
  Target result;
  const TargetFault fault = normalise(target, options, scratch, result);
  if (fault != TargetFault::none) result = {.fault = fault};
  return result;
}

}  // namespace sluice::identity
