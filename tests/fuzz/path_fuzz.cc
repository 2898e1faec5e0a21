// A normalised path stays as it is when it is normalised again, and has no empty or dot segment
// and no character that is written in two ways. Hosts likewise.

#include "identity/path.h"

#include "base/characters.h"
#include "fuzz.h"
#include "identity/host.h"
#include "support/server_reading.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using sluice::fuzz::expect;
using sluice::identity::EscapedSlashes;
using sluice::identity::normalise_host;
using sluice::identity::normalise_target;
using sluice::identity::PathOptions;
using sluice::identity::read_target;
using sluice::identity::Target;
using sluice::testing::as_servers_read;
using sluice::testing::decoded_once;
using sluice::testing::Segments;
using sluice::testing::Slashes;

void check_characters(std::string_view path) {
  for (std::size_t i = 0; i < path.size(); ++i) {
    const auto byte = static_cast<unsigned char>(path[i]);
    expect(byte > ' ' && byte < 0x7f && path[i] != '\\' && path[i] != '?' && path[i] != '#',
           "a path is printable");
    if (path[i] != '%') continue;
    const auto decoded = sluice::decode_percent(path.substr(i));
    expect(decoded.has_value() && *decoded != '\0', "what is encoded can be decoded");
    expect(!sluice::is_letter(*decoded) && *decoded != '.', "nothing plain is encoded");
    expect(!(path[i + 1] >= 'a') && !(path[i + 2] >= 'a'), "digits are in upper case");
  }
}

void check_target(std::string_view target, const PathOptions& options) {
  std::array<char, 512> scratch{};
  std::array<char, 512> again{};
  const Target once = normalise_target(target, options, scratch);
  if (!once.ok()) {
    expect(once.path.empty() && once.query.empty(), "a refused target gives nothing");
    return;
  }
  if (once.path == "*") return;
  expect(once.path.starts_with('/'), "a path begins with a slash");
  const Target twice = normalise_target(once.path, options, again);
  expect(twice.ok() && twice.path == once.path, "normalising twice changes nothing");
  const std::string closed = std::string{once.path} + "/";
  expect(once.path.find("//") == std::string_view::npos, "no empty segment");
  expect(closed.find("/./") == std::string::npos, "no dot segment");
  expect(closed.find("/../") == std::string::npos, "no double dot segment");
  expect(!options.ignore_path_parameters || once.path.find(';') == std::string_view::npos,
         "no parameter");
  check_characters(once.path);
}

// Of a path that is normalised already, decoded.
Segments segments_of(std::string_view route) {
  Segments segments;
  for (std::size_t at = 0; at < route.size();) {
    const std::size_t slash = std::min(route.find('/', at), route.size());
    if (slash > at) segments.push_back(decoded_once(route.substr(at, slash - at)));
    at = slash + 1;
  }
  return segments;
}

// One of the readings has the segments that nginx finds; with none of the options, since nginx
// knows neither parameters nor a case to ignore.
void check_readings(std::string_view target, const PathOptions& options) {
  std::array<char, 512> scratch{};
  std::array<char, 512> other{};
  std::array<char, 512> third{};
  const Target refused = read_target(target, options, EscapedSlashes::reject, third, other);
  const Target kept = read_target(target, options, EscapedSlashes::keep, scratch, other);
  expect(!refused.ok() || !refused.has_escaped_slash, "none is left where they are rejected");
  expect(!refused.ok() || refused.path == kept.path, "the settings differ in escaped slashes only");
  const Target both = read_target(target, options, EscapedSlashes::decode, scratch, other);
  expect(!both.ok() || kept.ok(), "what is read in two ways can be read in one");
  if (!both.ok()) return;
  expect(both.decoded.find("%2F") == std::string_view::npos &&
             both.decoded.find("%5C") == std::string_view::npos,
         "no escaped slash is left when they are decoded");
  expect(both.decoded.empty() || both.decoded_route() != both.route(), "two readings differ");
  if (!target.starts_with('/') || options.case_insensitive_paths || options.ignore_path_parameters)
    return;
  const auto behind = as_servers_read(target, Slashes::merged);
  if (!behind) return;
  const bool is_read =
      segments_of(both.route()) == *behind || segments_of(both.decoded_route()) == *behind;
  expect(is_read, "one of the readings is that of nginx");
}

void check_host(std::string_view text) {
  std::array<char, 256> scratch{};
  std::array<char, 256> again{};
  const auto once = normalise_host(text, scratch);
  if (!once) return;
  for (const char c : *once) expect(!(c >= 'A' && c <= 'Z'), "a host is in lower case");
  expect(normalise_host(*once, again) == once, "normalising a host twice changes nothing");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text{data, data + size};
  for (const bool decode : {false, true}) {
    check_target(text, {.case_insensitive_paths = false, .decode_slashes = decode});
    check_target("/" + text, {.case_insensitive_paths = true, .decode_slashes = decode});
    check_target("/" + text, {.ignore_path_parameters = true, .decode_slashes = decode});
  }
  for (const std::string& target : {text, "/" + text}) {
    check_readings(target, {});
    check_readings(target, {.case_insensitive_paths = true, .ignore_path_parameters = true});
  }
  check_host(text);
  return 0;
}
