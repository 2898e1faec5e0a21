// Problem documents (RFC 9457): what went wrong, for programs and for people. Pure; no allocation.
#pragma once

#include "base/text_writer.h"
#include "engine/op.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace sluice::frontend {

inline constexpr std::string_view kProblemContentType = "application/problem+json";

struct Problem {
  std::string_view type = "about:blank";  // the gateway's, like the title: never escaped
  std::string_view title;
  std::uint16_t status = 500;
  std::string_view detail;
  std::optional<std::uint64_t> retry_after_s;
  std::string_view request_id;
  // Replaces `detail` by the reason, and names the violated policies.
  const engine::Op* refused = nullptr;
};

// The document; empty if it does not fit.
[[nodiscard]] std::string_view write_problem(std::span<char> room, const Problem& problem) noexcept;

// The type of a rejection. Clients tell their own quota from the server's trouble by it.
[[nodiscard]] std::string_view problem_type(engine::Reason reason) noexcept;
// The same for a status of the gateway's own.
[[nodiscard]] std::string_view problem_type(std::uint16_t status) noexcept;

// Why a request was rejected, in a sentence or two.
inline constexpr std::size_t kDetailBytesMax = 256;
[[nodiscard]] std::string_view write_detail(std::span<char> room, const engine::Op& op) noexcept;
// The usual text for a status.
[[nodiscard]] std::string_view usual_detail(std::uint16_t status) noexcept;

}  // namespace sluice::frontend
