// The one spelling of a path, so that no other spelling of it escapes a rule.
//
// Percent-encodings of characters that may stand in a segment are undone, with one exception: an
// encoded semicolon, since servers that know path parameters tell it from a plain one. %2F stays
// encoded, as do all others, in upper case; bytes that may not stand in a path become encoded.
// Empty and dot segments go, encoded or not. Normalising twice changes nothing more. Parameters
// (/login;a=b) stay, unless they are to be ignored. Pure; writes only to the caller's scratch, no
// allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::identity {

// Enough for any target that a front end accepts; a longer path is refused.
inline constexpr std::size_t kPathScratchBytes = 8192;

// A backslash has no place in a target, but some servers take it for a slash.
enum class Backslash : std::uint8_t {
  refuse,  // %5C stays encoded
  slash,   // both it and %5C
  encode,  // becomes %5C
};

struct PathOptions {
  bool ignore_case = false;        // letters become lower case
  bool ignore_parameters = false;  // what stands behind a semicolon in a segment goes with it
  Backslash backslash = Backslash::refuse;
};

enum class TargetFault : std::uint8_t {
  none,
  not_a_target,   // neither /path nor scheme://host/path nor *
  bad_character,  // control characters, spaces, #
  bad_percent,    // % without two hexadecimal digits
  nul,            // %00
  backslash,
  dot_parameter,  // /..;x/ which some servers take for /../
  too_long,       // for the scratch
};

// What was wrong, for people; static text.
[[nodiscard]] std::string_view to_string(TargetFault fault) noexcept;

struct Target {
  TargetFault fault = TargetFault::none;
  std::string_view path;       // normalised; with its trailing slash, if one was sent
  std::string_view query;      // as it was sent, without the question mark
  std::string_view authority;  // of an absolute target: it stands above the Host header

  [[nodiscard]] bool ok() const noexcept { return fault == TargetFault::none; }

  // Without the trailing slash: what rules are compared with, since most servers give /login/ and
  // /login to one handler.
  [[nodiscard]] std::string_view route() const noexcept {
    return path.size() > 1 && path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
  }
};

// `target` as in a request line. The result points into both arguments.
[[nodiscard]] Target normalise_target(std::string_view target, const PathOptions& options,
                                      std::span<char> scratch) noexcept;

}  // namespace sluice::identity
