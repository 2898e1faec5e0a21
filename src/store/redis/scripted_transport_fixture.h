// A transport that replies what a test says, when it says so.
#pragma once

#include "store/redis/transport.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace sluice::store {

class ScriptedTransport final : public Transport {
 public:
  struct Command {
    std::uint64_t tag = 0;
    Digest key;
    std::vector<std::string> words;

    // After FCALL NAME 1 KEY, or what takes its place.
    [[nodiscard]] const std::string& operation() const { return words.at(4); }
    [[nodiscard]] const std::string& sequence() const { return words.at(6); }
  };
  // Without a report so far, in the order in which they were sent.
  std::vector<Command> commands;
  bool is_connected = true;

  [[nodiscard]] bool send(std::uint64_t tag, const Digest& key,
                          std::span<const std::string_view> words) noexcept override {
    if (!is_connected) return false;
    commands.push_back({.tag = tag, .key = key, .words = {words.begin(), words.end()}});
    return true;
  }
  [[nodiscard]] bool receive(TransportReply& reply) noexcept override {
    if (reports_.empty()) return false;
    current_ = reports_.front();
    reports_.pop_front();
    reply = {.tag = current_.tag,
             .kind = current_.kind,
             .numbers = current_.numbers,
             .text = current_.text};
    return true;
  }
  [[nodiscard]] Now wait(MonoTime until) noexcept override { return {.mono = until}; }

  // ---- what arrives with the next advance() -----------------------------------------------------

  void numbers(std::size_t i, std::vector<std::int64_t> numbers) {
    report(i, {.kind = TransportReply::Kind::numbers, .numbers = std::move(numbers), .text = {}});
  }
  void error(std::size_t i, std::string text) {
    report(i, {.kind = TransportReply::Kind::error, .numbers = {}, .text = std::move(text)});
  }
  void text(std::size_t i, std::string text) {
    report(i, {.kind = TransportReply::Kind::text, .numbers = {}, .text = std::move(text)});
  }
  void lose(std::size_t i) { report(i, {.kind = TransportReply::Kind::disconnected}); }

  // An allowed answer of a limit of 10, with a charge of this cost.
  static std::vector<std::int64_t> done(std::int64_t cost, std::int64_t mark = 7) {
    return {1, 1'700'000'000'000'000, 0, 5, 1000, -1, 0, mark, 0, cost, 3};
  }
  static std::vector<std::int64_t> rejected() {
    return {0, 1'700'000'000'000'000, 1, 0, 1000, 500, 0, 0, 0, 0, 0};
  }

 private:
  struct Report {
    TransportReply::Kind kind = TransportReply::Kind::other;
    std::vector<std::int64_t> numbers;
    std::string text;
    std::uint64_t tag = 0;
  };
  void report(std::size_t i, Report report) {
    report.tag = commands.at(i).tag;
    commands.erase(commands.begin() + static_cast<std::ptrdiff_t>(i));
    reports_.push_back(std::move(report));
  }

  std::deque<Report> reports_;
  Report current_;
};

}  // namespace sluice::store
