#include "store/redis/function_library.h"

#include "base/digest.h"

#include <fmt/format.h>

#include <array>

namespace sluice::store {
namespace {

// In the order in which they build on each other, after the clock.
constexpr std::array kFunctionFiles{"numbers", "bucket", "window",     "counter", "chunks",
                                    "log",     "slices", "slots",      "field",   "session",
                                    "grants",  "call",   "operations", "lease",   "main"};

// The placeholder for the library's name.
constexpr std::string_view kNamePlace = "@NAME@";

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
    text.replace(at, what.size(), with);
  }
}

}  // namespace

FunctionLibrary function_library() { return function_library_with(function_file("clock")); }

FunctionLibrary function_library_with(std::string_view clock) {
  std::string text{clock};
  for (const char* const name : kFunctionFiles) text += function_file(name);
  SipHash13 hash{DigestSecret{}};  // no secret: it only distinguishes releases
  hash.append(text);
  std::string name = fmt::format("sluice_{:016x}", hash.finish().low);
  replace_all(text, kNamePlace, name);
  std::string library = fmt::format("#!lua name={}\n{}", name, text);
  return {.name = name,
          .read_only_name = name + "_ro",
          .library = std::move(library),
          .script = std::move(text)};
}

}  // namespace sluice::store
