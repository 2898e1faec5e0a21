// The list of blocks, with names.
//
// Two counts in the table, which know keys as digests only, decide whether a client is blocked. The
// book adds details for operators: which rule, which client, since when, until when. It has a fixed
// number of lines; when all that a block may use are taken, the block that ends first loses its
// line (not its effect). With a file it survives a restart and `kill -9`, as the counts do.
//
// Thread-safe. Writing takes no lock and allocates nothing: a line is a sequence number and words;
// the number is odd while a thread writes, and a reader that sees it change reads again.
#pragma once

#include "base/digest.h"
#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::engine {

struct BlockNote {
  std::uint64_t block = 0;     // key of the count that is exhausted while the block lasts
  std::uint64_t refusals = 0;  // key of the count of rejections that led to it
  WallTime since;
  WallTime until;
  std::string_view rule;   // name; shortened to kRuleBytes
  std::string_view label;  // "ip=203.0.113.7"; shortened to kLabelBytes
};

// A note as read.
struct BlockEntry {
  std::uint64_t block = 0;
  std::uint64_t refusals = 0;
  WallTime since;
  WallTime until;
  std::string rule;
  std::string label;
};

class BlockBook {
 public:
  static constexpr std::size_t kLines = 4096;
  static constexpr std::size_t kRuleBytes = 64;
  static constexpr std::size_t kLabelBytes = 128;

  // In memory only, or in a file. A file that is damaged or of another kind is rejected.
  [[nodiscard]] static Parsed<std::unique_ptr<BlockBook>> open(const std::string& file);
  // Why open() would reject this file. Read-only: nothing is created or changed.
  [[nodiscard]] static std::optional<Diagnostic> inspect(const std::string& file);
  BlockBook(const BlockBook&) = delete;
  BlockBook& operator=(const BlockBook&) = delete;
  ~BlockBook();

  // True: a block still in force, this one or another, has no line because of it.
  bool write(const BlockNote& note, WallTime now) noexcept;
  // Removes the line of a lifted block.
  bool erase(std::uint64_t block) noexcept;

  // Blocks in force, the last to end first.
  [[nodiscard]] std::vector<BlockEntry> list(WallTime now) const;

 private:
  static constexpr std::size_t kWords = (kRuleBytes + kLabelBytes) / 8 + 5;
  using Words = std::array<std::uint64_t, kWords>;
  struct Line {
    std::atomic<std::uint64_t> sequence{0};  // 0: never written
    std::array<std::atomic<std::uint64_t>, kWords> words{};
  };
  struct File;

  explicit BlockBook(File* file) noexcept : file_(file) {}
  [[nodiscard]] static bool is_blank(const void* memory) noexcept;
  [[nodiscard]] static bool read(const Line& line, Words& words) noexcept;
  [[nodiscard]] static bool write(Line& line, std::uint64_t sequence, const Words& words) noexcept;
  struct Place {
    Line* line = nullptr;
    std::uint64_t sequence = 0;  // of the line as it was read
    bool taken = false;          // by another block in force
  };
  [[nodiscard]] Place place_for(std::uint64_t block, WallTime now) noexcept;

  File* file_;
};

}  // namespace sluice::engine
