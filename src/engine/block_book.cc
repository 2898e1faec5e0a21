#include "engine/block_book.h"

#include "base/file_descriptor.h"
#include "base/mapped_files.h"
#include "base/read_file.h"
#include "base/text.h"
#include "base/writable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <span>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sluice::engine {
namespace {

constexpr std::uint64_t kMagic = 0x314b434f4c42'4c53;  // "SLBLOCK1"
constexpr std::size_t kProbes = 16;                    // lines that a block may use

// The layout of a line's words.
enum Word : std::size_t { block, refusals, since, until, lengths, texts };

std::uint64_t nanos_of(WallTime time) noexcept {
  return static_cast<std::uint64_t>(time.time_since_epoch().count());
}

WallTime time_of(std::uint64_t nanos) noexcept {
  return WallTime{Nanos{static_cast<std::int64_t>(nanos)}};
}

Diagnostic is_no_book(const std::string& file) {
  return {.message = fmt::format("{} is not a file of blocks", file),
          .remedy = "remove it, or name another one"};
}

std::string_view shortened(std::string_view text, std::size_t bytes) noexcept {
  return text.substr(0, valid_utf8_prefix(text.substr(0, bytes)));
}

}  // namespace

// The lines of a mapping are used in place: an atomic word is a word.
struct BlockBook::File {
  std::uint64_t magic = 0;
  std::uint64_t lines = 0;
  std::array<Line, kLines> all;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// If the power fails after a first start, the file may have its size, but no content: that is a new
// one.
bool BlockBook::is_blank(const void* memory) noexcept {
  const auto* const bytes = static_cast<const unsigned char*>(memory);
  return std::all_of(bytes, bytes + sizeof(File), [](unsigned char byte) { return byte == 0; });
}

Parsed<std::unique_ptr<BlockBook>> BlockBook::open(const std::string& file) {
  const auto failed = [&](std::string_view what) {
    return mistake(fmt::format("{}: {}: {}", file, what, std::strerror(errno)),
                   "name a file that can be written, or leave it out");
  };
  FileDescriptor descriptor;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  bool is_new = true;
  if (!file.empty()) {
    descriptor = FileDescriptor{::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    struct stat status{};
    if (!descriptor || ::fstat(descriptor.get(), &status) != 0) return failed("cannot open");
    is_new = status.st_size == 0;
    if (!is_new && static_cast<std::size_t>(status.st_size) != sizeof(File)) {
      return tl::unexpected(is_no_book(file));
    }
    // Allocates all of it: a full disk fails here, not by a signal later.
    if (is_new) errno = ::posix_fallocate(descriptor.get(), 0, sizeof(File));
    if (is_new && errno != 0) return failed("cannot allocate");
    flags = MAP_SHARED;
  }
  void* const memory =
      ::mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, flags, descriptor.get(), 0);
  if (memory == MAP_FAILED) return failed("cannot map");
  is_new = is_new || is_blank(memory);
  File* const mapped = is_new ? new (memory) File : std::launder(static_cast<File*>(memory));
  std::unique_ptr<BlockBook> book{new BlockBook{mapped}};
  if (!file.empty()) {
    remember_mapped_file(std::as_bytes(std::span{mapped, 1}),
                         {.what = "file of blocks",
                          .path = file,
                          .remedy = "remove it and start again; blocks hold without it"});
  }
  if (is_new) {
    mapped->magic = kMagic;
    mapped->lines = kLines;
    // Once the file's kind is on disk, the rest may follow at any time.
    if (!file.empty() && ::msync(memory, sizeof(File), MS_SYNC) != 0) return failed("cannot write");
  } else if (mapped->magic != kMagic || mapped->lines != kLines) {
    return tl::unexpected(is_no_book(file));
  }
  // A process killed while it wrote leaves an odd number behind: that line is lost.
  for (Line& line : mapped->all) {
    if (line.sequence.load(std::memory_order_relaxed) % 2 != 0) line.sequence.store(0);
  }
  return book;
}

std::optional<Diagnostic> BlockBook::inspect(const std::string& file) {
  if (auto wrong = why_not_writable(file)) return wrong;
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0) return std::nullopt;  // it will be created
  if (!S_ISREG(status.st_mode)) return is_no_book(file);
  if (status.st_size == 0) return std::nullopt;
  if (static_cast<std::size_t>(status.st_size) != sizeof(File)) return is_no_book(file);
  Parsed<std::string> content = read_file(file, sizeof(File));
  if (!content) return std::move(content.error());
  if (content->size() != sizeof(File)) return is_no_book(file);
  std::array<std::uint64_t, 2> begin{};
  std::memcpy(begin.data(), content->data(), sizeof begin);
  const bool is_book = begin == std::array<std::uint64_t, 2>{kMagic, kLines};
  return is_book || is_blank(content->data()) ? std::nullopt : std::optional{is_no_book(file)};
}

BlockBook::~BlockBook() {
  forget_mapped_file(std::as_bytes(std::span{file_, 1}));
  ::munmap(file_, sizeof(File));
}

// ---- lines ------------------------------------------------------------------------------------

bool BlockBook::read(const Line& line, Words& words) noexcept {
  constexpr int kTries = 8;  // a writer takes nanoseconds, unless it was stopped
  for (int i = 0; i < kTries; ++i) {
    const std::uint64_t before = line.sequence.load(std::memory_order_acquire);
    if (before == 0) return false;
    if (before % 2 != 0) continue;
    for (std::size_t w = 0; w < kWords; ++w) {
      words[w] = line.words[w].load(std::memory_order_relaxed);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    if (line.sequence.load(std::memory_order_relaxed) == before) return words[until] != 0;
  }
  return false;
}

bool BlockBook::write(Line& line, std::uint64_t sequence, const Words& words) noexcept {
  if (sequence % 2 != 0 ||
      !line.sequence.compare_exchange_strong(sequence, sequence + 1, std::memory_order_acq_rel)) {
    return false;  // another thread writes it
  }
  // Pairs with the reader's fence: a thread that sees one of the words also sees the odd number.
  std::atomic_thread_fence(std::memory_order_release);
  for (std::size_t w = 0; w < kWords; ++w) {
    line.words[w].store(words[w], std::memory_order_relaxed);
  }
  line.sequence.store(sequence + 2, std::memory_order_release);
  return true;
}

// The block's own line, else a free one, else that of the block that ends first. Its sequence is
// loaded before it is read: a line that changes afterwards is not overwritten.
BlockBook::Place BlockBook::place_for(std::uint64_t block, WallTime now) noexcept {
  Place best;
  std::uint64_t best_until = ~std::uint64_t{0};
  for (std::size_t i = 0; i < kProbes; ++i) {
    Line& line = file_->all[(block + i) % kLines];
    const std::uint64_t sequence = line.sequence.load(std::memory_order_acquire);
    Words words{};
    const bool written = read(line, words);
    if (written && words[Word::block] == block) return {.line = &line, .sequence = sequence};
    const std::uint64_t ends =
        written && words[until] > nanos_of(now) ? words[until] : std::uint64_t{0};
    if (ends < best_until) {
      best = {.line = &line, .sequence = sequence, .taken = ends > 0};
      best_until = ends;
    }
  }
  return best;
}

bool BlockBook::write(const BlockNote& note, WallTime now) noexcept {
  const std::string_view rule = shortened(note.rule, kRuleBytes);
  const std::string_view label = shortened(note.label, kLabelBytes);
  Words words{};
  words[block] = note.block;
  words[refusals] = note.refusals;
  words[since] = nanos_of(note.since);
  words[until] = nanos_of(note.until);
  words[lengths] = rule.size() << 32U | label.size();
  auto* const text = reinterpret_cast<char*>(&words[texts]);
  std::ranges::copy(rule, text);
  std::ranges::copy(label, text + kRuleBytes);
  // Two blocks may claim one line at the same moment: one of them takes another line.
  for (std::size_t i = 0; i < kProbes; ++i) {
    const Place place = place_for(note.block, now);
    if (write(*place.line, place.sequence, words)) return place.taken;
  }
  return true;
}

bool BlockBook::erase(std::uint64_t block) noexcept {
  for (std::size_t i = 0; i < kProbes; ++i) {
    Line& line = file_->all[(block + i) % kLines];
    const std::uint64_t sequence = line.sequence.load(std::memory_order_acquire);
    Words words{};
    if (!read(line, words) || words[Word::block] != block) continue;
    return write(line, sequence, Words{});
  }
  return false;
}

std::vector<BlockEntry> BlockBook::list(WallTime now) const {
  std::vector<BlockEntry> entries;
  for (const Line& line : file_->all) {
    Words words{};
    if (!read(line, words) || words[until] <= nanos_of(now)) continue;
    const auto* const text = reinterpret_cast<const char*>(&words[texts]);
    const std::size_t rule_bytes = std::min<std::size_t>(words[lengths] >> 32U, kRuleBytes);
    const std::size_t label_bytes =
        std::min<std::size_t>(words[lengths] & 0xffffffffU, kLabelBytes);
    entries.push_back({.block = words[block],
                       .refusals = words[refusals],
                       .since = time_of(words[since]),
                       .until = time_of(words[until]),
                       .rule = {text, rule_bytes},
                       .label = {text + kRuleBytes, label_bytes}});
  }
  std::ranges::sort(entries, std::greater{}, &BlockEntry::until);
  return entries;
}

}  // namespace sluice::engine
