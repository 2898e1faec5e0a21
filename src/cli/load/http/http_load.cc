#include "cli/load/http/http_load.h"

#include "base/duration.h"
#include "cli/file.h"
#include "cli/load/http/conduct.h"
#include "cli/load/http/findings.h"
#include "cli/load/http/plan.h"
#include "cli/load/http/plot.h"
#include "cli/load/http/reach.h"
#include "cli/load/http/report.h"
#include "cli/load/interrupt.h"
#include "cli/terminal.h"
#include <sluice/clock.h>

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace sluice::cli {
namespace {

constexpr std::string_view kCommand = "load";

ExitCode fail(const Diagnostic& why, ExitCode code) {
  complain(kCommand, why.text());
  return code;
}

// Shows what passes and what does not, as of the time since it was last asked.
class LiveView {
 public:
  explicit LiveView(Nanos duration) : duration_(duration) {}

  [[nodiscard]] bool show(const RunView& view) {
    const Nanos since = view.elapsed - shown_.elapsed;
    const auto rate = [&](std::uint64_t now, std::uint64_t before) {
      return per_second(static_cast<double>(now - before), since);
    };
    const std::string note = fmt::format("{:.0f}/s admitted, {:.0f}/s rejected, {:.0f}/s other",
                                         rate(view.counts.admitted, shown_.counts.admitted),
                                         rate(view.counts.rejected, shown_.counts.rejected),
                                         rate(view.counts.other, shown_.counts.other));
    progress_.show(std::min(std::chrono::duration<double>(view.elapsed) / duration_, 1.0), note);
    if (since >= kRefresh) shown_ = view;
    return !was_interrupted();
  }

 private:
  static constexpr Nanos kRefresh{std::chrono::milliseconds{900}};

  Nanos duration_;
  Progress progress_{"load"};
  RunView shown_;
};

// What a reader of the numbers has to know; none of it changes the exit status.
void tell_doubts(const HttpPlan& plan, const HttpRun& run) {
  const Tally& tally = run.tally;
  if (run.interrupted) complain(kCommand, "stopped early; these are the results so far");
  if (!plan.schedule) {
    complain(kCommand,
             "closed loop: a slow response delays the next request, so the latencies are too low "
             "under load (coordinated omission)");
  }
  if (!kept_schedule(tally)) {
    complain(kCommand,
             fmt::format("the generator could not keep the schedule (p99 of its own lateness is "
                         "{}): results show its limits, not the server's; use a lower --rate or "
                         "more --threads",
                         approximate_duration(tally.lateness.percentile(0.99))));
  }
  if (tally.not_sent > 0 && !run.interrupted) {
    complain(kCommand, fmt::format("{} requests were not sent: no connection became free within "
                                   "{}; use more --connections, or a lower --rate",
                                   tally.not_sent, format_duration(plan.timeout)));
  }
}

ExitCode verdict_of(const HttpPlan& plan, const HttpRun& run) {
  if (run.tally.answered() == 0 && !run.interrupted) {
    complain(kCommand, "no response arrived");
    return ExitCode::negative;
  }
  const std::optional<Verdict> verdict = judge(plan, run.tally);
  if (!verdict || verdict->kept()) return ExitCode::ok;
  complain(kCommand, fmt::format("more was admitted than the limit allows: {} instead of at most "
                                 "{} of one client",
                                 verdict->most_admitted, verdict->most_allowed));
  return ExitCode::negative;
}

}  // namespace

ExitCode load_http(const LoadOptions& options) {
  const Parsed<HttpPlan> plan = make_http_plan(options);
  if (!plan) return fail(plan.error(), ExitCode::usage);
  catch_interrupts();
  const SystemClock clock;
  const auto address = reach(*plan, clock);
  if (!address) return fail(address.error(), ExitCode::failure);

  Output out;
  if (!options.json) out.write(headline(*plan));
  out.flush();
  const Parsed<HttpRun> run = [&] {
    LiveView view{plan->duration};
    return conduct(*plan, *address, clock, [&](const RunView& seen) { return view.show(seen); });
  }();
  if (!run) return fail(run.error(), ExitCode::failure);

  out.write(options.json ? report_json(*plan, *run) : report_text(*plan, *run, out));
  out.flush();
  tell_doubts(*plan, *run);
  if (options.http.svg) {
    const Parsed<void> written = write_file(*options.http.svg, plot_svg(*plan, *run));
    if (!written) return fail(written.error(), ExitCode::failure);
  }
  return out.finish(kCommand, verdict_of(*plan, *run));
}

}  // namespace sluice::cli
