// Metrics as text, in the two forms that Prometheus and its relatives read. Pure.
#pragma once

#include "metrics/reading.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sluice::metrics {

enum class Exposition : std::uint8_t {
  text,          // 0.0.4: what everything reads
  open_metrics,  // 1.0.0
};

// What the Accept header of a request asks for. OpenMetrics only where it is named, and not liked
// less than plain text.
[[nodiscard]] Exposition choose_exposition(std::string_view accept) noexcept;

[[nodiscard]] std::string_view content_type(Exposition form) noexcept;

[[nodiscard]] std::string expose(std::span<const FamilyReading> families, Exposition form);

}  // namespace sluice::metrics
