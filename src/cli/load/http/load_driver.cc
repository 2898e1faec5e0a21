#include "cli/load/http/load_driver.h"

#include "base/text.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

namespace sluice::cli {
namespace {

constexpr Nanos kRest{std::chrono::milliseconds{10}};
// Requests that are closer together than this are sent together: waking up costs more than one of
// them, and latencies need not be finer.
constexpr Nanos kGrain{std::chrono::microseconds{50}};

// The first threads have one more, if they cannot all have the same.
std::size_t share_of(std::size_t all, std::size_t parts, std::size_t number) noexcept {
  return all / parts + (number < all % parts ? 1 : 0);
}

}  // namespace

Parsed<std::unique_ptr<LoadDriver>> LoadDriver::create(const HttpPlan& plan,
                                                       const net::SocketAddress& address,
                                                       std::size_t number, const Clock& clock) {
  auto loop = net::EventLoop::create(clock);
  if (!loop) return tl::unexpected(loop.error());
  std::unique_ptr<LoadDriver> driver{
      new LoadDriver{plan, address, number, clock, *std::move(loop)}};
  if (!driver->alarm_.start(*driver->loop_)) {
    return mistake("cannot create a timer", "raise the limit of open files (ulimit -n)");
  }
  return driver;
}

LoadDriver::LoadDriver(const HttpPlan& plan, const net::SocketAddress& address, std::size_t number,
                       const Clock& clock, std::unique_ptr<net::EventLoop> loop)
    : plan_(plan),
      clock_(clock),
      loop_(std::move(loop)),
      bench_{.loop = *loop_,
             .address = address,
             .tls = plan.tls,
             .host = plan.target.name(),
             .method = plan.method,
             .request = plan.request,
             .timeout = plan.timeout,
             .on_head = net::Callback<const net::ResponseHead&>::to<&LoadDriver::on_head>(*this),
             .on_end = net::Callback<LoadConnection&, Ending>::to<&LoadDriver::on_end>(*this)},
      tally_(point_width_for(plan.duration), plan.clients.clients()),
      random_(plan.seed + number),
      alarm_(net::Callback<>::to<&LoadDriver::pump>(*this)),
      pump_(net::Callback<>::to<&LoadDriver::pump>(*this)),
      pause_(net::Callback<>::to<&LoadDriver::pump>(*this)),
      next_(number),
      requests_(plan.requests()) {
  const std::size_t count = share_of(plan.connections, plan.threads, number);
  for (std::size_t i = 0; i < count; ++i) {
    connections_.push_back(std::make_unique<LoadConnection>(bench_));
  }
}

void LoadDriver::connect_all() {
  for (const auto& connection : connections_) connection->open();
  const MonoTime patience = now() + plan_.timeout;
  const auto is_opening = [](const auto& connection) { return connection->is_opening(); };
  while (std::ranges::any_of(connections_, is_opening) && now() < patience) {
    loop_->turn(std::chrono::milliseconds{10});
  }
  for (const auto& connection : connections_) connection->stop_opening();
}

void LoadDriver::run(MonoTime begin) {
  begin_ = begin;
  if (plan_.schedule) next_due_ = begin_ + plan_.schedule->start_of(next_);
  for (const auto& connection : connections_) set_free(*connection, begin);
  alarm_.set(plan_.schedule ? next_due_ : begin_);
  find_end();
  loop_->run();
  leave_unfinished();
}

void LoadDriver::stop() { loop_->stop(); }

LoadDriver::Live LoadDriver::live() const noexcept {
  return {.admitted = live_admitted_.load(std::memory_order_relaxed),
          .rejected = live_rejected_.load(std::memory_order_relaxed),
          .other = live_other_.load(std::memory_order_relaxed)};
}

// ---- sending ----------------------------------------------------------------------------------

void LoadDriver::pump() {
  plan_.schedule ? pump_schedule() : pump_closed();
  find_end();
}

void LoadDriver::take_next() noexcept {
  next_ += plan_.threads;
  if (plan_.schedule) next_due_ = begin_ + plan_.schedule->start_of(next_);
}

void LoadDriver::pump_schedule() {
  MonoTime time = now();
  while (next_ < requests_ && next_due_ <= time) {
    if (time - next_due_ > plan_.timeout) {
      tally_.count_offered(next_due_ - begin_);
      tally_.count_not_sent(next_due_ - begin_, time - begin_);
      take_next();
      continue;
    }
    LoadConnection* const connection = free_.pop_front();
    if (connection == nullptr) return;  // the next that becomes free will come back here
    send(*connection, next_due_, time);
    take_next();
    time = now();
  }
  if (next_ < requests_) alarm_.set(std::max(next_due_, time + kGrain));
}

void LoadDriver::pump_closed() {
  const MonoTime end = begin_ + plan_.duration;
  for (MonoTime time = now(); time < end && !pause_.is_set(); time = now()) {
    LoadConnection* const connection = free_.pop_front();
    if (connection == nullptr) return;
    send(*connection, time, time);
    take_next();
  }
}

void LoadDriver::send(LoadConnection& connection, MonoTime due, MonoTime now) {
  tally_.count_offered(due - begin_);
  tally_.lateness.record(now - std::max(due, connection.free_since));
  ++in_flight_;
  connection.send({.due = due, .client = plan_.clients.client_of(next_, random_)}, now);
}

void LoadDriver::find_end() {
  const bool is_all_sent = plan_.schedule ? next_ >= requests_ : now() >= begin_ + plan_.duration;
  if (is_all_sent && in_flight_ == 0) loop_->stop();
}

// ---- hearing ----------------------------------------------------------------------------------

void LoadDriver::on_head(const net::ResponseHead& head) {
  for (const HeaderView& header : head.headers) {
    if (equals_ignoring_case(header.name, "ratelimit-policy")) tally_.policies.note(header.value);
    if (head.status == 429 && equals_ignoring_case(header.name, "retry-after")) {
      if (const auto seconds = parse_number(header.value)) tally_.note_retry_after(*seconds);
    }
  }
}

void LoadDriver::on_end(LoadConnection& connection, Ending ending) {
  const MonoTime time = now();
  --in_flight_;
  const LoadRequest& request = connection.request();
  tally_.count_ending(
      {.due = request.due - begin_, .sent = connection.sent() - begin_, .over = time - begin_},
      request.client, ending);
  const AnswerClass kind = class_of(ending.status);
  std::atomic<std::uint64_t>& live = kind == AnswerClass::admitted   ? live_admitted_
                                     : kind == AnswerClass::rejected ? live_rejected_
                                                                     : live_other_;
  live.store(live.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  // A server that fails at once would otherwise be asked as often as the processor can.
  if (!plan_.schedule && ending.status == 0) loop_->set(pause_, kRest);
  set_free(connection, time);
  loop_->run_soon(pump_);
}

void LoadDriver::set_free(LoadConnection& connection, MonoTime now) {
  connection.free_since = now;
  free_.push_back(connection);
}

// Requests that were due when the run was stopped and not sent count as offered, too.
void LoadDriver::leave_unfinished() {
  const MonoTime time = now();
  for (const auto& connection : connections_) {
    if (connection->is_under_way()) {
      tally_.count_unfinished(connection->request().due - begin_, time - begin_);
    }
    connection->abandon();
  }
  while (plan_.schedule && next_ < requests_ && next_due_ <= time) {
    tally_.count_offered(next_due_ - begin_);
    tally_.count_not_sent(next_due_ - begin_, time - begin_);
    take_next();
  }
}

}  // namespace sluice::cli
