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
    end_segment(Boundary::end);
    return fault_;
  }
  [[nodiscard]] bool has_escaped_slash() const noexcept { return has_slash_ || has_backslash_; }
  [[nodiscard]] std::string_view written() const noexcept { return {out_.data(), size_}; }

 private:
  // What ends a segment.
  enum class Boundary : std::uint8_t { slash, escaped_slash, end };

  void write_next(std::string_view& rest) noexcept {
    const char c = rest.front();
    if (is_segment_character(c)) return write_plain(rest);
    if (c == '%') return write_encoded(rest);
    rest.remove_prefix(1);
    if (c == '/') return end_segment(Boundary::slash);
    if (c == '\\') return fail(TargetFault::backslash);
    if (is_refused(c)) return fail(TargetFault::bad_character);
    put_encoded(c);
  }

  // As many as stand in a row: that is most of most paths.
  void write_plain(std::string_view& rest) noexcept {
    std::size_t length = 1;
    while (length < rest.size() && is_segment_character(rest[length])) ++length;
    if (length > out_.size() - size_) return fail(TargetFault::too_long);
    char* const to = out_.data() + size_;
    if (options_.case_insensitive_paths) {
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
    if (c == '/' || c == '\\') return write_escaped_slash(c);
    if (is_segment_character(c) && c != ';')
      return put(options_.case_insensitive_paths ? lower(c) : c);
    put_encoded(c);
  }

  void write_escaped_slash(char c) noexcept {
    (c == '/' ? has_slash_ : has_backslash_) = true;
    if (!options_.decode_slashes) return put_encoded(c);
    if (has_slash_ && has_backslash_) return fail(TargetFault::mixed_slashes);
    const bool is_in_parameter =
        options_.ignore_path_parameters && written().substr(segment_).find(';') != kNone;
    if (is_in_parameter) return fail(TargetFault::parameter_slash);
    end_segment(Boundary::escaped_slash);
  }

  // At the end of the path a dot segment leaves the slash in front of it.
  void end_segment(Boundary at) noexcept {
    if (fault_ != TargetFault::none) return;
    const bool is_by_escape = begins_by_escape_ || at == Boundary::escaped_slash;
    begins_by_escape_ = at == Boundary::escaped_slash;
    const std::string_view whole = written().substr(segment_);
    if (is_dots_with_parameter(whole)) return fail(TargetFault::dot_parameter);
    const std::string_view segment =
        options_.ignore_path_parameters ? whole.substr(0, whole.find(';')) : whole;
    size_ = segment_ + segment.size();
    if (segment == "." || segment == "..") {
      if (is_by_escape) return fail(TargetFault::dots_by_slash);
      size_ = segment_;
      if (segment.size() == 2) leave_segment();
    } else if (segment.empty()) {
      merged_at_ = size_;
    } else if (at != Boundary::end) {
      put('/');
    }
    segment_ = size_;
  }

  // The segment that .. takes away is another one for servers that do not merge slashes, if an
  // empty one stands before the dots. At the root there is none to take away. An earlier
  // merged_at_ need not be remembered: the way to it leads past the last one.
  void leave_segment() noexcept {
    if (size_ == 1) return;
    if (merged_at_ == size_) return fail(TargetFault::dots_over_empty);
    size_ = written().substr(0, size_ - 1).rfind('/') + 1;
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
  std::size_t segment_ = 0;        // where the current one begins
  std::size_t merged_at_ = 0;      // where an empty segment was left out last
  bool begins_by_escape_ = false;  // the current one, at an escaped slash that is decoded
  bool has_slash_ = false;         // escaped ones
  bool has_backslash_ = false;
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
  const bool stays = !options.case_insensitive_paths && !options.ignore_path_parameters;
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
  result.has_escaped_slash = writer.has_escaped_slash();
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
    case TargetFault::dots_over_empty: return "a .. segment behind an empty one";
    case TargetFault::dots_by_slash: return "a dot segment beside an escaped slash";
    case TargetFault::mixed_slashes: return "both %2F and %5C in the path";
    case TargetFault::parameter_slash: return "an escaped slash in a parameter";
    case TargetFault::escaped_slash: return "an escaped slash, which escaped_slashes rejects";
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

Target read_target(std::string_view target, const PathOptions& options, EscapedSlashes slashes,
                   std::span<char> scratch, std::span<char> decoded_scratch) noexcept {
  Target result = normalise_target(target, options, scratch);
  if (!result.has_escaped_slash || slashes == EscapedSlashes::keep) return result;
  if (slashes == EscapedSlashes::reject) return {.fault = TargetFault::escaped_slash};
  PathOptions decoding = options;
  decoding.decode_slashes = true;
  const Target decoded = normalise_target(target, decoding, decoded_scratch);
  if (!decoded.ok()) return decoded;
  if (decoded.route() != result.route()) result.decoded = decoded.path;
  return result;
}

bool has_escaped_slash(std::string_view path) noexcept {
  for (std::size_t at = path.find('%'); at != kNone; at = path.find('%', at + 1)) {
    const std::optional<char> decoded = decode_percent(path.substr(at));
    if (decoded == '/' || decoded == '\\') return true;
  }
  return false;
}

}  // namespace sluice::identity
