// One limiter under several loads, as JSON lines: the program that compare.py runs for each of
// them.
//
// Every subject keeps a bucket of 100 per hour for each of N string keys, so that every key is in
// debt and has to be remembered. Keys are made outside of the measured time, in pieces that fit
// into the first-level cache, as a request's bytes would be; hashing them is inside. Time is
// virtual and advances with the requests: no subject pays for a clock. What is measured is the
// thread's own processor time.
//
// Huge pages for the others come from malloc: GLIBC_TUNABLES=glibc.malloc.hugetlb=1.

#include "base/digest.h"
#include "store/local/local_store.h"
#include "store/local/table_impl.h"

#include <fmt/format.h>

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <linux/perf_event.h>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <tbb/concurrent_hash_map.h>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace {

using namespace sluice;

constexpr std::size_t kPiece = 512;  // keys that are made, then decided
constexpr std::size_t kKeyBytes = 16;
constexpr std::int64_t kStep = 200;  // ns of virtual time between two requests
constexpr double kBurst = 100;
constexpr double kPerNano = 100.0 / 3600e9;

struct Options {
  std::string subject;
  std::size_t keys = 10'000'000;
  double seconds = 1.0;
  unsigned threads = 1;
  double load = 0.6;
  std::string only;  // one of the loads
  bool small_pages = false;
  bool fill = false;  // only fill the table and say what that forgave
};

// ---- subjects ---------------------------------------------------------------------------------

// What everybody writes first: tokens and when they were counted, in floating point.
struct Bucket {
  double tokens = kBurst;
  double counted_at = 0;

  bool take(double now) {
    tokens = std::min(kBurst, tokens + (now - counted_at) * kPerNano);
    counted_at = now;
    if (tokens < 1) return false;
    tokens -= 1;
    return true;
  }
};

struct MutexMap {
  explicit MutexMap(const Options& options) { map.reserve(options.keys); }
  [[gnu::always_inline]] bool take(std::string_view key, std::int64_t now) {
    const std::lock_guard guard{mutex};
    return map.try_emplace(std::string{key}).first->second.take(static_cast<double>(now));
  }
  std::mutex mutex;
  std::unordered_map<std::string, Bucket> map;
};

struct FlatMap {
  explicit FlatMap(const Options& options) { map.reserve(options.keys); }
  [[gnu::always_inline]] bool take(std::string_view key, std::int64_t now) {
    const std::lock_guard guard{mutex};
    return map.try_emplace(absl::string_view{key.data(), key.size()})
        .first->second.take(static_cast<double>(now));
  }
  std::mutex mutex;
  absl::flat_hash_map<std::string, Bucket> map;
};

struct TbbMap {
  explicit TbbMap(const Options& options) : map(options.keys) {}
  [[gnu::always_inline]] bool take(std::string_view key, std::int64_t now) {
    Map::accessor found;
    map.insert(found, std::string{key});
    return found->second.take(static_cast<double>(now));
  }
  using Map = tbb::concurrent_hash_map<std::string, Bucket>;
  Map map;
};

struct SluiceTable {
  // Memory such that the keys fill `load` of the slots.
  static std::size_t memory_for(const Options& options) {
    const double slots = static_cast<double>(options.keys) / options.load;
    const double share = 1 - 1.0 / store::kLimitsPart - 1.0 / store::kBlocksPart;
    return static_cast<std::size_t>(slots * 16.125 / share);
  }

  explicit SluiceTable(const Options& options) {
    auto opened = store::LocalStore::open(
        {.mapping = {.memory = memory_for(options),
                     .pages = options.small_pages ? store::Pages::small : store::Pages::automatic}},
        at(0));
    table = std::move(opened.value());
    hour = table->use({.algorithm = Algorithm::token_bucket, .amount = 100, .period = kHour}, at(0))
               .value();
    day = table
              ->use({.algorithm = Algorithm::token_bucket, .amount = 1000, .period = 24 * kHour},
                    at(0))
              .value();
    week = table->use({.algorithm = Algorithm::gcra, .amount = 5000, .period = 168 * kHour}, at(0))
               .value();
    hasher.emplace(KeyDigest{table->secret()}, std::uint8_t{1});
  }
  static Now at(std::int64_t now) {
    return {.mono = MonoTime{Nanos{now}}, .wall_offset = Nanos{1'700'000'000'000'000'000}};
  }
  [[gnu::always_inline]] bool take(std::string_view key, std::int64_t now) {
    const store::Check check{.key = {.low = hasher->low(key)}, .limit = hour};
    return table->admits(check, at(now));
  }
  // With all that there is to say: what remains, when it is reset, when to come back.
  bool take_answered(std::string_view key, std::int64_t now) {
    table->decide({.key = {.low = hasher->low(key)}, .limit = hour}, at(now), answers[0]);
    return answers[0].decision.allowed();
  }
  void take_batch(std::span<const std::string_view> keys, std::int64_t now) {
    constexpr std::size_t kAtOnce = 16;
    std::array<std::array<std::uint64_t, kAtOnce>, 2> digests;
    std::size_t ready = 0;
    store::Answer answer;
    const auto prepare = [&](std::size_t from, std::array<std::uint64_t, kAtOnce>& into) {
      const std::size_t count = std::min(kAtOnce, keys.size() - from);
      hasher->batch_low(keys.subspan(from, count), std::span{into}.first(count));
      for (std::size_t i = 0; i < count; ++i) table->prefetch({.low = into[i]});
      return count;
    };
    ready = prepare(0, digests[0]);
    for (std::size_t from = 0, turn = 0; from < keys.size(); turn ^= 1U) {
      const std::size_t next = from + ready;
      const std::size_t then = next < keys.size() ? prepare(next, digests[turn ^ 1U]) : 0;
      for (std::size_t i = 0; i < ready; ++i) {
        table->decide({.key = {.low = digests[turn][i]}, .limit = hour}, at(now), answer);
        sum += answer.decision.remaining;
      }
      from = next;
      ready = then;
    }
  }
  // Three limits of one request, each with a line of its own.
  bool take_three(std::string_view key, std::int64_t now) {
    const std::uint64_t of = hasher->low(key);
    const std::array<store::Check, 3> checks{
        store::Check{.key = {.low = of}, .limit = hour},
        store::Check{.key = mixed(of, 0x9e3779b97f4a7c15ULL), .limit = day},
        store::Check{.key = mixed(of, 0xc2b2ae3d27d4eb4fULL), .limit = week}};
    return table->decide_all(checks, at(now), answers);
  }
  // Limits of one request that concern the same client share the digest of that client.
  static Digest mixed(std::uint64_t low, std::uint64_t salt) { return {.low = low ^ salt}; }

  static constexpr Nanos kHour = std::chrono::hours{1};
  std::unique_ptr<store::LocalStore> table;
  std::optional<KeyHasher> hasher;
  store::LimitNumber hour = 0;
  store::LimitNumber day = 0;
  store::LimitNumber week = 0;
  std::array<store::Answer, 3> answers;
  std::uint64_t sum = 0;
};

// ---- loads ------------------------------------------------------------------------------------

std::uint64_t scrambled(std::uint64_t x) {
  x = (x ^ (x >> 31U)) * 0x7fb5d329728ea185ULL;
  x = (x ^ (x >> 27U)) * 0x81dadef4bc2dd44dULL;
  return x ^ (x >> 33U);
}

struct Source {
  std::uint64_t state;
  std::uint64_t next() {
    state += 0x9e3779b97f4a7c15ULL;
    return scrambled(state);
  }
  double unit() { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }
};

using Chooser = std::function<std::uint64_t(Source&)>;

Chooser uniform(std::size_t keys) {
  return [keys](Source& source) { return source.next() % keys; };
}

Chooser hot() {
  return [](Source&) { return std::uint64_t{0}; };
}

// Zipf with exponent 0.99, after Gray and others: "Quickly generating billion-record databases".
Chooser zipf(std::size_t keys) {
  constexpr double kTheta = 0.99;
  double zeta = 0;
  for (std::size_t i = 1; i <= keys; ++i) zeta += std::pow(static_cast<double>(i), -kTheta);
  const auto n = static_cast<double>(keys);
  const double alpha = 1 / (1 - kTheta);
  const double eta = (1 - std::pow(2 / n, 1 - kTheta)) / (1 - (1 + std::pow(0.5, kTheta)) / zeta);
  return [=](Source& source) -> std::uint64_t {
    const double u = source.unit();
    const double uz = u * zeta;
    if (uz < 1) return 0;
    if (uz < 1 + std::pow(0.5, kTheta)) return scrambled(1) % keys;
    const double rank = n * std::pow(eta * u - eta + 1, alpha);
    return scrambled(static_cast<std::uint64_t>(rank)) % keys;
  };
}

// Keys of one piece: "u" and the number in hexadecimal.
struct Piece {
  std::array<std::array<char, kKeyBytes>, kPiece> text;
  std::array<std::string_view, kPiece> keys;

  void fill(Source& source, const Chooser& choose) {
    for (std::size_t i = 0; i < kPiece; ++i) write(i, choose(source));
  }
  void write(std::size_t i, std::uint64_t number) {
    text[i].fill('0');
    text[i][0] = 'u';
    for (std::size_t digit = kKeyBytes - 1; number > 0; --digit, number >>= 4U) {
      text[i][digit] = "0123456789abcdef"[number & 15U];
    }
    keys[i] = {text[i].data(), kKeyBytes};
  }
};

// ---- measuring --------------------------------------------------------------------------------

// Of this thread's own time: others may use the machine meanwhile.
double now_nanos() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

// Misses of the last-level cache, where the machine counts them.
class CacheMisses {
 public:
  CacheMisses() {
    perf_event_attr attributes{};
    attributes.type = PERF_TYPE_HARDWARE;
    attributes.size = sizeof attributes;
    attributes.config = PERF_COUNT_HW_CACHE_MISSES;
    attributes.exclude_kernel = 1;
    file_ = static_cast<int>(::syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
  }
  ~CacheMisses() {
    if (file_ >= 0) ::close(file_);
  }
  CacheMisses(const CacheMisses&) = delete;
  CacheMisses& operator=(const CacheMisses&) = delete;

  [[nodiscard]] std::optional<std::uint64_t> read() const {
    std::uint64_t count = 0;
    if (file_ < 0 || ::read(file_, &count, sizeof count) != sizeof count) return std::nullopt;
    return count;
  }

 private:
  int file_ = -1;
};

std::size_t resident_bytes() {
  std::ifstream stream{"/proc/self/statm"};
  std::size_t whole = 0;
  std::size_t resident = 0;
  stream >> whole >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

std::atomic<std::int64_t> virtual_now{1'000'000'000'000'000};

// Runs pieces on all threads for a while; answers ns of one thread's time per decision.
template <class Decide>
void measure(const Options& options, const char* load, const char* mode, const Chooser& choose,
             Decide decide) {
  if (!options.only.empty() && options.only != load) return;
  std::vector<double> nanos(options.threads);
  std::vector<std::uint64_t> decided(options.threads);
  std::vector<std::optional<std::uint64_t>> missed(options.threads);
  std::barrier start{static_cast<std::ptrdiff_t>(options.threads)};
  const auto work = [&](unsigned thread) {
    Source source{.state = (thread + 1) * 7919 + std::hash<std::string_view>{}(load)};
    auto piece = std::make_unique<Piece>();
    const CacheMisses misses;
    std::uint64_t counted = 0;
    start.arrive_and_wait();
    while (nanos[thread] < options.seconds * 1e9) {
      piece->fill(source, choose);
      const std::int64_t now = virtual_now.fetch_add(kPiece * kStep);
      const auto before = misses.read();
      const double began = now_nanos();
      decide(*piece, now);
      nanos[thread] += now_nanos() - began;
      if (before) counted += *misses.read() - *before;
      decided[thread] += kPiece;
    }
    if (misses.read()) missed[thread] = counted;
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 1; i < options.threads; ++i) threads.emplace_back(work, i);
  work(0);
  threads.clear();
  double spent = 0;
  double decisions = 0;
  double misses = 0;
  for (unsigned i = 0; i < options.threads; ++i) {
    spent += nanos[i];
    decisions += static_cast<double>(decided[i]);
    misses += static_cast<double>(missed[i].value_or(0));
  }
  fmt::print(R"({{"load":"{}","mode":"{}","threads":{},"ns":{:.2f},"misses":{}}})"
             "\n",
             load, mode, options.threads, spent / decisions,
             missed[0] ? fmt::format("{:.3f}", misses / decisions) : "null");
  std::fflush(stdout);
}

template <class Subject>
void run(const Options& options) {
  const std::size_t before = resident_bytes();
  auto subject = std::make_unique<Subject>(options);
  auto piece = std::make_unique<Piece>();
  for (std::size_t key = 0; key < options.keys;) {
    for (std::size_t i = 0; i < kPiece; ++i) piece->write(i, std::min(key++, options.keys - 1));
    for (const std::string_view one : piece->keys) subject->take(one, virtual_now);
  }
  const auto per_key =
      static_cast<double>(resident_bytes() - before) / static_cast<double>(options.keys);
  fmt::print(R"({{"bytes_per_key":{:.1f}}})"
             "\n",
             per_key);

  const auto one_by_one = [&](Piece& keys, std::int64_t now) {
    for (const std::string_view key : keys.keys) subject->take(key, now += kStep);
  };
  const Chooser any = uniform(options.keys);
  const Chooser skewed = zipf(options.keys);
  for (const auto& [load, choose] : {std::pair{"uniform", any}, {"zipf", skewed}, {"hot", hot()}}) {
    measure(options, load, "one", choose, one_by_one);
    if constexpr (std::is_same_v<Subject, SluiceTable>) {
      measure(options, load, "batch", choose,
              [&](Piece& keys, std::int64_t now) { subject->take_batch(keys.keys, now); });
    }
  }
  if constexpr (std::is_same_v<Subject, SluiceTable>) {
    // A third of the keys, with three limits each: as many states as before.
    subject.reset();
    subject = std::make_unique<Subject>(options);
    for (std::size_t key = 0; key < options.keys / 3;) {
      for (std::size_t i = 0; i < kPiece; ++i) piece->write(i, key++);
      for (const std::string_view one : piece->keys) subject->take_three(one, virtual_now);
    }
    const Chooser third = uniform(options.keys / 3);
    measure(options, "uniform_third", "one", third, one_by_one);
    measure(options, "uniform_third", "answered", third, [&](Piece& keys, std::int64_t now) {
      for (const std::string_view key : keys.keys) subject->take_answered(key, now += kStep);
    });
    measure(options, "uniform_third", "three", third, [&](Piece& keys, std::int64_t now) {
      for (const std::string_view key : keys.keys) subject->take_three(key, now += kStep);
    });
    const store::LocalStoreStatus status = subject->table->status();
    fmt::print(R"({{"inserted":{},"evicted":{},"approximated":{},"huge_page_bytes":{},"bytes":{}}})"
               "\n",
               status.counters.inserted, status.counters.evicted, status.counters.approximated,
               status.huge_page_bytes, status.bytes);
  }
}

// Everybody who comes owes something, so that no slot is free before its time.
void fill(const Options& options) {
  SluiceTable subject{options};
  auto piece = std::make_unique<Piece>();
  for (std::size_t key = 0; key < options.keys;) {
    for (std::size_t i = 0; i < kPiece; ++i) piece->write(i, key++);
    for (const std::string_view one : piece->keys) (void)subject.take(one, virtual_now);
  }
  const store::LocalStoreStatus status = subject.table->status();
  // Keys that lost their slot, or found none.
  const auto forgave = static_cast<double>(status.counters.evicted + status.counters.approximated);
  const auto keys = static_cast<double>(options.keys);
  fmt::print(R"({{"forgave":{:.8f},"bytes_per_key":{:.2f}}})"
             "\n",
             forgave / keys, static_cast<double>(status.bytes) / keys);
}

int usage() {
  fmt::print(stderr,
             "usage: table_bench sluice|mutex_map|flat_map|tbb [--keys N] [--seconds S] "
             "[--threads T] [--load L] [--only LOAD] [--fill] [--small-pages]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (argc < 2) return usage();
  options.subject = argv[1];
  for (int i = 2; i < argc; ++i) {
    const std::string_view name = argv[i];
    const bool has_value = i + 1 < argc;
    if (name == "--small-pages")
      options.small_pages = true;
    else if (name == "--fill")
      options.fill = true;
    else if (name == "--keys" && has_value)
      options.keys = std::stoul(argv[++i]);
    else if (name == "--seconds" && has_value)
      options.seconds = std::stod(argv[++i]);
    else if (name == "--threads" && has_value)
      options.threads = static_cast<unsigned>(std::stoul(argv[++i]));
    else if (name == "--only" && has_value)
      options.only = argv[++i];
    else if (name == "--load" && has_value)
      options.load = std::stod(argv[++i]);
    else
      return usage();
  }
  if (options.small_pages) ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  if (options.fill)
    fill(options);
  else if (options.subject == "sluice")
    run<SluiceTable>(options);
  else if (options.subject == "mutex_map")
    run<MutexMap>(options);
  else if (options.subject == "flat_map")
    run<FlatMap>(options);
  else if (options.subject == "tbb")
    run<TbbMap>(options);
  else
    return usage();
  return 0;
}
