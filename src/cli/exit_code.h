// What a command's exit status says; the same for all of them.
#pragma once

namespace sluice::cli {

enum class ExitCode : int {
  ok = 0,
  negative = 1,  // it worked, and the result is negative
  usage = 2,     // the command line is wrong
  failure = 3,   // the input or the system is
};

}  // namespace sluice::cli
