#include "rules/sync/rule_sync.h"

#include <exception>
#include <utility>

namespace sluice::rules {
namespace {

// Sources and parsers use libraries that may throw; that becomes an error like others.
template <class Call>
auto caught(Call&& call) -> decltype(call()) {
  try {
    return std::forward<Call>(call)();
  } catch (const std::exception& error) {
    return mistake(error.what());
  }
}

std::optional<LastGood> last_good_of(const RuleSource& source, const RuleSyncOptions& options) {
  if (options.last_good_file.empty()) return std::nullopt;
  return std::optional<LastGood>{std::in_place, LastGoodPlace{.file = options.last_good_file,
                                                              .source = source.name(),
                                                              .bytes_max = options.bytes_max}};
}

bool same(const Diagnostic& a, const Diagnostic& b) {
  return a.message == b.message && a.remedy == b.remedy;
}

}  // namespace

RuleSync::RuleSync(RuleSource& source, Accept accept, const Clock& clock,
                   const RuleSyncOptions& options, Report report)
    : source_(source),
      accept_(std::move(accept)),
      clock_(clock),
      report_(std::move(report)),
      last_good_(last_good_of(source, options)),
      scheduler_(options.schedule, options.seed, clock, [this] { return poll(); }) {
  status_.source = source.name();
}

// Watches before it reads: a change in between is then read again, not missed.
Parsed<void> RuleSync::start() {
  Parsed<void> watching = source_.watch([this] { change_noticed(); });
  {
    const std::scoped_lock lock{mutex_};
    watch_failure_ = watching ? Diagnostic{} : std::move(watching.error());
  }
  Parsed<void> started = load();
  if (started && status().from_last_good) change_noticed();
  if (started) started = scheduler_.start();
  if (!started) source_.unwatch();
  return started;
}

void RuleSync::stop() noexcept {
  source_.unwatch();
  scheduler_.stop();
}

Parsed<void> RuleSync::load() {
  const std::scoped_lock turn{turn_};
  if (attempt(true) == Attempt::in_force) return {};
  if (!status().version.empty() || fall_back()) return {};
  return tl::unexpected(why_not());
}

// After an unsettled reading the next one follows soon, as after a failure. While the source is
// being written a notice is kept for later, whatever its cause: sync_now() is called for changes of
// other files, too.
bool RuleSync::poll() {
  const std::scoped_lock turn{turn_};
  if (source_.is_being_written()) return false;
  const Attempt result = attempt(noticed_.exchange(false));
  return result == Attempt::in_force || result == Attempt::rejected;
}

void RuleSync::change_noticed() {
  noticed_ = true;
  scheduler_.run_now();
}

void RuleSync::sync_now() {
  retry_rejected_ = true;
  change_noticed();
}

SyncStatus RuleSync::status() const {
  std::string problem = source_.watch_problem();
  const std::scoped_lock lock{mutex_};
  SyncStatus status = status_;
  status.watch_problem = problem.empty() ? watch_failure_.text() : std::move(problem);
  return status;
}

RuleSync::Attempt RuleSync::attempt(bool noticed) {
  if (retry_rejected_.exchange(false)) rejection_.reset();
  Parsed<Fetched> fetched = caught([this] { return source_.fetch(); });
  std::string in_force;
  std::string rejected;
  {
    const std::scoped_lock lock{mutex_};
    status_.attempted = wall_now();
    in_force = status_.version;
    rejected = status_.rejected_version;
  }
  if (!fetched) return failed(std::move(fetched.error()));
  if (!in_force.empty() && fetched->version == in_force) return known_good(*fetched);
  if (rejection_ && fetched->version == rejected) return known_bad();
  const bool settled = noticed || fetched->version == seen_once_;
  seen_once_ = fetched->version;
  return settled ? judge(*fetched) : Attempt::unsettled;
}

RuleSync::Attempt RuleSync::failed(Diagnostic why) {
  bool news = false;
  {
    const std::scoped_lock lock{mutex_};
    ++status_.failed;
    news = !status_.error || !same(*status_.error, why);
    status_.error = why;
  }
  if (news) report(SyncEvent::failed, {}, std::move(why));
  return Attempt::failed;
}

// A bad change was reverted, or the source is reachable again.
RuleSync::Attempt RuleSync::known_good(const Fetched& fetched) {
  bool recovered = false;
  {
    const std::scoped_lock lock{mutex_};
    ++status_.unchanged;
    recovered = status_.error.has_value();
    status_.error.reset();
    status_.rejected_version.clear();
    status_.from_last_good = false;
    status_.kept_at.reset();
  }
  rejection_.reset();
  if (recovered) report(SyncEvent::recovered, fetched.version);
  if (!kept_) keep(fetched);
  return Attempt::in_force;
}

RuleSync::Attempt RuleSync::known_bad() {
  const std::scoped_lock lock{mutex_};
  ++status_.unchanged;
  status_.error = rejection_;  // a failure may have overwritten it
  return Attempt::rejected;
}

RuleSync::Attempt RuleSync::judge(const Fetched& fetched) {
  if (Parsed<void> accepted = caught([&] { return accept_(fetched); }); !accepted) {
    rejection_ = accepted.error();
    {
      const std::scoped_lock lock{mutex_};
      ++status_.rejected;
      status_.error = rejection_;
      status_.rejected_version = fetched.version;
    }
    report(SyncEvent::rejected, fetched.version, std::move(accepted.error()));
    return Attempt::rejected;
  }
  rejection_.reset();
  come_into_force(fetched, std::nullopt);
  report(SyncEvent::accepted, fetched.version);
  keep(fetched);
  return Attempt::in_force;
}

bool RuleSync::fall_back() {
  if (!last_good_) return false;
  Parsed<std::optional<Kept>> kept = caught([this] { return last_good_->load(); });
  if (!kept) {
    last_good_failed(SyncEvent::last_good_ignored, std::move(kept.error()));
    return false;
  }
  if (!kept->has_value()) return false;
  Kept& found = **kept;
  const Fetched fetched{.text = std::move(found.text),
                        .version = std::move(found.version),
                        .where = last_good_->path()};
  if (Parsed<void> accepted = caught([&] { return accept_(fetched); }); !accepted) {
    last_good_failed(SyncEvent::last_good_ignored, std::move(accepted.error()));
    return false;
  }
  come_into_force(fetched, found.accepted);
  kept_ = true;
  report(SyncEvent::last_good_used, fetched.version, why_not());
  return true;
}

// A full disk is no reason to reject valid rules. The next attempt tries again.
void RuleSync::keep(const Fetched& fetched) {
  if (!last_good_) return;
  const Kept kept{.text = fetched.text, .version = fetched.version, .accepted = wall_now()};
  if (Parsed<void> saved = caught([&] { return last_good_->keep(kept); }); !saved) {
    kept_ = false;
    last_good_failed(SyncEvent::not_kept, std::move(saved.error()));
    return;
  }
  kept_ = true;
  const std::scoped_lock lock{mutex_};
  status_.last_good_error.reset();
}

// Rules from an earlier run do not clear the error of the source.
void RuleSync::come_into_force(const Fetched& fetched, std::optional<WallTime> kept_at) {
  const std::scoped_lock lock{mutex_};
  ++status_.accepted;
  status_.version = fetched.version;
  status_.loaded = wall_now();
  status_.from_last_good = kept_at.has_value();
  status_.kept_at = kept_at;
  if (kept_at) return;
  status_.error.reset();
  status_.rejected_version.clear();
}

void RuleSync::last_good_failed(SyncEvent event, Diagnostic why) {
  bool news = false;
  {
    const std::scoped_lock lock{mutex_};
    news = !status_.last_good_error || !same(*status_.last_good_error, why);
    status_.last_good_error = why;
  }
  if (news) report(event, {}, std::move(why));
}

Diagnostic RuleSync::why_not() const {
  const std::scoped_lock lock{mutex_};
  Diagnostic why = status_.error.value_or(Diagnostic{});
  if (status_.last_good_error && status_.version.empty()) {
    why.message += "; nor the rules of the last run: " + status_.last_good_error->message;
  }
  return why;
}

void RuleSync::report(SyncEvent event, std::string version, Diagnostic diagnosis) const {
  if (!report_) return;
  report_({.event = event, .version = std::move(version), .diagnosis = std::move(diagnosis)});
}

}  // namespace sluice::rules
