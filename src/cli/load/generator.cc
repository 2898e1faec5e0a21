#include "cli/load/generator.h"

#include "base/random.h"
#include "cli/load/schedule.h"
#include <sluice/core/cell.h>

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <utility>

namespace sluice::cli {
namespace {

struct Request {
  MonoTime wanted;  // when the schedule wanted it to start
  std::uint64_t key = 0;
};

// Something that is due: the next try of a rejected request, or the end of one in flight.
struct Event {
  MonoTime due;
  std::uint64_t order;  // of creation, so that equal instants keep their order
  Request request;
  core::Receipt lease;  // set: give it back

  friend bool operator>(const Event& a, const Event& b) noexcept {
    return a.due != b.due ? a.due > b.due : a.order > b.order;
  }
};

using Agenda = std::priority_queue<Event, std::vector<Event>, std::greater<>>;

Nanos start_of(const Traffic& traffic, std::uint64_t n) noexcept {
  return Schedule{.amount = traffic.per_second}.start_of(n);
}

}  // namespace

struct Generator::Limiter {
  core::CompiledLimit limit;
  std::unordered_map<std::uint64_t, core::Cell> cells;

  core::Outcome decide(std::uint64_t key, Now now) { return cells[key].decide(limit, now, 1); }
  void give_back(std::uint64_t key, Now now, core::Receipt lease) {
    cells[key].refund(limit, now, lease, lease.cost);
  }
};

Generator::Generator(core::CompiledLimit limit, Timeline& time)
    : limiter_(std::make_unique<Limiter>(Limiter{std::move(limit), {}})), time_(time) {}

Generator::~Generator() = default;

namespace {

// One run: walks through starts and events in order of time and keeps the books.
class Run {
 public:
  Run(const Traffic& traffic, MonoTime begin) noexcept
      : traffic_(traffic), begin_(begin), random_(traffic.seed) {}

  // What is due next; nothing when the run is over.
  [[nodiscard]] std::optional<MonoTime> next_due() const noexcept {
    const bool starts = started_ < traffic_.requests;
    if (!starts && agenda_.empty()) return std::nullopt;
    const MonoTime start = starts ? begin_ + start_of(traffic_, started_) : MonoTime::max();
    return agenda_.empty() ? start : std::min(start, agenda_.top().due);
  }

  // Ends come before starts of the same instant: they make room.
  template <class Limiter>
  void handle(Limiter& limiter, MonoTime due, Now now) {
    if (!agenda_.empty() && agenda_.top().due <= due) {
      const Event event = agenda_.top();
      agenda_.pop();
      if (event.lease.cost > 0) {
        limiter.give_back(event.request.key, now, event.lease);
      } else {
        attempt(limiter, event.request, now);
      }
      return;
    }
    const Request request{.wanted = due, .key = random_.below(traffic_.keys)};
    ++started_;
    attempt(limiter, request, now);
  }

  [[nodiscard]] bool exhausted() const noexcept { return in_vain_ >= traffic_.in_vain_max; }

  [[nodiscard]] double share() const noexcept {
    return static_cast<double>(result_.requests) /
           static_cast<double>(std::max<std::uint64_t>(traffic_.requests, 1));
  }

  // The schedule ends one interval after the last start, when the next request would have come.
  [[nodiscard]] MonoTime schedule_end() const noexcept {
    return begin_ + start_of(traffic_, traffic_.requests);
  }

  [[nodiscard]] LoadResult finish(bool interrupted) {
    result_.interrupted = interrupted;
    result_.gave_up = exhausted();
    const bool whole = !interrupted && !exhausted();
    const MonoTime end = whole ? std::max(last_end_, schedule_end()) : last_end_;
    result_.elapsed = end - begin_;
    return std::move(result_);
  }

 private:
  template <class Limiter>
  void attempt(Limiter& limiter, const Request& request, Now now) {
    const core::Outcome outcome = limiter.decide(request.key, now);
    ++result_.attempts;
    ++in_vain_;
    if (outcome.decision.allowed()) {
      admit(request, now.mono + outcome.decision.delay);
      if (traffic_.hold > Nanos{0}) {
        agenda_.push({now.mono + traffic_.hold, ++events_, request, outcome.receipt});
      }
    } else if (traffic_.retry) {
      agenda_.push({now.mono + *traffic_.retry, ++events_, request, {}});
    } else {
      ++result_.requests;
      ++result_.rejected;
    }
  }

  void admit(const Request& request, MonoTime released) {
    ++result_.requests;
    ++result_.admitted;
    in_vain_ = 0;
    last_end_ = std::max(last_end_, released);
    result_.wait.record(released - request.wanted);
    const auto second = static_cast<std::size_t>((released - begin_) / std::chrono::seconds{1});
    if (result_.admitted_in_second.size() <= second) result_.admitted_in_second.resize(second + 1);
    ++result_.admitted_in_second[second];
  }

  Traffic traffic_;
  MonoTime begin_;
  MonoTime last_end_ = begin_;
  Random random_;
  Agenda agenda_;
  std::uint64_t started_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t in_vain_ = 0;  // rejections since the last admission
  LoadResult result_;
};

}  // namespace

LoadResult Generator::run(const Traffic& traffic, const Watcher& watch) {
  constexpr std::uint64_t kLookEvery = 256;  // events between two looks at the watcher
  Run run{traffic, time_.now().mono};
  Now now = time_.now();
  bool stopped = false;
  for (std::uint64_t n = 0; !stopped; ++n) {
    const std::optional<MonoTime> due = run.next_due();
    if (!due || run.exhausted()) break;
    if (*due > now.mono) {
      stopped = !watch(run.share());
      time_.wait_until(*due);
      now = time_.now();
      if (now.mono < *due) continue;  // woken early
    }
    if (n % kLookEvery == 0) stopped = !watch(run.share());
    run.handle(*limiter_, *due, now);
    now = time_.now();
  }
  if (!stopped && !run.exhausted()) time_.wait_until(run.schedule_end());
  return run.finish(stopped);
}

}  // namespace sluice::cli
