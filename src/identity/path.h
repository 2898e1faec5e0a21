// The one spelling of a path, so that no other spelling of it escapes a rule.
//
// Percent-encodings of characters that may stand in a segment are undone, with one exception: an
// encoded semicolon, since servers that know path parameters tell it from a plain one. All others
// stay encoded, in upper case; bytes that may not stand in a path become encoded. Empty and dot
// segments go, encoded or not. Normalising twice changes nothing more. Parameters (/login;a=b)
// stay, unless they are to be ignored.
//
// An escaped slash (%2F, or %5C for a backslash) has two readings: nginx and many others decode it
// and see a slash, others see a character of the segment. read_target() gives both.
//
// Pure; writes only to the caller's scratch, no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::identity {

// Enough for any target that a front end accepts; a longer path is rejected.
inline constexpr std::size_t kPathScratchBytes = 8192;

// What becomes of a target whose path has an escaped slash.
enum class EscapedSlashes : std::uint8_t {
  reject,  // the request is rejected
  decode,  // both readings count: with slashes for the escaped ones, and without
  keep,    // an escaped slash is a character like others
};

struct PathOptions {
  bool case_insensitive_paths = false;  // letters become lower case
  bool ignore_path_parameters = false;  // what stands behind a semicolon in a segment goes with it
  bool decode_slashes = false;          // %2F and %5C are slashes
};

enum class TargetFault : std::uint8_t {
  none,
  not_a_target,   // neither /path nor scheme://host/path nor *
  bad_character,  // control characters, spaces, #
  bad_percent,    // % without two hexadecimal digits
  nul,            // %00
  backslash,
  dot_parameter,    // /..;x/ which some servers take for /../
  dots_over_empty,  // /a//../b: /b where empty segments are merged first, else /a/b
  dots_by_slash,    // ..%2F, a dot segment only where escaped slashes are decoded
  mixed_slashes,    // %2F and %5C: some servers decode to a slash only one of them
  parameter_slash,  // /a;x%2Fb, where parameters are ignored: do they end at the escaped slash?
  escaped_slash,    // where those are rejected
  too_long,         // for the scratch
};

// The fault, for messages; static text.
[[nodiscard]] std::string_view to_string(TargetFault fault) noexcept;

struct Target {
  TargetFault fault = TargetFault::none;
  std::string_view path;       // normalised; with its trailing slash, if one was sent
  std::string_view query;      // as it was sent, without the leading ?
  std::string_view authority;  // of an absolute target: it stands above the Host header
  std::string_view decoded;    // the path with slashes for escaped ones; empty: there is no other
                               // reading than `path`
  bool has_escaped_slash = false;

  [[nodiscard]] bool ok() const noexcept { return fault == TargetFault::none; }

  // Without the trailing slash: what rules are compared with, since most servers give /login/ and
  // /login to one handler.
  [[nodiscard]] std::string_view route() const noexcept { return without_slash(path); }
  [[nodiscard]] std::string_view decoded_route() const noexcept { return without_slash(decoded); }

 private:
  [[nodiscard]] static std::string_view without_slash(std::string_view path) noexcept {
    return path.size() > 1 && path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
  }
};

// `target` as in a request line. The result points into both arguments.
[[nodiscard]] Target normalise_target(std::string_view target, const PathOptions& options,
                                      std::span<char> scratch) noexcept;

// Both readings, as `slashes` wants it. Each has a scratch of its own.
[[nodiscard]] Target read_target(std::string_view target, const PathOptions& options,
                                 EscapedSlashes slashes, std::span<char> scratch,
                                 std::span<char> decoded_scratch) noexcept;

// Whether a path, or a template of one, has %2F or %5C.
[[nodiscard]] bool has_escaped_slash(std::string_view path) noexcept;

}  // namespace sluice::identity
