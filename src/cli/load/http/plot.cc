#include "cli/load/http/plot.h"

#include "base/duration.h"
#include "base/text.h"
#include "cli/load/http/findings.h"
#include "cli/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

namespace sluice::cli {
namespace {

constexpr int kWidth = 960;
constexpr int kHeight = 600;
constexpr double kLeft = 76;
constexpr double kRight = kWidth - 32;

// A stretch of the card with an axis of its own.
struct Panel {
  double top;
  double bottom;
  std::string_view title;
};
constexpr Panel kRates{128, 344, "requests per second"};
constexpr Panel kLatency{418, 540, "latency from the scheduled start"};

constexpr std::string_view kStyle = R"(<style>
  svg { font-family: system-ui, "DejaVu Sans", sans-serif; font-size: 13px; }
  .card { fill: #ffffff; stroke: #dfe5eb; }
  .ink { fill: #17212b; } .soft { fill: #5c6b7a; }
  .title { font-size: 18px; font-weight: 600; } .panel { font-weight: 600; }
  .grid { stroke: #e8edf2; } .axis { stroke: #aab6c2; }
  .line { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
  .offered { stroke: #9aa7b4; } .admitted { stroke: #1668b8; } .rejected { stroke: #d4552b; }
  .other { stroke: #7b4fb5; } .p50 { stroke: #17877b; } .p99 { stroke: #b0307a; }
  .under { fill: #1668b8; fill-opacity: 0.12; }
  .limit { fill: none; stroke: #17212b; stroke-width: 1.5; stroke-dasharray: 6 5; }
</style>
)";

// One value for a stretch of time, in seconds: drawn as a step, since it is not known any finer.
struct Step {
  double begin;
  double end;
  double value;
};
using Curve = std::vector<Step>;  // may have gaps

// The points of a run and how long each stretch was: the last one may be short.
class Stretches {
 public:
  // Each of so many points.
  explicit Stretches(const HttpRun& run, std::size_t points) : run_(run), points_(points) {
    const double width = seconds(run.tally.point_width) * static_cast<double>(points);
    const double end = seconds(run.elapsed);
    for (std::size_t i = 0; i * points < run.tally.series.size(); ++i) {
      const double begin = static_cast<double>(i) * width;
      const double length = std::min(width, end - begin);
      // Too short to speak of a rate, unless it is all there is.
      if (length < width / 4 && i > 0) break;
      begins_.push_back(begin);
      lengths_.push_back(std::max(length, 1e-3));
    }
  }

  // As it is measured from the first stretch to the last.
  [[nodiscard]] Curve rate(std::uint64_t SeriesPoint::* count) const {
    return each([&](std::span<const SeriesPoint> points, double length) {
      std::uint64_t sum = 0;
      for (const SeriesPoint& point : points) sum += point.*count;
      return std::optional{static_cast<double>(sum) / length};
    });
  }
  // Of stretches of one point.
  [[nodiscard]] Curve latency(double share) const {
    return each([&](std::span<const SeriesPoint> points, double /*length*/) {
      const auto& latency = points.front().latency;
      return latency.count() == 0 ? std::nullopt
                                  : std::optional{seconds(latency.percentile(share))};
    });
  }
  [[nodiscard]] double end() const noexcept {
    return begins_.empty() ? 1 : begins_.back() + lengths_.back();
  }

 private:
  using Value = std::function<std::optional<double>(std::span<const SeriesPoint>, double length)>;

  [[nodiscard]] static double seconds(Nanos time) noexcept {
    return std::chrono::duration<double>(time).count();
  }
  [[nodiscard]] Curve each(const Value& value_of) const {
    Curve curve;
    for (std::size_t i = 0; i < begins_.size(); ++i) {
      const std::span all{run_.tally.series};
      const std::size_t first = i * points_;
      const std::optional<double> value =
          value_of(all.subspan(first, std::min(points_, all.size() - first)), lengths_[i]);
      if (value) curve.push_back({begins_[i], begins_[i] + lengths_[i], *value});
    }
    return curve;
  }

  const HttpRun& run_;
  std::size_t points_;
  std::vector<double> begins_;
  std::vector<double> lengths_;
};

double highest(const Curve& curve) noexcept {
  double most = 0;
  for (const Step& step : curve) most = std::max(most, step.value);
  return most;
}

// ---- drawing ----------------------------------------------------------------------------------

struct Axes {
  const Panel& panel;
  double end;  // of time, in seconds
  double top;  // of values

  [[nodiscard]] double x(double at) const noexcept { return kLeft + at / end * (kRight - kLeft); }
  [[nodiscard]] double y(double value) const noexcept {
    return panel.bottom - value / top * (panel.bottom - panel.top);
  }
};

std::string text(double x, double y, std::string_view css, std::string_view content,
                 std::string_view anchor = "start") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n",
                     x, y, css, anchor, xml_escaped(content));
}

std::string rule(double x1, double y1, double x2, double y2, std::string_view css) {
  return fmt::format("<path class=\"{}\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>\n", css, x1, y1, x2,
                     y2);
}

std::string line(const Axes& axes, const Curve& curve, std::string_view css) {
  std::string path;
  double pen = -1;  // where the last step ended
  for (const Step& step : curve) {
    const bool goes_on = step.begin - pen < 1e-6;
    path += goes_on ? fmt::format("V{:.1f}", axes.y(step.value))
                    : fmt::format("M{:.1f} {:.1f}", axes.x(step.begin), axes.y(step.value));
    path += fmt::format("H{:.1f}", axes.x(step.end));
    pen = step.end;
  }
  return path.empty() ? "" : fmt::format("<path class=\"line {}\" d=\"{}\"/>\n", css, path);
}

// Of a curve without gaps.
std::string area(const Axes& axes, const Curve& curve) {
  if (curve.empty()) return "";
  std::string path = fmt::format("M{:.1f} {:.1f}", axes.x(curve.front().begin), axes.panel.bottom);
  for (const Step& step : curve) {
    path += fmt::format("V{:.1f}H{:.1f}", axes.y(step.value), axes.x(step.end));
  }
  return fmt::format("<path class=\"under\" d=\"{}V{:.1f}Z\"/>\n", path, axes.panel.bottom);
}

std::string count_label(double value) {
  if (value >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (value >= 1e3) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:g}", value);
}

std::string duration_label(double seconds) {
  return approximate_duration(Nanos{std::llround(seconds * 1e9)});
}

std::string time_label(double seconds) {
  if (seconds < 60) return fmt::format("{:g}s", seconds);
  return format_duration(std::chrono::seconds{std::llround(seconds)});
}

using Label = std::string (*)(double);

std::string frame(const Axes& axes, const std::vector<double>& ticks, Label label) {
  std::string svg = text(kLeft, axes.panel.top - 14, "ink panel", axes.panel.title);
  for (const double tick : ticks) {
    svg += rule(kLeft, axes.y(tick), kRight, axes.y(tick), tick == 0 ? "axis" : "grid");
    svg += text(kLeft - 10, axes.y(tick) + 4.5, "soft", label(tick), "end");
  }
  for (const double tick : axis_ticks(axes.end)) {
    if (tick > axes.end) continue;
    svg += rule(axes.x(tick), axes.panel.bottom, axes.x(tick), axes.panel.bottom + 5, "axis");
    svg += text(axes.x(tick), axes.panel.bottom + 21, "soft", time_label(tick), "middle");
  }
  return svg;
}

struct LegendEntry {
  std::string_view css;
  std::string name;
};

// From the right edge to the left, so that it ends where the panel does.
std::string legend(const Panel& panel, const std::vector<LegendEntry>& entries) {
  constexpr double kPerLetter = 7.6;  // of the usual fonts in this size, a little generous
  constexpr double kSample = 22;
  double x = kRight;
  const double y = panel.top - 18;
  std::string svg;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    svg += text(x, y + 4.5, "soft", entry->name, "end");
    x -= static_cast<double>(entry->name.size()) * kPerLetter;
    svg += rule(x - kSample - 6, y, x - 6, y,
                entry->css == "limit" ? "limit" : fmt::format("line {}", entry->css));
    x -= kSample + 24;
  }
  return svg;
}

// The slowest rate of interest: the limit, or the admitted rate.
double slowest_rate(const HttpPlan& plan, const HttpRun& run) {
  return limit_per_second(plan, run.tally)
      .value_or(per_second(static_cast<double>(run.tally.admitted()), run.elapsed));
}

std::string rates_svg(const HttpPlan& plan, const HttpRun& run) {
  const Stretches stretches{run, points_of_a_rate(slowest_rate(plan, run), run.tally.point_width)};
  const Curve offered = stretches.rate(&SeriesPoint::offered);
  const Curve admitted = stretches.rate(&SeriesPoint::admitted);
  const Curve rejected = stretches.rate(&SeriesPoint::rejected);
  const Curve other = stretches.rate(&SeriesPoint::other);
  const double most =
      std::max({highest(offered), highest(admitted), highest(rejected), highest(other), 1.0});
  const std::vector<double> ticks = axis_ticks(most);
  const Axes axes{kRates, stretches.end(), ticks.back()};
  // A limit far above all that happened would press it flat.
  const double limit = limit_per_second(plan, run.tally).value_or(0);
  const bool shows_limit = limit > 0 && limit <= axes.top;

  std::vector<LegendEntry> entries{
      {"offered", "offered"}, {"admitted", "admitted"}, {"rejected", "rejected"}};
  std::string svg = frame(axes, ticks, count_label);
  svg += area(axes, admitted);
  svg += line(axes, offered, "offered");
  svg += line(axes, rejected, "rejected");
  if (highest(other) > 0) {
    svg += line(axes, other, "other");
    entries.push_back({"other", "other responses and errors"});
  }
  svg += line(axes, admitted, "admitted");
  if (shows_limit) {
    svg += rule(kLeft, axes.y(limit), kRight, axes.y(limit), "limit");
    entries.push_back({"limit", fmt::format("limit {}", count_label(std::round(limit * 10) / 10))});
  }
  return svg + legend(kRates, entries);
}

std::string latency_svg(const HttpRun& run) {
  const Stretches stretches{run, 1};
  const Curve median = stretches.latency(0.50);
  const Curve high = stretches.latency(0.99);
  const std::vector<double> ticks = axis_ticks(std::max(highest(high), 1e-6));
  const Axes axes{kLatency, stretches.end(), ticks.back()};
  return frame(axes, ticks, duration_label) + line(axes, high, "p99") + line(axes, median, "p50") +
         legend(kLatency, {{"p50", "p50"}, {"p99", "p99"}});
}

std::string caption(const HttpPlan& plan, const HttpRun& run) {
  const Tally& tally = run.tally;
  return fmt::format("{} offered, {} admitted, {} rejected, {} other; {}, {}{}", tally.offered,
                     tally.admitted(), tally.rejected(),
                     tally.offered - tally.admitted() - tally.rejected(),
                     counted(plan.clients.clients(), "client"),
                     counted(plan.connections, "connection"), plan.schedule ? "" : "; closed loop");
}

}  // namespace

std::vector<double> axis_ticks(double top) {
  constexpr double kAbout = 5;
  const double rough = top / kAbout;
  const double decade = std::pow(10, std::floor(std::log10(rough)));
  const double lead = rough / decade;
  const double step = decade * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
  std::vector<double> ticks;
  const auto count = static_cast<int>(std::ceil(top / step - 1e-9));
  for (int i = 0; i <= count; ++i) ticks.push_back(i * step);
  return ticks;
}

// So long that a few requests pass at that rate, a second of them at most, or one.
std::size_t points_of_a_rate(double rate, Nanos point_width) noexcept {
  constexpr double kFew = 4;
  if (rate <= 0) return 1;
  const double window = std::max(1 / rate, std::min(1.0, kFew / rate));
  const double points = window / std::chrono::duration<double>(point_width).count();
  constexpr double kMost = 1'000'000;  // more than any run has
  return static_cast<std::size_t>(std::clamp(std::ceil(points - 1e-9), 1.0, kMost));
}

std::string plot_svg(const HttpPlan& plan, const HttpRun& run) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\">\n",
      kWidth, kHeight);
  const std::string title = fmt::format("{} {}", plan.method, plan.url);
  svg += fmt::format("<title>{}</title>\n", xml_escaped("Load: " + title));
  svg += kStyle;
  svg += fmt::format(
      "<rect class=\"card\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"10\"/>\n",
      kWidth - 1, kHeight - 1);
  svg += text(32, 42, "ink title", title);
  svg += text(32, 66, "soft", caption(plan, run));
  svg += rates_svg(plan, run);
  svg += latency_svg(run);
  return svg + "</svg>\n";
}

}  // namespace sluice::cli
