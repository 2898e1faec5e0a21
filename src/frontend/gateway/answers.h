// What the gateway says by itself.
#pragma once

#include "engine/op.h"
#include "net/http/head_writer.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::gateway {

struct AnswerOptions {
  bool close = false;
  bool without_body = false;  // the answer to HEAD
  std::string_view request_id;
};

// Where a client stands, on answers of servers and of our own.
void write_rate_headers(net::HeadWriter& writer, const engine::Op& op) noexcept;

// All of an answer to a request that was refused. Empty: it does not fit.
[[nodiscard]] std::string_view write_refusal(std::span<char> into, const engine::Op& op,
                                             const AnswerOptions& options) noexcept;

// All of an answer to a request that went wrong.
[[nodiscard]] std::string_view write_problem(std::span<char> into, std::uint16_t status,
                                             std::string_view why,
                                             const AnswerOptions& options) noexcept;

}  // namespace sluice::gateway
