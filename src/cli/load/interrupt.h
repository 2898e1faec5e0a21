// Ctrl-C during a run: the first ends it and shows the results, the second ends the program.
#pragma once

namespace sluice::cli {

void catch_interrupts();
[[nodiscard]] bool was_interrupted() noexcept;

}  // namespace sluice::cli
