// One run: nodes, servers, clients and faults from one seed, and whether all invariants held.
//
// 20 virtual seconds of traffic. Faults come in the first 17.5 of them, so that for the last part,
// and for the probes that follow, everything has to work as if nothing had happened. Then the
// clients stop, and what is left has to be nothing.
#pragma once

#include "sim/defect.h"
#include "sim/ledger.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::sim {

struct RunOptions {
  std::uint64_t seed = 1;
  Defect defect = Defect::none;
  std::uint64_t decisions = 10'000;  // at least
  bool trace = false;                // on standard output
};

struct RunResult {
  std::uint64_t hash = 0;  // of all that happened
  std::uint64_t decisions = 0;
  std::uint64_t events = 0;
  std::vector<std::string> rules;
  std::vector<std::string> faults;
  std::uint32_t nodes = 0;
  Ledger::Summary summary;
  std::optional<Violation> violation;
};

// Invariants: I1 no limit is exceeded by more than was promised. I2 what a server holds is what was
// admitted, less what was refunded. I4 no decision after its budget. I5 after the last fault all is
// as before. I7 answers agree with themselves, and a client that waits as it is told is admitted.
// I8 nothing leaks. I10 each call completes once. (I9, same seed and same history, takes two runs.
// I3 and I6 of the list are about leases and the deny list.)
[[nodiscard]] RunResult run(const RunOptions& options);

// With what a person needs to look into it.
[[nodiscard]] std::string described(const RunOptions& options, const RunResult& result);

}  // namespace sluice::sim
