// The `sluice` command line: picks a command and turns its answer into an exit status.
#pragma once

namespace sluice::cli {

[[nodiscard]] int run_program(int argc, char** argv);

}  // namespace sluice::cli
