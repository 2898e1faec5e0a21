// What readers of YAML take a text without quotes for.
//
// Versions of YAML disagree: `no` is a truth value to one and a word to the other, `010` is eight
// or ten, `1:30` is ninety. What all agree on is accepted, the rest has to be put in quotes.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::config {

enum class Plain : std::uint8_t {
  text,
  flag,       // true, false
  flag_word,  // yes, no, on, off, y, n, TRUE, ...: a truth value to YAML 1.1
  integer,    // 42, -1
  odd_number  // 010, 0x10, 1_000, 1e3, .5, 1.0, 1:30, .inf
};

[[nodiscard]] Plain classify_plain(std::string_view text) noexcept;

}  // namespace sluice::config
