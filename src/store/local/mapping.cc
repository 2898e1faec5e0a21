#include "store/local/mapping.h"

#include "base/file_descriptor.h"
#include "base/mapped_files.h"
#include "base/random.h"
#include "base/text.h"
#include "base/writable.h"
#include "store/local/state_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <optional>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace sluice::store {

constexpr std::array<char, 8> kMagic{'s', 'l', 'u', 'i', 'c', 'e', '\n', '\0'};
constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{2} << 20U;

// The numbers that determine the sizes of the parts.
struct MappingSizes {
  std::uint64_t bytes = 0;
  std::uint64_t limits = 0;
  std::uint64_t groups = 0;
  std::uint64_t slabs = 0;
  std::uint64_t cell_groups = 0;

  friend bool operator==(const MappingSizes&, const MappingSizes&) = default;
};

struct MappingHeader {
  std::array<char, 8> magic{};
  std::uint32_t layout_version = 0;
  std::uint32_t unused = 0;
  MappingSizes sizes;
  DigestSecret secret;
  std::uint64_t checksum = 0;  // of all fields above

  alignas(16) Pair boot;       // hash of the boot's id, shift of stored time
  alignas(16) Pair last_seen;  // wall clock and stored time, for the next boot
  std::uint32_t slabs_used = 0;
  std::array<std::uint32_t, Mapping::kProcessesMax> generations{};
  std::array<std::uint32_t, Mapping::kEpochs> epochs{};
  std::uint64_t limit_changes = 0;
};
static_assert(sizeof(MappingHeader) <= kPage);

namespace {

std::size_t rounded_up(std::size_t bytes, std::size_t to) noexcept {
  return (bytes + to - 1) / to * to;
}

// ---- layout -----------------------------------------------------------------------------------

struct Offsets {
  std::size_t limits = kPage;
  std::size_t slab_sizes = 0;
  std::size_t passed = 0;
  std::size_t slots = 0;
  std::size_t cells = 0;
  std::size_t slabs = 0;
  std::size_t end = 0;
};

constexpr std::size_t kGroupBytes = Table::kSlotsPerGroup * sizeof(Pair);
constexpr std::size_t kCellGroupBytes = ApproximateCells::kCellsPerGroup * sizeof(std::uint64_t);

Offsets offsets_of(const MappingSizes& sizes) noexcept {
  Offsets at;
  at.slab_sizes = at.limits + sizes.limits * sizeof(LimitRecord);
  at.passed = at.slab_sizes + sizes.slabs * sizeof(std::uint32_t);
  at.slots = rounded_up(at.passed + sizes.groups, kPage);
  at.cells = rounded_up(at.slots + sizes.groups * kGroupBytes, kPage);
  at.slabs = rounded_up(at.cells + sizes.cell_groups * kCellGroupBytes, kPage);
  at.end = at.slabs + sizes.slabs * BlockPool::kSlabBytes;
  return at;
}

MappingSizes sizes_for(std::size_t memory) noexcept {
  MappingSizes sizes{.bytes = memory};
  sizes.limits = Mapping::limits_within(memory);
  sizes.slabs = memory / kBlocksPart / BlockPool::kSlabBytes;
  sizes.cell_groups = memory / kCellsPart / kCellGroupBytes;
  const std::size_t taken = offsets_of(sizes).end + 3 * kPage;  // for rounding, each part once
  sizes.groups = Table::groups_within((memory - taken) / (kGroupBytes + 1));
  return sizes;
}

std::uint64_t checksum_of(const MappingHeader& header) noexcept {
  SipHash13 hash{{}};
  hash.append({reinterpret_cast<const char*>(&header), offsetof(MappingHeader, checksum)});
  return hash.finish().low;
}

// ---- messages ---------------------------------------------------------------------------------

std::string why(int error) { return std::generic_category().message(error); }

tl::unexpected<Diagnostic> problem(const std::string& path, std::string_view what,
                                   std::string remedy) {
  return mistake(fmt::format("state file {}: {}", sluice::quoted(path), what), std::move(remedy));
}

constexpr std::string_view kOrFresh = "or remove it, which forgets all counts";

Diagnostic too_little(std::size_t memory) {
  return {.message = fmt::format("{} bytes of memory are too few", memory),
          .remedy = fmt::format("use at least {}", Mapping::kMemoryMin)};
}

// ---- locks ------------------------------------------------------------------------------------

// Behind any data, so that no lock covers a byte of data.
constexpr off_t kLockBase = off_t{1} << 62U;
constexpr off_t kUsersByte = kLockBase;
constexpr off_t kLimitsByte = kLockBase + 1;
constexpr off_t kProcessBytes = kLockBase + 2;

struct flock lock_on(off_t byte, short type) noexcept {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

bool try_lock(int file, off_t byte, short type) noexcept {
  struct flock lock = lock_on(byte, type);
  return ::fcntl(file, F_OFD_SETLK, &lock) == 0;
}

void wait_for_lock(int file, off_t byte, short type) noexcept {
  struct flock lock = lock_on(byte, type);
  while (::fcntl(file, F_OFD_SETLKW, &lock) != 0 && errno == EINTR) {
  }
}

// ---- files ------------------------------------------------------------------------------------

std::optional<Diagnostic> check_file(const std::string& path, const struct stat& status) {
  const auto answer = [](tl::unexpected<Diagnostic> wrong) { return std::move(wrong).value(); };
  if (!S_ISREG(status.st_mode)) {
    return answer(problem(path, "is not a regular file", "give the path of a file"));
  }
  if (status.st_uid != ::geteuid()) {
    return answer(problem(
        path,
        fmt::format("belongs to user {}, this process runs as user {}", status.st_uid, ::geteuid()),
        "run as its owner, change the owner, or give another path"));
  }
  if ((status.st_mode & 077U) != 0) {
    return answer(problem(path, "can be read or written by others, and it holds a secret",
                          fmt::format("chmod 600 {}", path)));
  }
  return std::nullopt;
}

// Whether a file's header is a valid one of ours, made for the configured memory.
std::optional<Diagnostic> check_header(const std::string& path, const MappingHeader& header,
                                       std::size_t file_bytes, const MappingSizes& wanted) {
  const auto answer = [](tl::unexpected<Diagnostic> wrong) { return std::move(wrong).value(); };
  const std::string other = fmt::format("give another path, {}", kOrFresh);
  if (header.magic != kMagic) return answer(problem(path, "is not a state file of sluice", other));
  if (header.layout_version != Mapping::kLayoutVersion) {
    return answer(problem(path,
                          fmt::format("has layout version {}, this program knows {}",
                                      header.layout_version, Mapping::kLayoutVersion),
                          fmt::format("use the program that wrote it, {}", kOrFresh)));
  }
  if (header.checksum != checksum_of(header)) {
    return answer(problem(path, "its header is damaged", other));
  }
  if (header.sizes.bytes != wanted.bytes) {
    return answer(problem(path,
                          fmt::format("was made for {} bytes of memory, {} are configured",
                                      header.sizes.bytes, wanted.bytes),
                          fmt::format("configure {} bytes, {}", header.sizes.bytes, kOrFresh)));
  }
  if (!(header.sizes == wanted)) return answer(problem(path, "its header is damaged", other));
  if (file_bytes < header.sizes.bytes) {
    return answer(problem(
        path, fmt::format("is truncated: {} of {} bytes", file_bytes, header.sizes.bytes), other));
  }
  return std::nullopt;
}

// An interrupted creation leaves zeros. Reads to the end: disk images begin with zeros, too.
bool is_blank(int file) noexcept {
  std::array<char, kPage> bytes;
  for (off_t at = 0;;) {
    const ssize_t got = ::pread(file, bytes.data(), bytes.size(), at);
    if (got <= 0) return got == 0;
    const auto end = bytes.begin() + got;
    if (std::any_of(bytes.begin(), end, [](char byte) { return byte != 0; })) return false;
    at += got;
  }
}

struct Examined {
  int file;
  const std::string& path;
  bool is_alone;  // no other process uses it
};

// True if there is a table in the file, false if the file is new.
Parsed<bool> examine_file(const Examined& examined, std::size_t file_bytes,
                          const MappingSizes& wanted) {
  const std::string& path = examined.path;
  MappingHeader header;
  if (file_bytes == 0 && examined.is_alone) return false;
  const ssize_t got = ::pread(examined.file, &header, sizeof header, 0);
  if (got < 0) {
    return problem(path, fmt::format("cannot be read: {}", why(errno)), "give another path");
  }
  if (static_cast<std::size_t>(got) < sizeof header) {
    return problem(path, fmt::format("is truncated: {} bytes", file_bytes),
                   fmt::format("give another path, {}", kOrFresh));
  }
  const bool is_zero = header.magic == decltype(kMagic){};
  if (examined.is_alone && is_zero && is_blank(examined.file)) return false;
  if (auto wrong = check_header(path, header, file_bytes, wanted)) {
    return tl::unexpected(*std::move(wrong));
  }
  return true;
}

std::optional<Diagnostic> allocate(const std::string& path, int file, std::size_t bytes) {
  if (::ftruncate(file, 0) == 0) {
    const int error = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));
    if (error == 0) return std::nullopt;
    errno = error;
  }
  const int error = errno;
  (void)::ftruncate(file, 0);
  return problem(path, fmt::format("cannot be given its {} bytes: {}", bytes, why(error)),
                 "make room on the device, give a path on another one, or configure less memory")
      .value();
}

DigestSecret random_secret() {
  DigestSecret secret;
  std::size_t filled = 0;
  while (filled < sizeof secret) {
    const ssize_t got =
        ::getrandom(reinterpret_cast<char*>(&secret) + filled, sizeof secret - filled, 0);
    if (got > 0) filled += static_cast<std::size_t>(got);
  }
  return secret;
}

MappingHeader new_header(const MappingSizes& sizes) {
  MappingHeader header{.magic = kMagic,
                       .layout_version = Mapping::kLayoutVersion,
                       .sizes = sizes,
                       .secret = random_secret()};
  header.checksum = checksum_of(header);
  return header;
}

std::uint64_t boot_hash() {
  std::ifstream stream{"/proc/sys/kernel/random/boot_id"};
  std::string id;
  std::getline(stream, id);
  SipHash13 hash{{}};
  hash.append(id);
  return hash.finish().low;
}

}  // namespace

// ---- opening ----------------------------------------------------------------------------------

Parsed<Mapping> Mapping::open(const MappingOptions& options, Now now, bool discard) {
  if (options.memory < kMemoryMin) return tl::unexpected(too_little(options.memory));
  const MappingSizes sizes = sizes_for(options.memory / kPage * kPage);
  Mapping mapping;
  if (options.file.empty()) {
    if (Parsed<void> mapped = mapping.map_memory(sizes.bytes, options.pages); !mapped) {
      return tl::unexpected(std::move(mapped.error()));
    }
    mapping.header() = new_header(sizes);
    mapping.header().generations[0] = 1;
  } else if (Parsed<void> mapped = mapping.open_file(options, sizes, discard); !mapped) {
    return tl::unexpected(std::move(mapped.error()));
  }
  mapping.begin_time(now);
  return mapping;
}

Parsed<StateFileUse> inspect_state_file(const MappingOptions& options) {
  const std::string& path = options.file;
  if (options.memory < Mapping::kMemoryMin) return tl::unexpected(too_little(options.memory));
  if (auto wrong = why_not_writable(path)) return tl::unexpected(*std::move(wrong));
  const FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  if (!file && errno == ENOENT) return StateFileUse::none;
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0) {
    return problem(path, fmt::format("cannot be opened: {}", why(errno)),
                   "give a path in a directory that this user may write to");
  }
  if (auto wrong = check_file(path, status)) return tl::unexpected(*std::move(wrong));
  struct flock lock = lock_on(kUsersByte, F_WRLCK);
  const bool is_alone = ::fcntl(file.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK;
  const Parsed<bool> usable = examine_file({.file = file.get(), .path = path, .is_alone = is_alone},
                                           static_cast<std::size_t>(status.st_size),
                                           sizes_for(options.memory / kPage * kPage));
  if (!usable) return tl::unexpected(usable.error());
  return is_alone ? StateFileUse::none : StateFileUse::by_others;
}

Parsed<void> Mapping::map_memory(std::size_t bytes, Pages pages) {
  // Huge pages need their alignment, which only a larger mapping is sure to contain.
  void* const whole = ::mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (whole == MAP_FAILED) {
    return mistake(fmt::format("no {} bytes of memory for the table: {}", bytes, why(errno)),
                   "configure less memory");
  }
  auto* const start = static_cast<std::byte*>(whole);
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  std::byte* const aligned = start + (rounded_up(address, kHugePage) - address);
  const auto before = static_cast<std::size_t>(aligned - start);
  if (before > 0) ::munmap(start, before);
  if (before < kHugePage) ::munmap(aligned + bytes, kHugePage - before);
  memory_ = {aligned, bytes};
  ::madvise(aligned, bytes, pages == Pages::automatic ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return {};
}

Parsed<void> Mapping::open_file(const MappingOptions& options, const MappingSizes& sizes,
                                bool discard) {
  path_ = options.file;
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file_ < 0) {
    return problem(path_, fmt::format("cannot be opened: {}", why(errno)),
                   "give a path in a directory that this user may write to");
  }
  was_alone_ = try_lock(file_, kUsersByte, F_WRLCK);
  if (!was_alone_) wait_for_lock(file_, kUsersByte, F_RDLCK);

  struct stat status{};
  if (::fstat(file_, &status) != 0) {
    return problem(path_, fmt::format("cannot be examined: {}", why(errno)), "give another path");
  }
  if (auto wrong = check_file(path_, status)) return tl::unexpected(*std::move(wrong));
  const Parsed<bool> usable = examine(static_cast<std::size_t>(status.st_size), sizes);
  if (!usable && !options.start_fresh) return tl::unexpected(usable.error());
  if (!usable || discard) {
    if (was_alone_) return create_file(sizes, options.pages);
    return problem(path_, "cannot start fresh while other processes use it", "stop them first");
  }
  if (!*usable) return create_file(sizes, options.pages);
  if (Parsed<void> mapped = map_file(sizes.bytes, options.pages); !mapped) return mapped;
  return join();
}

Parsed<bool> Mapping::examine(std::size_t file_bytes, const MappingSizes& wanted) const {
  return examine_file({.file = file_, .path = path_, .is_alone = was_alone_}, file_bytes, wanted);
}

// The header is written at once: a process that is killed leaves zeros or a complete file.
Parsed<void> Mapping::create_file(const MappingSizes& sizes, Pages pages) {
  if (auto wrong = allocate(path_, file_, sizes.bytes)) return tl::unexpected(*std::move(wrong));
  const MappingHeader header = new_header(sizes);
  if (::pwrite(file_, &header, sizeof header, 0) != ssize_t{sizeof header}) {
    return problem(path_, fmt::format("cannot be written to: {}", why(errno)), "give another path");
  }
  if (Parsed<void> mapped = map_file(sizes.bytes, pages); !mapped) return mapped;
  return join();
}

Parsed<void> Mapping::map_file(std::size_t bytes, Pages pages) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (at == MAP_FAILED) {
    return problem(path_, fmt::format("cannot be mapped: {}", why(errno)), "configure less memory");
  }
  memory_ = {static_cast<std::byte*>(at), bytes};
  remember_mapped_file(memory_, {.what = "state file",
                                 .path = path_,
                                 .remedy = "remove it and start again, which forgets all counts"});
  if (pages == Pages::automatic) ::madvise(at, bytes, MADV_HUGEPAGE);
  return {};
}

// Registers this process as a user of the file.
Parsed<void> Mapping::join() {
  for (std::uint32_t number = 0; number < kProcessesMax; ++number) {
    if (!try_lock(file_, kProcessBytes + static_cast<off_t>(number), F_WRLCK)) continue;
    const std::atomic_ref generation{header().generations[number]};
    self_ = {.number = number, .generation = generation.fetch_add(1) + 1};
    return {};
  }
  return problem(path_, fmt::format("{} processes use it already", kProcessesMax),
                 "give the others a file of their own");
}

void Mapping::let_others_in() noexcept {
  if (file_ >= 0 && was_alone_) wait_for_lock(file_, kUsersByte, F_RDLCK);
}

bool Mapping::is_alive(Participant participant) const noexcept {
  if (participant == self_) return true;
  if (participant.number >= kProcessesMax || file_ < 0) return false;
  const std::atomic_ref generation{header().generations[participant.number]};
  if (generation.load() != participant.generation) return false;
  if (participant.number == self_.number) return false;
  struct flock lock = lock_on(kProcessBytes + static_cast<off_t>(participant.number), F_WRLCK);
  return ::fcntl(file_, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

Mapping::Mapping(Mapping&& other) noexcept
    : memory_(std::exchange(other.memory_, {})),
      path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      self_(other.self_),
      shift_(other.shift_),
      unattended_(other.unattended_),
      was_alone_(other.was_alone_) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(self_, other.self_);
  std::swap(shift_, other.shift_);
  std::swap(unattended_, other.unattended_);
  std::swap(was_alone_, other.was_alone_);
  return *this;
}

Mapping::~Mapping() {
  forget_mapped_file(memory_);
  if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
  if (file_ >= 0) ::close(file_);
}

// ---- parts ------------------------------------------------------------------------------------

MappingHeader& Mapping::header() const noexcept {
  return *reinterpret_cast<MappingHeader*>(memory_.data());
}

std::size_t Mapping::limits_within(std::size_t memory) noexcept {
  return std::clamp<std::size_t>(memory / kLimitsPart / sizeof(LimitRecord), 64, kLimitNumbers - 1);
}

std::span<LimitRecord> Mapping::limits() const noexcept {
  const MappingSizes& sizes = header().sizes;
  return {reinterpret_cast<LimitRecord*>(memory_.data() + offsets_of(sizes).limits), sizes.limits};
}

Table::Memory Mapping::table() const noexcept {
  const MappingSizes& sizes = header().sizes;
  const Offsets at = offsets_of(sizes);
  return {.slots = {reinterpret_cast<Pair*>(memory_.data() + at.slots),
                    sizes.groups * Table::kSlotsPerGroup},
          .passed = {reinterpret_cast<std::uint8_t*>(memory_.data() + at.passed), sizes.groups},
          .cells = {reinterpret_cast<std::uint64_t*>(memory_.data() + at.cells),
                    sizes.cell_groups * ApproximateCells::kCellsPerGroup}};
}

BlockPool::Slabs Mapping::slabs() const noexcept {
  const MappingSizes& sizes = header().sizes;
  const Offsets at = offsets_of(sizes);
  return {.memory = memory_.subspan(at.slabs, sizes.slabs * BlockPool::kSlabBytes),
          .sizes = {reinterpret_cast<std::uint32_t*>(memory_.data() + at.slab_sizes), sizes.slabs},
          .used = &header().slabs_used};
}

DigestSecret Mapping::secret() const noexcept { return header().secret; }

std::uint32_t Mapping::epoch(LimitNumber limit) const noexcept {
  return std::atomic_ref{header().epochs[limit % kEpochs]}.load(std::memory_order_relaxed);
}

void Mapping::raise_epoch(LimitNumber limit) noexcept {
  std::atomic_ref{header().epochs[limit % kEpochs]}.fetch_add(1, std::memory_order_release);
}

void Mapping::raise_all_epochs() noexcept {
  for (LimitNumber i = 0; i < kEpochs; ++i) raise_epoch(i);
}

// ---- time -------------------------------------------------------------------------------------

// Within one boot the monotonic clock continues by itself. After a reboot stored time continues
// from its last value, by as much as the wall clock advanced; a wall clock that went back adds
// nothing.
void Mapping::begin_time(Now now) noexcept {
  MappingHeader& head = header();
  const std::uint64_t boot = boot_hash();
  const Pair before = load16(&head.boot);
  const Pair seen = load16(&head.last_seen);
  const bool is_new = before.key == 0 && seen.key == 0;
  if (was_alone_ && before.key != boot) {
    const std::int64_t wall = now.wall().time_since_epoch().count();
    const std::int64_t passed =
        std::max<std::int64_t>(wall - static_cast<std::int64_t>(seen.key), 0);
    const std::int64_t mono = now.mono.time_since_epoch().count();
    const std::int64_t shift = is_new ? 0 : static_cast<std::int64_t>(seen.state) + passed - mono;
    (void)exchange16(&head.boot, before, {.key = boot, .state = static_cast<std::uint64_t>(shift)});
  }
  shift_ = Nanos{static_cast<std::int64_t>(load16(&head.boot).state)};
  std::int64_t since = 0;
  const bool known = !__builtin_sub_overflow(stored(now).mono.time_since_epoch().count(),
                                             static_cast<std::int64_t>(seen.state), &since);
  if (was_alone_ && !is_new && known) unattended_ = std::max(Nanos{since}, Nanos{0});
  remember_time(now);
}

void Mapping::remember_time(Now now) noexcept {
  Pair& last = header().last_seen;
  const Pair seen{.key = static_cast<std::uint64_t>(now.wall().time_since_epoch().count()),
                  .state = static_cast<std::uint64_t>(stored(now).mono.time_since_epoch().count())};
  while (!exchange16(&last, load16(&last), seen)) {
  }
}

// ---- limits, pages ----------------------------------------------------------------------------

Mapping::LimitsLock::LimitsLock(const Mapping& mapping) noexcept : file_(mapping.file_) {
  if (file_ >= 0) wait_for_lock(file_, kLimitsByte, F_WRLCK);
}

Mapping::LimitsLock::~LimitsLock() {
  if (file_ >= 0) (void)try_lock(file_, kLimitsByte, F_UNLCK);
}

std::uint64_t Mapping::limit_changes() const noexcept {
  return std::atomic_ref{header().limit_changes}.load(std::memory_order_acquire);
}

std::uint64_t Mapping::raise_limit_changes() const noexcept {
  return std::atomic_ref{header().limit_changes}.fetch_add(1, std::memory_order_acq_rel) + 1;
}

std::size_t Mapping::fault_in(std::size_t first, std::size_t bytes) const noexcept {
  const std::size_t last = std::min(first + bytes, memory_.size());
  if (first >= last) return memory_.size();
#ifdef MADV_POPULATE_WRITE
  if (::madvise(memory_.data() + first, last - first, MADV_POPULATE_WRITE) == 0) return last;
#endif
  for (std::size_t at = first; at < last; at += kPage) {
    std::atomic_ref{*reinterpret_cast<std::uint8_t*>(memory_.data() + at)}.fetch_or(0);
  }
  return last;
}

std::size_t Mapping::huge_page_bytes() const {
  std::ifstream stream{"/proc/self/smaps"};
  const auto first = reinterpret_cast<std::uintptr_t>(memory_.data());
  std::size_t kilobytes = 0;
  bool ours = false;
  for (std::string line; std::getline(stream, line);) {
    std::uintptr_t start = 0;
    std::uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &start, &end) == 2) {
      ours = start < first + memory_.size() && end > first;
      continue;
    }
    std::size_t found = 0;
    const bool huge = std::sscanf(line.c_str(), "AnonHugePages: %zu kB", &found) == 1 ||
                      std::sscanf(line.c_str(), "ShmemPmdMapped: %zu kB", &found) == 1 ||
                      std::sscanf(line.c_str(), "FilePmdMapped: %zu kB", &found) == 1;
    if (ours && huge) kilobytes += found;
  }
  return kilobytes * 1024;
}

}  // namespace sluice::store
