// The `sluice` command line: picks a command and turns its result into an exit status.
#pragma once

namespace sluice::cli {

[[nodiscard]] int run_program(int argc, char** argv);

}  // namespace sluice::cli
