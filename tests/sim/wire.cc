#include "sim/wire.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace sluice::sim {

using store::TransportReply;

Wire::Wire(const Place& place, std::function<void()> arrived)
    : place_(place), arrived_(std::move(arrived)) {}

void Wire::start(Address server) {
  server_ = server;
  stopped_ = false;
  connect();
}

void Wire::change_server(Address server) {
  if (stopped_ || server_ == server) return;
  server_ = server;
  disconnect();
  connect();
  arrived_();
}

void Wire::stop() {
  stopped_ = true;
  is_open_ = false;
  place_.process.cancel(timer_);
  place_.network.close(std::exchange(socket_, {}));
}

void Wire::connect() {
  socket_ = place_.network.connect(place_.self, server_, *this);
  place_.ledger.connected(socket_, place_.node);
  place_.ledger.event(fmt::format("{} connects to {}", place_.process.name(),
                                  place_.network.process(server_).name()));
  replies_ = 0;
  heard_ = place_.process.clock().now().mono;
  watch();
}

// Also of a connection that is not open yet.
void Wire::watch() {
  place_.process.cancel(timer_);
  timer_ = place_.process.after(kSilence / 4, [this] {
    const bool waits = !is_open_ || !awaited_.empty();
    const bool is_silent = place_.process.clock().now().mono - heard_ > kSilence;
    if (!waits || !is_silent) return watch();
    disconnect();
    connect();
    arrived_();
  });
}

void Wire::disconnect() {
  is_open_ = false;
  out_.clear();
  place_.network.close(std::exchange(socket_, {}));
  for (const std::uint64_t tag : awaited_) {
    reports_.push_back({.tag = tag, .kind = TransportReply::Kind::disconnected});
    ++lost_;
  }
  awaited_.clear();
}

void Wire::opened(Socket) {
  is_open_ = true;
  heard_ = place_.process.clock().now().mono;
}

void Wire::closed(Socket, Closed) {
  socket_ = {};
  disconnect();
  place_.process.cancel(timer_);
  timer_ = place_.process.after(kReconnect, [this] { connect(); });
  arrived_();
}

void Wire::received(Socket socket, std::string_view message) {
  heard_ = place_.process.clock().now().mono;
  while (!message.empty()) {
    const Reply reply = take_reply(message);
    Report& report = reports_.emplace_back();
    report.tag = awaited_.front();
    awaited_.pop_front();
    report.execution = place_.ledger.execution(socket, replies_++);
    if (reply.kind == Reply::Kind::array) {
      report.kind = TransportReply::Kind::numbers;
      report.numbers = reply.numbers();
    } else if (reply.is_error()) {
      report.kind = TransportReply::Kind::error;
      report.text = reply.text;
    } else if (reply.kind == Reply::Kind::bulk || reply.kind == Reply::Kind::status) {
      report.kind = TransportReply::Kind::text;
      report.text = reply.text;
    }
  }
  arrived_();
}

bool Wire::send(std::uint64_t tag, const Digest&,
                std::span<const std::string_view> words) noexcept {
  if (stopped_ || !is_open_ || lost_ > 0) return false;
  if (awaited_.empty()) heard_ = place_.process.clock().now().mono;
  append_command(out_, words);
  awaited_.push_back(tag);
  return true;
}

void Wire::flush() noexcept {
  if (out_.empty()) return;
  place_.network.send(socket_, out_);
  out_.clear();
}

bool Wire::receive(TransportReply& reply) noexcept {
  if (reports_.empty()) return false;
  current_ = std::move(reports_.front());
  reports_.pop_front();
  if (current_.kind == TransportReply::Kind::disconnected) --lost_;
  reply = {.tag = current_.tag,
           .kind = current_.kind,
           .numbers = current_.numbers,
           .text = current_.text};
  return true;
}

// Nothing in a simulation blocks.
Now Wire::wait(MonoTime) noexcept { std::terminate(); }

}  // namespace sluice::sim
