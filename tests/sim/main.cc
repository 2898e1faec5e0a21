// ./dev sim: runs of the simulator, any number of them.
#include "sim/run.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using sluice::sim::Defect;
using sluice::sim::RunOptions;
using sluice::sim::RunResult;

constexpr int kFound = 1;
constexpr int kUsage = 2;
constexpr int kFailure = 3;

struct Options {
  std::uint64_t seeds = 100;
  std::uint64_t first = 1;
  std::uint64_t decisions = 10'000;
  std::string defect;
  unsigned jobs = std::max(std::thread::hardware_concurrency(), 1U);
  bool verbose = false;
  bool keep_going = false;
  bool trace = false;
  std::uint64_t twice_every = 16;
};

class Campaign {
 public:
  Campaign(const Options& options, Defect defect) : options_(options), defect_(defect) {}

  int run() {
    const auto begins = std::chrono::steady_clock::now();
    {
      std::vector<std::jthread> workers;
      for (unsigned i = 0; i < options_.jobs; ++i) workers.emplace_back([this] { work(); });
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begins;
    clear_progress();
    if (!error_.empty()) {
      fmt::print(stderr, "sluice_sim: {}\n", error_);
      return kFailure;
    }
    fmt::print("{} seeds in {:.1f} s ({:.0f} a minute), {} decisions, {} faults: {}\n", done_,
               took.count(), static_cast<double>(done_) * 60 / took.count(), decisions_, faults_,
               found_.empty() ? "no violation" : fmt::format("{} failed", found_.size()));
    if (found_.empty()) return 0;
    std::ranges::sort(found_);
    fmt::print("replay the first one: ./dev sim --seed {} --seeds 1 --verbose{}\n", found_.front(),
               options_.defect.empty() ? "" : " --defect " + options_.defect);
    return kFound;
  }

 private:
  void work() {
    while (!stops_) {
      const std::uint64_t number = next_++;
      if (number >= options_.seeds) return;
      const RunOptions run{.seed = options_.first + number,
                           .defect = defect_,
                           .decisions = options_.decisions,
                           .trace = options_.trace};
      try {
        RunResult result = sluice::sim::run(run);
        const bool twice = options_.twice_every > 0 && number % options_.twice_every == 0;
        if (twice && !result.violation) compare(run, result);
        report(run, result);
      } catch (const std::exception& thrown) {
        const std::lock_guard guard{mutex_};
        error_ = fmt::format("seed {}: {}", run.seed, thrown.what());
        stops_ = true;
      }
    }
  }

  // The same seed has to give the same history.
  static void compare(const RunOptions& run, RunResult& result) {
    const RunResult again = sluice::sim::run(run);
    if (again.hash == result.hash) return;
    result.violation = {
        .invariant = "I9",
        .what = fmt::format("two histories: {:016x} and {:016x}", result.hash, again.hash),
        .when = {},
        .before = {}};
  }

  void report(const RunOptions& run, const RunResult& result) {
    const std::lock_guard guard{mutex_};
    ++done_;
    decisions_ += result.decisions;
    faults_ += result.faults.size();
    if (result.violation) found_.push_back(run.seed);
    if (result.violation || options_.verbose) {
      clear_progress();
      fmt::print("{}", sluice::sim::described(run, result));
    }
    if (result.violation && !options_.keep_going) stops_ = true;
    if (isatty(STDERR_FILENO) == 0) return;
    fmt::print(stderr, "\r{} of {} seeds, {} failed", done_, options_.seeds, found_.size());
    progress_ = true;
  }

  void clear_progress() {
    if (progress_) fmt::print(stderr, "\r{:60}\r", "");
    progress_ = false;
    std::fflush(stdout);
  }

  const Options& options_;
  const Defect defect_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<bool> stops_{false};
  std::mutex mutex_;
  // Guarded by mutex_:
  std::uint64_t done_ = 0;
  std::uint64_t decisions_ = 0;
  std::uint64_t faults_ = 0;
  std::vector<std::uint64_t> found_;
  std::string error_;
  bool progress_ = false;
};

int run(int argc, char** argv) {
  Options options;
  CLI::App app{"Simulates nodes that share limits through Redis, with faults, from seeds."};
  app.add_option("--seeds", options.seeds, "how many to run")->capture_default_str();
  app.add_option("--seed", options.first, "the first one")->capture_default_str();
  app.add_option("--defect", options.defect, "put a known defect back; the run has to find it");
  app.add_option("--decisions", options.decisions, "of each seed, at least")->capture_default_str();
  app.add_option("--jobs", options.jobs, "seeds at once")->capture_default_str();
  app.add_option("--twice-every", options.twice_every,
                 "run one seed of so many twice, to compare the histories; 0: none")
      ->capture_default_str();
  app.add_flag("--keep-going", options.keep_going, "go on after a violation");
  app.add_flag("--verbose", options.verbose, "describe each run");
  app.add_flag("--trace", options.trace, "tell all that happens in a run");
  std::string defects;
  for (const auto& known : sluice::sim::kDefects) defects += fmt::format("\n  {}", known.name);
  app.footer(
      "Examples:\n"
      "  ./dev sim --seeds 5000              five thousand seeds, on all cores\n"
      "  ./dev sim --seed 42 --seeds 1 --verbose   one of them again\n"
      "  ./dev sim --defect share-is-limit   how soon is this defect found?\n\n"
      "Defects:" +
      defects + "\n\nExit codes: 0 no violation, 1 a violation, 2 wrong usage, 3 a failure.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  Defect defect = Defect::none;
  if (!options.defect.empty()) {
    const auto known = sluice::sim::defect_of(options.defect);
    if (!known) {
      fmt::print(stderr, "sluice_sim: unknown defect '{}'; --help lists them\n", options.defect);
      return kUsage;
    }
    defect = *known;
  }
  options.jobs = std::max(options.jobs, 1U);
  return Campaign{options, defect}.run();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& thrown) {
    fmt::print(stderr, "sluice_sim: {}\n", thrown.what());
    return kFailure;
  }
}
