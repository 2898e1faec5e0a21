// Kinds of text that several sections of a file have.
#pragma once

#include "config/grammar.h"
#include <sluice/diagnostic.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::config {

// What is wrong with a text, by the function that reads it.
template <auto Parse>
[[nodiscard]] std::optional<Diagnostic> mistake_of(std::string_view text) {
  const auto parsed = Parse(text);
  return parsed ? std::nullopt : std::optional{parsed.error()};
}

[[nodiscard]] Parsed<std::uint64_t> parse_size(std::string_view text);
extern const Format kSizeFormat;  // 64MiB
extern const Format kTimeFormat;  // a duration in which something can happen

}  // namespace sluice::config
