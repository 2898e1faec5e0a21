#include "cli/load/interrupt.h"

#include <csignal>

namespace sluice::cli {
namespace {

volatile std::sig_atomic_t interrupt_requested = 0;

void on_interrupt(int /*signal*/) {
  interrupt_requested = 1;
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

void catch_interrupts() { std::signal(SIGINT, on_interrupt); }

bool was_interrupted() noexcept { return interrupt_requested != 0; }

}  // namespace sluice::cli
