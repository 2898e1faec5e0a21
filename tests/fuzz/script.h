// Inputs that are scripts: a byte that chooses how things are set up, then actions.
//
// An action is the byte ff, a letter, and what belongs to it, up to the next ff. Inputs of this
// form can be read, and stay scripts when bytes are taken out, put in or changed.
#pragma once

#include <sluice/time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unistd.h>

namespace sluice::fuzz {

[[nodiscard]] inline std::uint8_t first_byte(std::string_view text) noexcept {
  return text.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(text.front());
}

// Times that matter to one or another timer.
[[nodiscard]] inline Nanos time_of(std::string_view text) noexcept {
  using namespace std::chrono_literals;
  constexpr std::array<Nanos, 8> kTimes{1ms, 25ms, 500ms, 1s, 5s, 10s, 31s, 61s};
  return kTimes[first_byte(text) % kTimes.size()];
}

// `act(letter, text)` for every action.
template <class Act>
void perform(std::string_view script, Act&& act) {
  constexpr char kNext = '\xff';
  script.remove_prefix(std::min(script.size(), script.find(kNext)));
  while (script.size() > 1) {
    const char letter = script[1];
    script.remove_prefix(2);
    const std::string_view text = script.substr(0, script.find(kNext));
    script.remove_prefix(text.size());
    act(letter, text);
  }
}

// The lowest that is free: the same before and after means that all were closed.
[[nodiscard]] inline int free_descriptor() noexcept {
  const int number = ::dup(STDERR_FILENO);
  ::close(number);
  return number;
}

}  // namespace sluice::fuzz
