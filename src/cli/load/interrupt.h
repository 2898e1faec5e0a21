// Ctrl-C during a run: the first ends it and shows what was measured, the second the program.
#pragma once

namespace sluice::cli {

void catch_interrupts();
[[nodiscard]] bool was_interrupted() noexcept;

}  // namespace sluice::cli
