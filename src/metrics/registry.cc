#include "metrics/registry.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <span>
#include <utility>

namespace sluice::metrics {
namespace {

// A name that means two things, or more labels than values: a mistake in the program.
[[noreturn]] void impossible(std::string_view name, const char* what) {
  std::fprintf(stderr, "metric %.*s: %s\n", static_cast<int>(name.size()), name.data(), what);
  std::abort();
}

std::size_t label_count(const Metric& metric) noexcept {
  const auto none = std::ranges::find(metric.labels, std::string_view{});
  return static_cast<std::size_t>(none - metric.labels.begin());
}

constexpr std::align_val_t kCacheLine{64};

std::size_t cells_of(Kind kind, std::size_t histogram_cells) noexcept {
  return kind == Kind::histogram ? histogram_cells : 1;
}

}  // namespace

std::string_view to_string(Kind kind) noexcept {
  switch (kind) {
    case Kind::counter: return "counter";
    case Kind::gauge: return "gauge";
    case Kind::histogram: return "histogram";
    case Kind::info: return "info";
  }
  return "unknown";
}

Registry::Registry(std::size_t shards) : shards_(std::max<std::size_t>(shards, 1)) {
  overflow_ = counter(kOverflow);
}

// ---- registering ------------------------------------------------------------------------------

Counter Registry::counter(const Metric& metric, LabelValues values) {
  const std::scoped_lock lock{mutex_};
  if (metric.kind != Kind::counter) impossible(metric.name, "is no counter");
  return Counter{cells(metric, values)};
}

Gauge Registry::gauge(const Metric& metric, LabelValues values) {
  const std::scoped_lock lock{mutex_};
  if (metric.kind != Kind::gauge && metric.kind != Kind::info) {
    impossible(metric.name, "is no gauge");
  }
  return Gauge{cells(metric, values)};
}

DurationHistogram Registry::histogram(const Metric& metric, LabelValues values) {
  const std::scoped_lock lock{mutex_};
  if (metric.kind != Kind::histogram) impossible(metric.name, "is no histogram");
  return DurationHistogram{cells(metric, values)};
}

void Registry::collect(const Metric& metric, LabelValues values, std::function<double()> value) {
  const std::scoped_lock lock{mutex_};
  if (metric.kind == Kind::histogram) impossible(metric.name, "cannot be collected");
  Series& made = series(metric, values);
  if (made.cells != nullptr) impossible(metric.name, "is counted in cells already");
  made.collected = std::move(value);
}

void Registry::declare(const Metric& metric) {
  const std::scoped_lock lock{mutex_};
  (void)family(metric);
}

Registry::Family& Registry::family(const Metric& metric) {
  const auto [place, is_new] = families_.try_emplace(metric.name);
  Family& family = place->second;
  if (is_new) family.metric = metric;
  if (family.metric.kind != metric.kind || family.metric.labels != metric.labels) {
    impossible(metric.name, "means two things");
  }
  return family;
}

Registry::Series& Registry::series(const Metric& metric, LabelValues values) {
  Family& family = this->family(metric);
  if (values.size() != label_count(metric)) impossible(metric.name, "has other labels");
  std::vector<std::string> key{values.begin(), values.end()};
  if (!family.series.contains(key) && family.series.size() >= metric.series_max) {
    overflow_.add(0);  // the mutex stands in for the owner of the shard, which counts other things
    key.assign(values.size(), std::string{kOther});
  }
  return family.series[std::move(key)];
}

Cell* Registry::cells(const Metric& metric, LabelValues values) {
  Series& found = series(metric, values);
  if (found.cells == nullptr) {
    found.cells = allocate(cells_of(metric.kind, DurationHistogram::kCells));
  }
  return found.cells;
}

// Cells need no destructor.
void Registry::Release::operator()(Cell* block) const noexcept {
  ::operator delete[](block, kCacheLine);
}

// The cells of a series stay in one block; what is left at the end of one stays unused.
Cell* Registry::allocate(std::size_t count) {
  if (used_ + count > kBlockCells) {
    blocks_.emplace_back(new (kCacheLine) Cell[shards_ * kBlockCells]());
    used_ = 0;
  }
  Cell* const first = blocks_.back().get() + used_;
  used_ += count;
  return first;
}

// ---- reading ----------------------------------------------------------------------------------

SeriesReading Registry::reading(const Family& family, const Series& series) const {
  SeriesReading read;
  if (series.cells == nullptr) {
    if (series.collected) read.value = series.collected();
    return read;
  }
  const auto sum = [&](std::size_t place) {
    std::uint64_t all = 0;
    for (Shard shard = 0; shard < shards_; ++shard) {
      all += detail::of_shard(series.cells + place, shard).load(std::memory_order_relaxed);
    }
    return all;
  };
  switch (family.metric.kind) {
    case Kind::counter: read.value = static_cast<double>(sum(0)); break;
    case Kind::gauge:
    case Kind::info:
      for (Shard shard = 0; shard < shards_; ++shard) {
        const Cell& cell = detail::of_shard(series.cells, shard);
        read.value += std::bit_cast<double>(cell.load(std::memory_order_relaxed));
      }
      break;
    case Kind::histogram:
      for (std::size_t i = 0; i <= kDurationBounds.size(); ++i) read.buckets.push_back(sum(i));
      read.value = static_cast<double>(sum(DurationHistogram::kSumCell)) / 1e9;
      break;
  }
  return read;
}

FamilyReading Registry::reading(const Family& family) const {
  const auto labels = std::span{family.metric.labels}.first(label_count(family.metric));
  FamilyReading read{.name = family.metric.name,
                     .kind = family.metric.kind,
                     .help = family.metric.help,
                     .labels = {labels.begin(), labels.end()},
                     .series = {}};
  for (const auto& [values, series] : family.series) {
    read.series.push_back(reading(family, series));
    read.series.back().values = values;
  }
  return read;
}

std::vector<FamilyReading> Registry::read() const {
  const std::scoped_lock lock{mutex_};
  std::vector<FamilyReading> all;
  for (const auto& [name, family] : families_) all.push_back(reading(family));
  return all;
}

FamilyReading Registry::read(const Metric& metric) const {
  const std::scoped_lock lock{mutex_};
  const auto found = families_.find(metric.name);
  return found != families_.end() ? reading(found->second) : FamilyReading{};
}

std::vector<Metric> Registry::metrics() const {
  const std::scoped_lock lock{mutex_};
  std::vector<Metric> all;
  for (const auto& [name, family] : families_) all.push_back(family.metric);
  return all;
}

}  // namespace sluice::metrics
