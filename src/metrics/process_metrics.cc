#include "metrics/process_metrics.h"

#include "base/read_file.h"
#include "base/text.h"

#include <ctime>
#include <filesystem>
#include <string>
#include <sys/resource.h>
#include <system_error>
#include <unistd.h>

namespace sluice::metrics {
namespace {

constexpr Metric kCpu{.name = "process_cpu_seconds_total",
                      .help = "Processor time that this process has used, in all threads."};
constexpr Metric kResident{
    .name = "process_resident_memory_bytes", .kind = Kind::gauge, .help = "Memory that is in use."};
constexpr Metric kVirtual{.name = "process_virtual_memory_bytes",
                          .kind = Kind::gauge,
                          .help = "Memory that is mapped, in use or not."};
constexpr Metric kOpenFiles{
    .name = "process_open_fds", .kind = Kind::gauge, .help = "Files and sockets that are open."};
constexpr Metric kMaxFiles{
    .name = "process_max_fds", .kind = Kind::gauge, .help = "Files and sockets that may be open."};
constexpr Metric kStart{.name = "process_start_time_seconds",
                        .kind = Kind::gauge,
                        .help = "When this process began, in seconds since 1970."};
constexpr Metric kBuild{.name = "sluice_build_info",
                        .kind = Kind::info,
                        .help = "Which build of Sluice this is; always 1.",
                        .labels = {"version", "revision"}};

constexpr std::size_t kProcFileMax = 1U << 20U;

// The word of that place, counted from 0; empty: there are not as many.
std::string_view word_at(std::string_view text, std::size_t place) noexcept {
  constexpr std::string_view kBlanks = " \n";
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
    if (place-- == 0 || word.empty()) return word;
    text.remove_prefix(word.size());
  }
}

double number_at(std::string_view text, std::size_t place) noexcept {
  return static_cast<double>(parse_number(word_at(text, place)).value_or(0));
}

std::string content_of(const char* path) {
  return sluice::read_file(path, kProcFileMax).value_or(std::string{});
}

double cpu_seconds() noexcept {
  timespec used{};
  if (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

// In pages: mapped, resident, ...
double memory_bytes(std::size_t place) {
  return number_at(content_of("/proc/self/statm"), place) *
         static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double open_files() {
  double count = 0;
  std::error_code failed;
  std::filesystem::directory_iterator at{"/proc/self/fd", failed};
  for (; !failed && at != std::filesystem::directory_iterator{}; at.increment(failed)) ++count;
  return count > 0 ? count - 1 : 0;  // without the one that lists them
}

double max_files() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return static_cast<double>(limit.rlim_cur);
}

// Ticks since the machine started, and when that was.
double start_time_seconds() {
  constexpr std::size_t kStartTicks = 19;  // behind the name, which may hold blanks
  const std::string stat = content_of("/proc/self/stat");
  const std::size_t behind_name = stat.rfind(')');
  if (behind_name == std::string::npos) return 0;
  const double ticks = number_at(std::string_view{stat}.substr(behind_name + 1), kStartTicks);
  const std::string system = content_of("/proc/stat");
  constexpr std::string_view kBootLine = "\nbtime ";
  const std::size_t boot = system.find(kBootLine);
  if (boot == std::string::npos) return 0;
  const double boot_seconds =
      number_at(std::string_view{system}.substr(boot + kBootLine.size()), 0);
  return boot_seconds + ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

void collect_process(Registry& registry) {
  registry.collect(kCpu, {}, cpu_seconds);
  registry.collect(kResident, {}, [] { return memory_bytes(1); });
  registry.collect(kVirtual, {}, [] { return memory_bytes(0); });
  registry.collect(kOpenFiles, {}, open_files);
  registry.collect(kMaxFiles, {}, max_files);
  registry.collect(kStart, {}, [start = start_time_seconds()] { return start; });
}

void show_build(Registry& registry, const Build& build) {
  registry.gauge(kBuild, {build.version, build.revision}).set(0, 1);
}

}  // namespace sluice::metrics
