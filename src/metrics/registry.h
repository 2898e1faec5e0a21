// All metrics of the process: registered once, counted by every worker for itself, summed at each
// scrape.
//
// A series has one cell per shard. Each worker owns one shard and is the only one to write there,
// so counting is a load and a store of memory that no other core writes: no lock, no locked
// instruction, no shared cache line. Registering allocates and takes a mutex; it belongs to start
// and reload, and gives the same cells for the same labels again, so that counts survive a reload.
// Thread-safe, but for the rule of one writer per shard.
#pragma once

#include "metrics/cells.h"
#include "metrics/reading.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::metrics {

// Static text throughout: a table of these is what documentation is compared with.
struct Metric {
  std::string_view name;  // counters end in _total, infos in _info, the rest in a unit if any
  Kind kind = Kind::counter;
  std::string_view help;
  LabelNames labels{};            // empty ones at the end are none
  std::size_t series_max = 1000;  // different label values; what comes later is counted as _other
};

// In the order of the label names. Never a client's key: there is no bound on those.
using LabelValues = std::initializer_list<std::string_view>;

inline constexpr std::string_view kOther = "_other";

// Whatever series did not find room is here, so that a bound that was reached can be seen.
inline constexpr Metric kOverflow{
    .name = "sluice_metrics_overflow_total",
    .help = "Label values that found their metric full and are counted as _other.",
};

class Registry {
 public:
  // One shard for each thread that counts; at least one.
  explicit Registry(std::size_t shards);
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;
  ~Registry() = default;

  [[nodiscard]] std::size_t shards() const noexcept { return shards_; }

  // A metric is always given with the same kind and the same labels.
  [[nodiscard]] Counter counter(const Metric& metric, LabelValues values = {});
  [[nodiscard]] Gauge gauge(const Metric& metric, LabelValues values = {});
  [[nodiscard]] DurationHistogram histogram(const Metric& metric, LabelValues values = {});

  // A value that is read at each scrape, by the scraping thread. The function must be safe to call
  // from any thread for as long as the registry lives, and must not use the registry.
  void collect(const Metric& metric, LabelValues values, std::function<double()> value);

  // Makes a metric known that has no series yet.
  void declare(const Metric& metric);

  // All of them, ordered by name. Cells are read one by one while others count: a reading is not
  // one instant, but nothing in it ever goes back.
  [[nodiscard]] std::vector<FamilyReading> read() const;
  // One of them; without series if it is not known.
  [[nodiscard]] FamilyReading read(const Metric& metric) const;
  [[nodiscard]] std::vector<Metric> metrics() const;

 private:
  struct Series {
    Cell* cells = nullptr;  // of the first shard; null: collected
    std::function<double()> collected;
  };
  struct Family {
    Metric metric;
    std::map<std::vector<std::string>, Series> series;
  };

  // Begins at a cache line.
  struct Release {
    void operator()(Cell* block) const noexcept;
  };
  using Block = std::unique_ptr<Cell[], Release>;

  // These expect the mutex to be held.
  Family& family(const Metric& metric);
  Series& series(const Metric& metric, LabelValues values);
  Cell* cells(const Metric& metric, LabelValues values);
  [[nodiscard]] Cell* allocate(std::size_t count);
  [[nodiscard]] SeriesReading reading(const Family& family, const Series& series) const;
  [[nodiscard]] FamilyReading reading(const Family& family) const;

  const std::size_t shards_;
  mutable std::mutex mutex_;
  std::map<std::string_view, Family> families_;
  std::vector<Block> blocks_;       // shards_ times kBlockCells cells each
  std::size_t used_ = kBlockCells;  // cells of the last block
  Counter overflow_;
};

}  // namespace sluice::metrics
