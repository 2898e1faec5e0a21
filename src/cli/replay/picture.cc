#include "cli/replay/picture.h"

#include "base/duration.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "cli/svg.h"
#include <sluice/core/limit_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::cli {
namespace {

constexpr int kLabelWidth = 250;
constexpr int kPlotWidth = 760;
constexpr int kMargin = 20;
constexpr int kTop = 84;
constexpr int kLaneHeight = 92;
constexpr int kCurveHeight = 46;
constexpr int kTickGap = 6;      // between the curve and the ticks below it
constexpr int kTickHeight = 16;  // of an admitted request; rejected ones are half as tall
constexpr int kAxisHeight = 44;
constexpr int kWidth = kMargin + kLabelWidth + kPlotWidth + kMargin;
constexpr int kPlotLeft = kMargin + kLabelWidth;

constexpr std::string_view kStyle = R"(<style>
  svg { font-family: system-ui, sans-serif; font-size: 13px; }
  .page { fill: #ffffff; } .ink { fill: #1c2733; } .soft { fill: #5c6b7a; }
  .title { font-size: 17px; font-weight: 600; } .name { font-weight: 600; }
  .line { stroke: #c3ccd5; } .seam { stroke: #93a1af; stroke-dasharray: 1 3; }
  .limit { stroke: #1c2733; stroke-dasharray: 5 4; }
  .within { fill: #7fb2e5; } .above { fill: #f0883e; }
  .admitted { stroke: #1666b0; } .rejected { stroke: #cf3b2f; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #14191f; } .ink { fill: #e3e9ef; } .soft { fill: #93a1af; }
    .line { stroke: #3a4550; } .limit { stroke: #e3e9ef; }
    .within { fill: #2f6aa5; } .above { fill: #d9772b; }
    .admitted { stroke: #6fb1f0; } .rejected { stroke: #f2685c; }
  }
</style>
)";

// Where instants lie on the horizontal axis.
class TimeScale {
 public:
  TimeScale(WallTime first, Nanos span) noexcept : first_(first), span_(std::max(span, Nanos{1})) {}

  // In tenths of a pixel, so that pictures repeat to the byte.
  [[nodiscard]] std::int64_t tenths(WallTime at) const noexcept {
    const double share =
        static_cast<double>((at - first_).count()) / static_cast<double>(span_.count());
    return std::llround(share * kPlotWidth * 10);
  }
  [[nodiscard]] WallTime first() const noexcept { return first_; }
  [[nodiscard]] Nanos span() const noexcept { return span_; }

 private:
  WallTime first_;
  Nanos span_;
};

std::string tenths_text(std::int64_t tenths) {
  return fmt::format("{}.{}", tenths / 10, tenths % 10);
}

// A round distance between axis labels that yields four to ten of them.
Nanos label_step(Nanos span) noexcept {
  using std::chrono::hours;
  constexpr std::array<std::int64_t, 3> kRound{1, 2, 5};
  const auto fits = [&](Nanos step) { return span / step <= 10; };
  for (std::int64_t decade = 1; decade <= 1'000'000'000; decade *= 10) {
    for (const std::int64_t digit : kRound) {
      if (fits(Nanos{digit * decade})) return Nanos{digit * decade};
    }
  }
  for (const int seconds :
       {10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200}) {
    if (fits(std::chrono::seconds{seconds})) return std::chrono::seconds{seconds};
  }
  Nanos days = hours{24};
  while (!fits(days)) days *= 2;
  return days;
}

// How much was admitted within the last window, at its highest in each column of pixels.
std::vector<std::uint64_t> curve(std::span<const Passage> passages, Nanos window,
                                 const TimeScale& scale) {
  struct Change {
    WallTime at;
    bool leaves;
    std::uint64_t cost;
  };
  std::vector<Change> changes;
  for (const Passage& passage : passages) {
    changes.push_back({passage.at, false, passage.cost});
    const bool beyond = window > WallTime::max() - passage.at;
    if (!beyond) changes.push_back({passage.at + window, true, passage.cost});
  }
  // What leaves at an instant is out of the window before anything enters at that instant.
  std::ranges::sort(changes, [](const Change& a, const Change& b) {
    return a.at != b.at ? a.at < b.at : a.leaves && !b.leaves;
  });

  std::vector<std::uint64_t> columns;
  std::uint64_t level = 0;
  auto change = changes.begin();
  for (int column = 0; column < kPlotWidth; ++column) {
    std::uint64_t highest = level;
    for (; change != changes.end() && scale.tenths(change->at) < std::int64_t{10} * (column + 1);
         ++change) {
      level = change->leaves ? level - change->cost : level + change->cost;
      highest = std::max(highest, level);
    }
    columns.push_back(highest);
  }
  return columns;
}

// A filled outline over the columns, from `base` up to min(value, cap), all in units of cost.
std::string area(std::span<const std::uint64_t> columns, std::uint64_t base, std::uint64_t cap,
                 std::uint64_t top, int bottom_y, std::string_view css) {
  const auto height = [&](std::uint64_t value) {
    const std::uint64_t shown = std::clamp(value, base, cap);
    return static_cast<double>(shown) / static_cast<double>(top) * kCurveHeight;
  };
  const auto y = [&](std::uint64_t value) {
    return fmt::format("{:.1f}", bottom_y - height(value));
  };
  std::string path;
  std::size_t i = 0;
  while (i < columns.size()) {
    if (columns[i] <= base) {
      ++i;
      continue;
    }
    path += fmt::format("M{} {}", kPlotLeft + static_cast<int>(i), y(base));
    while (i < columns.size() && columns[i] > base) {
      const std::uint64_t value = columns[i];
      path += fmt::format("V{}", y(value));
      while (i < columns.size() &&
             std::clamp(columns[i], base, cap) == std::clamp(value, base, cap))
        ++i;
      path += fmt::format("H{}", kPlotLeft + static_cast<int>(i));
    }
    path += fmt::format("V{}Z", y(base));
  }
  return path.empty() ? "" : fmt::format("<path class=\"{}\" d=\"{}\"/>\n", css, path);
}

std::string ticks(const Comparison& comparison, const Lane& lane, const TimeScale& scale, int top_y,
                  bool allowed) {
  std::string path;
  std::int64_t last = -1;
  for (std::size_t i = 0; i < comparison.requests.size(); ++i) {
    if (lane.admissions[i].allowed != allowed) continue;
    const std::int64_t x = scale.tenths(comparison.requests[i].at + lane.admissions[i].delay);
    if (x == last || x < 0 || x > std::int64_t{kPlotWidth} * 10) continue;
    last = x;
    const int height = allowed ? kTickHeight : kTickHeight / 2;
    path += fmt::format("M{} {}v{}", tenths_text(x + std::int64_t{kPlotLeft} * 10),
                        top_y + kTickHeight - height, height);
    if (lane.admissions[i].delay > Nanos{0}) {  // back to where its delay began
      const std::int64_t arrived = scale.tenths(comparison.requests[i].at);
      path += fmt::format("H{}", tenths_text(arrived + std::int64_t{kPlotLeft} * 10));
    }
  }
  if (path.empty()) return "";
  return fmt::format("<path class=\"{}\" fill=\"none\" stroke-width=\"1.6\" d=\"{}\"/>\n",
                     allowed ? "admitted" : "rejected", path);
}

std::string text(int x, int y, std::string_view css, std::string_view content,
                 std::string_view anchor = "start") {
  return fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y,
                     css, anchor, xml_escaped(content));
}

// The key with the most requests; lanes draw the curve of this one.
std::string busiest_key(const Comparison& comparison) {
  std::map<std::string_view, std::size_t> counts;
  for (const TraceRequest& request : comparison.requests) ++counts[request.key];
  const auto busiest =
      std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; });
  return busiest == counts.end() ? std::string{} : std::string{busiest->first};
}

std::size_t key_count(const Comparison& comparison) {
  std::vector<std::string_view> keys;
  keys.reserve(comparison.requests.size());
  for (const TraceRequest& request : comparison.requests) keys.emplace_back(request.key);
  std::ranges::sort(keys);
  return static_cast<std::size_t>(std::ranges::unique(keys).begin() - keys.begin());
}

struct Scene {
  const Comparison& comparison;
  const Limit& limit;
  TimeScale scale;
  std::string key;
  std::uint64_t top;  // of every curve, in units of cost
};

bool has_seams(const Limit& limit) noexcept {
  return limit.refill == Refill::interval || limit.algorithm == Algorithm::sliding_counter ||
         (limit.algorithm == Algorithm::fixed_window &&
          limit.align.value_or(Align::epoch) == Align::epoch);
}

// Where one window of the clock ends and the next begins; too many of them would only be noise.
std::string seams(const Scene& scene, const Lane& lane, int top_y, int bottom_y) {
  constexpr std::int64_t kMost = 40;
  const Nanos period = lane.limit.period;
  if (!has_seams(lane.limit) || scene.scale.span() / period > kMost) return "";
  std::string path;
  const WallTime first = scene.scale.first();
  const Nanos into = first.time_since_epoch() % period;
  for (Nanos at = period - into; at < scene.scale.span(); at += period) {
    path += fmt::format("M{} {}V{}",
                        tenths_text(scene.scale.tenths(first + at) + std::int64_t{kPlotLeft} * 10),
                        top_y, bottom_y);
  }
  return path.empty() ? "" : fmt::format("<path class=\"seam\" d=\"{}\"/>\n", path);
}

// What a lane's limit has besides its rate.
std::string options_text(const Limit& limit) {
  std::string text;
  const auto add = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  };
  if (limit.burst) add("burst", fmt::format("{}", *limit.burst));
  if (limit.max_delay) add("max_delay", format_duration(*limit.max_delay));
  if (limit.bucket_width) add("slices of", format_duration(*limit.bucket_width));
  if (limit.timezone) add("timezone", *limit.timezone);
  if (limit.count_rejected) add("rejected ones", "count");
  return text;
}

std::string lane_svg(const Scene& scene, const Lane& lane, int y) {
  const int curve_bottom = y + kCurveHeight;
  std::string svg = text(kMargin, y + 16, "ink name", lane.name);
  svg += text(kMargin, y + 73, "soft", options_text(lane.limit));
  svg += text(kMargin, y + 35, "soft",
              fmt::format("{} of {} admitted", lane.admitted, lane.admitted + lane.rejected));
  if (lane.window > Nanos{0}) {
    svg +=
        text(kMargin, y + 54, "soft",
             fmt::format("most in one period {} (bound {})", lane.most_in_window, lane.promised));
    const std::vector<Passage> passages = passages_of(scene.comparison, lane, scene.key);
    const std::vector<std::uint64_t> columns = curve(passages, lane.window, scene.scale);
    svg += area(columns, 0, lane.limit.amount, scene.top, curve_bottom, "within");
    svg += area(columns, lane.limit.amount, scene.top, scene.top, curve_bottom, "above");
    const double limit_y = curve_bottom - static_cast<double>(lane.limit.amount) /
                                              static_cast<double>(scene.top) * kCurveHeight;
    svg += fmt::format("<path class=\"limit\" d=\"M{} {:.1f}h{}\"/>\n", kPlotLeft, limit_y,
                       kPlotWidth);
  }
  svg +=
      fmt::format("<path class=\"line\" d=\"M{} {}h{}\"/>\n", kPlotLeft, curve_bottom, kPlotWidth);
  svg += seams(scene, lane, y, curve_bottom);
  svg += ticks(scene.comparison, lane, scene.scale, curve_bottom + kTickGap, true);
  svg += ticks(scene.comparison, lane, scene.scale, curve_bottom + kTickGap, false);
  return svg;
}

// Fractions of a second read better as such: 1.5s, not 1s500ms.
std::string axis_label(Nanos at) {
  if (at == Nanos{0} || at >= std::chrono::minutes{1} || at < std::chrono::seconds{1}) {
    return format_duration(at);
  }
  return fmt::format("{:g}s", std::chrono::duration<double>(at).count());
}

std::string axis_svg(const Scene& scene, WallTime first, int y) {
  std::string svg =
      fmt::format("<path class=\"line\" d=\"M{} {}h{}\"/>\n", kPlotLeft, y, kPlotWidth);
  const Nanos step = label_step(scene.scale.span());
  for (std::int64_t i = 0; i <= scene.scale.span() / step; ++i) {
    const Nanos at = i * step;
    const auto x = static_cast<int>(scene.scale.tenths(first + at) / 10) + kPlotLeft;
    svg += fmt::format("<path class=\"line\" d=\"M{} {}v5\"/>\n", x, y);
    svg += text(x, y + 20, "soft", axis_label(at), "middle");
  }
  return svg;
}

std::string legend_svg(const Scene& scene) {
  const int y = 62;
  int x = kPlotLeft;
  std::string svg;
  const auto label = [&](std::string_view words, int width) {
    svg += text(x + 16, y, "soft", words);
    x += width;
  };
  svg += fmt::format("<path class=\"admitted\" stroke-width=\"1.6\" d=\"M{} {}v14\"/>\n", x + 6,
                     y - 11);
  label("admitted", 92);
  svg +=
      fmt::format("<path class=\"rejected\" stroke-width=\"1.6\" d=\"M{} {}v7\"/>\n", x + 6, y - 5);
  label("rejected", 84);
  if (!scene.limit.unit && scene.limit.period == Nanos{0}) return svg;  // concurrency has no curve
  svg += fmt::format("<rect class=\"within\" x=\"{}\" y=\"{}\" width=\"11\" height=\"11\"/>\n", x,
                     y - 10);
  label(fmt::format("admitted in the last {}", scene.limit.unit
                                                   ? std::string{to_string(*scene.limit.unit)}
                                                   : format_duration(scene.limit.period)),
        210);
  svg += fmt::format("<rect class=\"above\" x=\"{}\" y=\"{}\" width=\"11\" height=\"11\"/>\n", x,
                     y - 10);
  label("above the limit", 124);
  svg += fmt::format("<path class=\"limit\" d=\"M{} {}h12\"/>\n", x, y - 4);
  label(fmt::format("limit {}", scene.limit.amount), 80);
  return svg;
}

std::uint64_t highest_curve(const Comparison& comparison) {
  std::uint64_t highest = 1;
  for (const Lane& lane : comparison.lanes) {
    highest = std::max({highest, lane.most_in_window, lane.limit.amount});
  }
  return highest;
}

}  // namespace

std::string picture_svg(const Comparison& comparison, const Limit& limit) {
  WallTime first = WallTime::max();
  WallTime last{};
  for (std::size_t i = 0; i < comparison.requests.size(); ++i) {
    const WallTime at = comparison.requests[i].at;
    first = std::min(first, at);
    last = std::max(last, at);
    for (const Lane& lane : comparison.lanes) last = std::max(last, at + lane.admissions[i].delay);
  }
  if (comparison.requests.empty()) first = last;
  // A little room on the right, so that the last tick is not on the edge.
  const Nanos span = (last - first) + (last - first) / 50;
  const Scene scene{.comparison = comparison,
                    .limit = limit,
                    .scale = TimeScale{first, span},
                    .key = busiest_key(comparison),
                    .top = highest_curve(comparison)};

  const int axis_y = kTop + static_cast<int>(comparison.lanes.size()) * kLaneHeight;
  const int height = axis_y + kAxisHeight;
  const std::size_t keys = key_count(comparison);
  const std::string caption =
      fmt::format("{}{}, from {}", counted(comparison.requests.size(), "request"),
                  keys > 1 ? fmt::format(" by {} keys; curves show '{}'", keys, scene.key) : "",
                  format_rfc3339(first));

  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" "
      "role=\"img\">\n",
      kWidth, height, kWidth, height);
  svg += fmt::format(
      "<title>{}</title>\n",
      xml_escaped(fmt::format("Requests admitted over time at {}", core::rate_text(limit))));
  svg += kStyle;
  svg += fmt::format("<rect class=\"page\" width=\"{}\" height=\"{}\"/>\n", kWidth, height);
  svg += text(kMargin, 32, "ink title", fmt::format("Limit {}", core::rate_text(limit)));
  svg += text(kPlotLeft, 32, "soft", caption);
  svg += legend_svg(scene);
  int y = kTop;
  for (const Lane& lane : comparison.lanes) {
    svg += lane_svg(scene, lane, y);
    y += kLaneHeight;
  }
  svg += axis_svg(scene, first, axis_y);
  return svg + "</svg>\n";
}

}  // namespace sluice::cli
