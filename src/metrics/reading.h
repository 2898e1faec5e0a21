// Metrics as they were read: plain data, from which text is made.
#pragma once

#include <sluice/time.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::metrics {

enum class Kind : std::uint8_t { counter, gauge, histogram, info };
[[nodiscard]] std::string_view to_string(Kind kind) noexcept;

inline constexpr std::size_t kLabelsMax = 4;
using LabelNames = std::array<std::string_view, kLabelsMax>;

struct DurationBound {
  Nanos at_most{0};
  std::string_view seconds;  // as the label `le` spells it
};

// A decision takes microseconds, a proxied request milliseconds, a held one seconds.
inline constexpr std::array<DurationBound, 17> kDurationBounds{{
    {std::chrono::microseconds{50}, "5e-05"},
    {std::chrono::microseconds{100}, "0.0001"},
    {std::chrono::microseconds{250}, "0.00025"},
    {std::chrono::microseconds{500}, "0.0005"},
    {std::chrono::milliseconds{1}, "0.001"},
    {std::chrono::microseconds{2500}, "0.0025"},
    {std::chrono::milliseconds{5}, "0.005"},
    {std::chrono::milliseconds{10}, "0.01"},
    {std::chrono::milliseconds{25}, "0.025"},
    {std::chrono::milliseconds{50}, "0.05"},
    {std::chrono::milliseconds{100}, "0.1"},
    {std::chrono::milliseconds{250}, "0.25"},
    {std::chrono::milliseconds{500}, "0.5"},
    {std::chrono::seconds{1}, "1"},
    {std::chrono::milliseconds{2500}, "2.5"},
    {std::chrono::seconds{5}, "5"},
    {std::chrono::seconds{10}, "10"},
}};

struct SeriesReading {
  std::vector<std::string> values;     // of the labels
  double value = 0;                    // histograms: the sum, in seconds
  std::vector<std::uint64_t> buckets;  // histograms: each by itself, the last without a bound
};

struct FamilyReading {
  std::string_view name;
  Kind kind = Kind::counter;
  std::string_view help;
  std::vector<std::string_view> labels;
  std::vector<SeriesReading> series;
};

}  // namespace sluice::metrics
