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
  std::string_view type = "about:blank";  // of ours, as the title: nothing in them is escaped
  std::string_view title;
  std::uint16_t status = 500;
  std::string_view detail;
  std::optional<std::uint64_t> retry_after_s;
  std::string_view request_id;
  // Says why in place of `detail`, and names the policies that were violated.
  const engine::Op* refused = nullptr;
};

// The document; empty if there is no room for it.
[[nodiscard]] std::string_view write_problem(std::span<char> room, const Problem& problem) noexcept;

// What kind of problem a refusal is. Clients tell their own quota from our trouble by it.
[[nodiscard]] std::string_view problem_type(engine::Reason reason) noexcept;
// The same of a status that the gateway answers with by itself.
[[nodiscard]] std::string_view problem_type(std::uint16_t status) noexcept;

// Why a request was refused, in a sentence or two.
inline constexpr std::size_t kDetailBytesMax = 256;
[[nodiscard]] std::string_view write_detail(std::span<char> room, const engine::Op& op) noexcept;
// The usual words about a status.
[[nodiscard]] std::string_view usual_detail(std::uint16_t status) noexcept;

}  // namespace sluice::frontend
