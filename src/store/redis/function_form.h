// In which form a shard of Redis runs the functions: as a library, where it may be loaded; else as
// a script by its digest; else as a script by its text, with every call.
//
// A shard that lost the library, or never had it, says so without having run anything. The library
// is then loaded once, whatever the number of calls that found it missing, and these are sent
// again.
//
// One thread. Knows replies, but no connection.
#pragma once

#include "store/redis/function_library.h"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::store {

class FunctionForm {
 public:
  // The library outlives the form.
  explicit FunctionForm(const FunctionLibrary& library) noexcept : library_(&library) {}

  // The words before the number of keys: two of them.
  [[nodiscard]] std::array<std::string_view, 2> prefix() const noexcept;

  // What an error of a call means.
  enum class Cause : std::uint8_t {
    missing,    // the functions are not there: load them, then send the call again
    forbidden,  // this form is not allowed: another one is used from now on; send the call again
    other,      // has nothing to do with the form
  };
  // `used` is the form that the call was sent in.
  [[nodiscard]] Cause error(std::string_view text, std::uint8_t used) noexcept;
  [[nodiscard]] std::uint8_t rung() const noexcept { return static_cast<std::uint8_t>(rung_); }

  // Whether calls have to wait until the functions are loaded.
  [[nodiscard]] bool is_loading() const noexcept { return is_loading_; }
  // The command that loads them; empty where there is nothing to load.
  [[nodiscard]] std::span<const std::string_view> begin_loading() noexcept;
  // Its reply. `again`: another form has to be loaded. `failed`: not now, for another reason; the
  // calls that wait fail, too.
  enum class Loaded : std::uint8_t { done, again, failed };
  [[nodiscard]] Loaded loaded(std::string_view digest) noexcept;
  [[nodiscard]] Loaded load_failed(std::string_view error) noexcept;
  void load_lost() noexcept { is_loading_ = false; }

 private:
  enum class Rung : std::uint8_t { function, script, text };

  void step_down() noexcept;

  const FunctionLibrary* library_;
  Rung rung_ = Rung::function;
  bool is_loading_ = false;
  std::array<char, 40> digest_{};  // of the script, as Redis names it
  std::array<std::string_view, 3> command_;
};

}  // namespace sluice::store
