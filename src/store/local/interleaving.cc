#include "store/local/interleaving.h"

#include <algorithm>
#include <utility>

namespace sluice::store {
namespace {

struct Scheduled {
  Interleaver* by = nullptr;
  int number = 0;
};
thread_local Scheduled t_scheduled;

}  // namespace

Interleaver::Interleaver()
    : turns_{std::binary_semaphore{0}, std::binary_semaphore{0}},
      threads_{std::thread{[this] { work(0); }}, std::thread{[this] { work(1); }}} {}

Interleaver::~Interleaver() {
  quit_ = true;
  for (std::size_t i = 0; i < 2; ++i) {
    turns_[i].release();
    threads_[i].join();
  }
}

// A thread runs only between an acquire of its turn and the next release of somebody's.
void Interleaver::work(int self) {
  const auto me = static_cast<std::size_t>(self);
  while (true) {
    turns_[me].acquire();
    if (quit_) return;
    t_scheduled = {.by = this, .number = self};
    (*bodies_)[me]();
    t_scheduled = {};
    arrive(self, true);
  }
}

bool Interleaver::is_scheduled() noexcept { return t_scheduled.by != nullptr; }

void Interleaver::stop_before(const Pair* at) noexcept {
  Interleaver& by = *t_scheduled.by;
  const int self = t_scheduled.number;
  by.pending_[static_cast<std::size_t>(self)] = static_cast<std::size_t>(at - by.watched_.slots);
  by.arrive(self, false);
}

void Interleaver::wrote() noexcept { t_scheduled.by->steps_.back().writes = true; }

// Before a step, or at the end of a body: hands the turn to whoever is to have it.
void Interleaver::arrive(int self, bool ended) noexcept {
  const auto me = static_cast<std::size_t>(self);
  close_step();
  if (ended) ended_[me] = true;
  const bool other_is_new = !arrived_[1 - me];
  arrived_[me] = true;
  if (other_is_new) {  // every decision is made between two steps that are known
    turns_[1 - me].release();
    if (!ended) turns_[me].acquire();
    return;
  }
  if (ended_[0] && ended_[1]) return finished_.release();
  const int next = pick(self);
  steps_.push_back({.thread = next, .slot = pending_[static_cast<std::size_t>(next)]});
  std::copy(watched_.passed.begin(), watched_.passed.end(), passed_before_.begin());
  if (next == self) return;
  turns_[static_cast<std::size_t>(next)].release();
  if (!ended) turns_[me].acquire();
}

int Interleaver::pick(int self) noexcept {
  const std::size_t depth = steps_.size();
  if (stopped_ != nullptr) {
    if (depth < stop_first_after_ && !ended_[0]) return 0;
    if (!ended_[1]) return 1;
    const auto* const stopped = std::exchange(stopped_, nullptr);
    const Scheduled mine = std::exchange(t_scheduled, {});
    (*stopped)();
    t_scheduled = mine;
  }
  if (depth < plan_.size()) return plan_[depth];
  // Of a schedule with a stop, nothing is to be repeated.
  if (depth > nodes_.size()) return ended_[static_cast<std::size_t>(self)] ? 1 - self : self;
  Node node;
  if (depth > 0) {
    const Node& before = nodes_[depth - 1];
    const Step& step = steps_[depth - 1];
    if (before.asleep == 1 - step.thread && !depend(before.sleeping, step)) {
      node.asleep = before.asleep;
      node.sleeping = before.sleeping;
    }
  }
  node.chosen = node.asleep == self ? 1 - self : self;
  if (ended_[static_cast<std::size_t>(node.chosen)]) node.chosen = 1 - node.chosen;
  nodes_.push_back(node);
  return node.chosen;
}

void Interleaver::close_step() noexcept {
  if (steps_.empty()) return;
  for (std::size_t group = 0; group < watched_.passed.size(); ++group) {
    if (watched_.passed[group] != passed_before_[group]) {
      steps_.back().passed |= std::uint64_t{1} << group;
    }
  }
}

void Interleaver::run(const Watched& watched, const Bodies& bodies) {
  watched_ = watched;
  bodies_ = &bodies;
  steps_.clear();
  passed_before_.assign(watched.passed.begin(), watched.passed.end());
  ended_ = {};
  arrived_ = {};
  turns_[0].release();
  finished_.acquire();
}

void Interleaver::run_stopping(const Watched& watched, const Bodies& bodies,
                               std::size_t stop_first_after, const std::function<void()>& stopped) {
  plan_.clear();
  nodes_.clear();
  stop_first_after_ = stop_first_after;
  stopped_ = &stopped;
  run(watched, bodies);
  if (stopped_ != nullptr) (*std::exchange(stopped_, nullptr))();  // it had ended before
}

bool Interleaver::depend(const Step& a, const Step& b) const noexcept {
  const auto reads_what_changed = [this](const Step& reader, const Step& changer) {
    const std::size_t group = reader.slot / watched_.slots_per_group;
    const std::size_t left = watched_.slots_per_group - reader.slot % watched_.slots_per_group;
    return left <= 2 && (changer.passed >> group & 1U) != 0;
  };
  return (a.slot == b.slot && (a.writes || b.writes)) || reads_what_changed(a, b) ||
         reads_what_changed(b, a);
}

// Where the last schedule should have decided otherwise, too.
void Interleaver::want_changes(const Space& space) {
  if (space.switches) {
    int switches = 0;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const auto other = static_cast<std::size_t>(1 - steps_[i].thread);
      const bool other_goes_on =
          std::any_of(steps_.begin() + static_cast<std::ptrdiff_t>(i), steps_.end(),
                      [&](const Step& step) { return step.thread != steps_[i].thread; });
      const bool continues = i > 0 && steps_[i - 1].thread == steps_[i].thread;
      const bool could_have =
          i > 0 && !continues &&
          std::any_of(steps_.begin() + static_cast<std::ptrdiff_t>(i), steps_.end(),
                      [&](const Step& step) { return step.thread == steps_[i - 1].thread; });
      const bool costs = i > 0 && continues;  // to change this decision
      if (other_goes_on && switches + (costs ? 1 : 0) <= *space.switches) {
        nodes_[i].wanted[other] = true;
      }
      if (could_have) ++switches;
    }
    return;
  }
  // Only the last step of the other thread that a step depends on, and that the thread had not
  // learnt of before, can be swapped with it.
  std::array<std::size_t, 2> learnt{};
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const auto self = static_cast<std::size_t>(steps_[i].thread);
    for (std::size_t j = i; j > learnt[self]; --j) {
      if (steps_[j - 1].thread == steps_[i].thread || !depend(steps_[j - 1], steps_[i])) continue;
      Node& node = nodes_[j - 1];
      if (j <= kBranchSteps && node.asleep != steps_[i].thread) node.wanted[self] = true;
      learnt[self] = j;
      break;
    }
  }
}

bool Interleaver::next_plan(bool bounded) {
  while (!nodes_.empty()) {
    Node& last = nodes_.back();
    last.done[static_cast<std::size_t>(last.chosen)] = true;
    const int other = 1 - last.chosen;
    const auto index = static_cast<std::size_t>(other);
    if (last.wanted[index] && !last.done[index]) {
      if (!bounded) {
        last.asleep = last.chosen;
        last.sleeping = steps_[nodes_.size() - 1];
      }
      last.chosen = other;
      plan_.clear();
      for (const Node& node : nodes_) plan_.push_back(node.chosen);
      return true;
    }
    nodes_.pop_back();
  }
  return false;
}

std::size_t Interleaver::explore(const Space& space) {
  plan_.clear();
  nodes_.clear();
  std::size_t schedules = 0;
  do {
    space.reset();
    run(space.watched, space.bodies);
    ++schedules;
    if (!space.check()) break;
    want_changes(space);
  } while (schedules < space.most && next_plan(space.switches.has_value()));
  return schedules;
}

std::string Interleaver::schedule() const {
  std::string text;
  for (const Step& step : steps_) {
    text += std::to_string(step.thread) + (step.writes ? ":w" : ":r") + std::to_string(step.slot);
    text += ' ';
  }
  return text;
}

std::size_t Interleaver::steps_of(int thread) const {
  return static_cast<std::size_t>(std::count_if(
      steps_.begin(), steps_.end(), [=](const Step& step) { return step.thread == thread; }));
}

}  // namespace sluice::store
