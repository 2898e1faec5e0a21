#include "frontend/gateway/answers.h"

#include "net/http/status_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace sluice::gateway {
namespace {

std::uint64_t seconds_up(Nanos time) noexcept {
  return static_cast<std::uint64_t>((time.count() + 999'999'999) / 1'000'000'000);
}

std::string_view with_body(std::span<char> into, net::HeadWriter& writer, std::string_view body,
                           bool without_body) noexcept {
  const Result<std::string_view> head = writer.finish();
  if (!head || head->size() + body.size() > into.size()) return {};
  if (without_body) return *head;
  std::ranges::copy(body, into.begin() + static_cast<std::ptrdiff_t>(head->size()));
  return {into.data(), head->size() + body.size()};
}

}  // namespace

void write_rate_headers(net::HeadWriter& writer, const engine::Op& op) noexcept {
  if (op.rule == nullptr) return;
  std::array<char, 256> text;
  const auto written = [&](const auto& end) {
    return std::string_view{text.data(), static_cast<std::size_t>(end.out - text.data())};
  };
  writer.header("ratelimit-policy",
                written(fmt::format_to_n(text.data(), text.size(), "\"{}\";q={}", op.rule->name,
                                         op.decision.limit)));
  writer.header("ratelimit", written(fmt::format_to_n(text.data(), text.size(), "\"{}\";r={};t={}",
                                                      op.rule->name, op.decision.remaining,
                                                      seconds_up(op.decision.reset_after))));
}

std::string_view write_refusal(std::span<char> into, const engine::Op& op,
                               const AnswerOptions& options) noexcept {
  std::array<char, 1024> body;
  const auto end = fmt::format_to_n(
      body.data(), body.size(),
      R"({{"type":"about:blank","title":"{}","status":{},"detail":"{}","rule":"{}"}})"
      "\n",
      net::reason_phrase(op.status), op.status, to_string(op.reason),
      op.rule != nullptr ? op.rule->name : "");
  const std::string_view text{body.data(), static_cast<std::size_t>(end.out - body.data())};
  net::HeadWriter writer{into};
  writer.status_line(op.status, net::reason_phrase(op.status));
  writer.header("content-type", "application/problem+json");
  writer.header("content-length", text.size());
  writer.header("cache-control", "no-store");
  if (op.decision.retry_after) {
    writer.header("retry-after", std::max<std::uint64_t>(seconds_up(*op.decision.retry_after), 1));
  }
  write_rate_headers(writer, op);
  writer.header("x-request-id", options.request_id);
  if (options.close) writer.header("connection", "close");
  return with_body(into, writer, text, options.without_body);
}

std::string_view write_problem(std::span<char> into, std::uint16_t status, std::string_view why,
                               const AnswerOptions& options) noexcept {
  std::array<char, 1024> body;
  const auto end =
      fmt::format_to_n(body.data(), body.size(),
                       R"({{"type":"about:blank","title":"{}","status":{},"detail":"{}"}})"
                       "\n",
                       net::reason_phrase(status), status, why);
  const std::string_view text{body.data(), static_cast<std::size_t>(end.out - body.data())};
  net::HeadWriter writer{into};
  writer.status_line(status, net::reason_phrase(status));
  writer.header("content-type", "application/problem+json");
  writer.header("content-length", text.size());
  writer.header("cache-control", "no-store");
  if (!options.request_id.empty()) writer.header("x-request-id", options.request_id);
  if (options.close) writer.header("connection", "close");
  return with_body(into, writer, text, options.without_body);
}

}  // namespace sluice::gateway
