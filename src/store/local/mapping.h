// The memory of a table: anonymous, or a file that outlives the process.
//
// One mapping without pointers: a header, the limits by number, the bytes of `passed`, the groups
// of slots, the cells that keys without a slot share, the slabs of blocks. All writes after
// creation are exchanges or belong to a record with a checksum of its own, so the file is valid
// whenever a process dies.
//
//     header   magic, layout version, sizes, secret, checksum over these; then the fields that
//              change: the time base, generations of processes, epochs of the rejection caches,
//              how often the limits changed
//
// Several processes may map one file. They agree by locks of the kernel on bytes behind the file's
// end, which vanish with the process: one byte says whether another process has the file open, one
// per process says that it is alive, one serialises additions to the limits.
//
// Time base. States of limits on the monotonic clock hold stored time: that clock plus `shift`. The
// shift makes stored time continue across a reboot, by the wall clock, and never go back.
//
// A file is allocated in full before it is used: a full disk is an error at the start, not a SIGBUS
// later. For a file that is truncated later see base/mapped_files.h.
#pragma once

#include "base/digest.h"
#include "store/local/block_pool.h"
#include "store/local/table.h"
#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sluice::store {

// How the memory is divided: these parts for limits, for blocks and for cells that keys without a
// slot share, the rest for slots.
inline constexpr std::size_t kLimitsPart = 32;
inline constexpr std::size_t kBlocksPart = 8;
inline constexpr std::size_t kCellsPart = 16;

enum class Pages : std::uint8_t { automatic, small };

struct MappingOptions {
  std::size_t memory = std::size_t{16} << 20U;  // bytes of all together
  std::string file;                             // empty: lost when the process ends
  bool start_fresh = false;                     // discard a file that cannot be used
  Pages pages = Pages::automatic;
};

// One limit, as the numbers in the rule. Written once, then read by all processes.
struct LimitRecord {
  std::uint64_t checksum = 0;  // of all fields after `used`; 0: free
  std::int64_t used = 0;       // wall clock, seconds: last use by a process
  std::uint64_t amount = 0;
  std::int64_t period = 0;
  std::uint64_t burst = 0;
  std::int64_t bucket_width = 0;
  std::int64_t max_delay = 0;
  std::int64_t slot_ttl = 0;
  std::uint8_t algorithm = 0;
  std::uint8_t refill = 0;  // optional ones: the enumerator plus one, 0 when absent
  std::uint8_t align = 0;
  std::uint8_t unit = 0;
  std::uint8_t flags = 0;  // which optional numbers are present, count_rejected, stands_in
  std::array<char, 51> timezone{};
};
static_assert(sizeof(LimitRecord) == 120);

struct MappingHeader;
struct MappingSizes;

class Mapping {
 public:
  static constexpr std::size_t kMemoryMin = std::size_t{4} << 20U;
  static constexpr std::uint32_t kLayoutVersion = 3;
  static constexpr std::size_t kProcessesMax = 64;
  static constexpr std::size_t kEpochs = 256;

  [[nodiscard]] static Parsed<Mapping> open(const MappingOptions& options, Now now,
                                            bool discard = false);  // whatever the file holds

  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  // How many different limits fit into so much memory.
  [[nodiscard]] static std::size_t limits_within(std::size_t memory) noexcept;

  [[nodiscard]] std::span<LimitRecord> limits() const noexcept;
  [[nodiscard]] Table::Memory table() const noexcept;
  [[nodiscard]] BlockPool::Slabs slabs() const noexcept;
  [[nodiscard]] DigestSecret secret() const noexcept;

  // Stored time; see above.
  [[nodiscard]] Now stored(Now now) const noexcept {
    return {.mono = now.mono + shift_, .wall_offset = now.wall_offset - shift_};
  }
  void remember_time(Now now) noexcept;  // for the next boot
  // When it was opened: how long no process had remembered the time; 0 if it was not alone.
  [[nodiscard]] Nanos unattended() const noexcept { return unattended_; }

  [[nodiscard]] Participant self() const noexcept { return self_; }
  [[nodiscard]] bool is_alive(Participant participant) const noexcept;
  [[nodiscard]] bool was_alone() const noexcept { return was_alone_; }  // when it was opened
  void let_others_in() noexcept;  // after the steps that only one process may do

  // Rises whenever a cached rejection may have become void early.
  [[nodiscard]] std::uint32_t epoch(LimitNumber limit) const noexcept;
  void raise_epoch(LimitNumber limit) noexcept;
  void raise_all_epochs() noexcept;

  // Blocks other threads' and processes' additions to the limits while it lives.
  class LimitsLock {
   public:
    explicit LimitsLock(const Mapping& mapping) noexcept;
    LimitsLock(const LimitsLock&) = delete;
    LimitsLock& operator=(const LimitsLock&) = delete;
    ~LimitsLock();

   private:
    int file_;
  };

  // How often limits were added or their numbers freed, by all processes. To be raised before the
  // record changes, under the lock above.
  [[nodiscard]] std::uint64_t limit_changes() const noexcept;
  std::uint64_t raise_limit_changes() const noexcept;

  // Touches all pages from `first` on, up to `bytes` of them, so that no decision has to. Returns
  // where to continue; the size when done.
  [[nodiscard]] std::size_t fault_in(std::size_t first, std::size_t bytes) const noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept { return memory_.size(); }
  [[nodiscard]] std::size_t huge_page_bytes() const;  // how much of it the kernel backs with them
  [[nodiscard]] const std::string& file() const noexcept { return path_; }

 private:
  Mapping() = default;
  [[nodiscard]] Parsed<void> map_memory(std::size_t bytes, Pages pages);
  [[nodiscard]] Parsed<void> open_file(const MappingOptions& options, const MappingSizes& sizes,
                                       bool discard);
  [[nodiscard]] Parsed<bool> examine(std::size_t file_bytes, const MappingSizes& wanted) const;
  [[nodiscard]] Parsed<void> create_file(const MappingSizes& sizes, Pages pages);
  [[nodiscard]] Parsed<void> map_file(std::size_t bytes, Pages pages);
  [[nodiscard]] Parsed<void> join();
  void begin_time(Now now) noexcept;
  [[nodiscard]] MappingHeader& header() const noexcept;

  std::span<std::byte> memory_;
  std::string path_;
  int file_ = -1;
  Participant self_;
  Nanos shift_{0};
  Nanos unattended_{0};
  bool was_alone_ = true;
};

}  // namespace sluice::store
