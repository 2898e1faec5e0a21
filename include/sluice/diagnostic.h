// A mistake in a configuration or an option, and what to write instead.
//
// Not for the request path: building one allocates.
#pragma once

#include <tl/expected.hpp>

#include <string>
#include <utility>

namespace sluice {

struct Diagnostic {
  std::string message;  // names the offending text
  std::string remedy;   // what to write instead; may be empty

  [[nodiscard]] std::string text() const {
    return remedy.empty() ? message : message + "; " + remedy;
  }
};

template <class T>
using Parsed = tl::expected<T, Diagnostic>;

[[nodiscard]] inline tl::unexpected<Diagnostic> mistake(std::string message,
                                                        std::string remedy = {}) {
  return tl::unexpected(Diagnostic{std::move(message), std::move(remedy)});
}

}  // namespace sluice
