// Failures as values.
//
// Three channels, never mixed: a rejected request is a Decision, a failed operation is a Result,
// and what cannot happen is an assertion. Building an Error never allocates.
#pragma once

#include <tl/expected.hpp>

#include <cstdint>
#include <string_view>

namespace sluice {

// Closed set; the spelling is also the metric label.
enum class Errc : std::uint8_t {
  invalid_argument,  // the caller's input is wrong; a retry cannot help
  unsupported,       // well-formed, but outside what this build or algorithm can hold
  not_found,
  io,  // the operating system reported an error
};

[[nodiscard]] constexpr std::string_view to_string(Errc code) noexcept {
  switch (code) {
    case Errc::invalid_argument: return "invalid_argument";
    case Errc::unsupported: return "unsupported";
    case Errc::not_found: return "not_found";
    case Errc::io: return "io";
  }
  return "unknown";
}

struct Error {
  Errc code = Errc::invalid_argument;
  bool transient = false;  // could a retry succeed?
  const char* where = "";  // static text
};

template <class T>
using Result = tl::expected<T, Error>;

}  // namespace sluice
