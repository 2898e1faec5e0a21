// The functions that decide shared limits inside Redis.
//
// One library in Lua, from the files in `functions/`, main.lua last. Its name carries a hash of its
// text, so that two releases run side by side on one server. It is loaded and never replaced. The
// keys carry the version of their layout instead (kKeyPrefix in call_codec.h): releases with the
// same layout share keys, whatever their functions are called.
#pragma once

#include <string>
#include <string_view>

namespace sluice::store {

struct FunctionLibrary {
  std::string name;            // of the library, and of the function that FCALL runs
  std::string read_only_name;  // for `peek` by FCALL_RO, which replicas answer, too
  std::string library;         // for FUNCTION LOAD
  std::string script;          // the same for SCRIPT LOAD, EVALSHA and EVAL
};

// For the control path: builds the texts at each call.
[[nodiscard]] FunctionLibrary function_library();

// With another clock in place of functions/clock.lua. Tests use it to set the time.
[[nodiscard]] FunctionLibrary function_library_with(std::string_view clock);

// The content of functions/NAME.lua; empty for another name.
[[nodiscard]] std::string_view function_file(std::string_view name) noexcept;

}  // namespace sluice::store
