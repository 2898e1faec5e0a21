// A normalised path stays as it is when it is normalised again, and has no empty or dot segment
// and no character that is written in two ways. Hosts likewise.

#include "identity/path.h"

#include "base/characters.h"
#include "fuzz.h"
#include "identity/host.h"

#include <array>
#include <string>
#include <string_view>

namespace {

using sluice::fuzz::expect;
using sluice::identity::Backslash;
using sluice::identity::normalise_host;
using sluice::identity::normalise_target;
using sluice::identity::PathOptions;
using sluice::identity::Target;

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
  expect(!options.ignore_parameters || once.path.find(';') == std::string_view::npos,
         "no parameter");
  check_characters(once.path);
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
  for (const Backslash backslash : {Backslash::refuse, Backslash::slash, Backslash::encode}) {
    check_target(text, {.ignore_case = false, .backslash = backslash});
    check_target("/" + text, {.ignore_case = true, .backslash = backslash});
    check_target("/" + text, {.ignore_parameters = true, .backslash = backslash});
  }
  check_host(text);
  return 0;
}
