#include "base/mapped_files.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <unistd.h>

namespace sluice {
namespace {

// All that the signal handler reads, of a fixed size; the rest is valid while `first` is set.
struct RememberedFile {
  std::atomic<std::uintptr_t> first{0};
  std::atomic<bool> taken{false};
  std::size_t bytes = 0;
  const char* what = "";
  const char* remedy = "";
  std::array<char, 1024> path{};
};
std::array<RememberedFile, 8> remembered_files;

std::uintptr_t address_of(const void* memory) noexcept {
  return reinterpret_cast<std::uintptr_t>(memory);
}

const RememberedFile* remembered_at(std::uintptr_t address) noexcept {
  for (const RememberedFile& file : remembered_files) {
    const std::uintptr_t first = file.first.load(std::memory_order_acquire);
    if (first != 0 && address >= first && address - first < file.bytes) return &file;
  }
  return nullptr;
}

// One line in one write: parts of it would mingle with what other threads say.
void write_fault(const RememberedFile& file) noexcept {
  constexpr std::string_view kWhy =
      "': it was truncated, or its device failed, while it was in use; ";
  std::array<char, 2048> line;
  std::size_t size = 0;
  for (const std::string_view part :
       {std::string_view{"sluice: "}, std::string_view{file.what}, std::string_view{" '"},
        std::string_view{file.path.data()}, kWhy, std::string_view{file.remedy},
        std::string_view{"\n"}}) {
    size += part.copy(line.data() + size, line.size() - size);
  }
  ssize_t written = 0;
  do {
    written = ::write(STDERR_FILENO, line.data(), size);
  } while (written < 0 && errno == EINTR);
}

// Several threads may meet the fault at once. The first one speaks and ends the process; if the
// others went on they would end it in the middle of the line.
std::atomic_flag is_explained;

// The signal is blocked in here: the one that is raised takes effect when this returns.
void explain_fault(int signal, siginfo_t* info, void* /*context*/) noexcept {
  while (is_explained.test_and_set()) ::pause();
  const RememberedFile* const file = remembered_at(address_of(info->si_addr));
  if (file != nullptr) write_fault(*file);
  (void)::signal(signal, SIG_DFL);
  (void)::raise(signal);
}

}  // namespace

void explain_lost_files() noexcept {
  struct sigaction action{};
  action.sa_sigaction = explain_fault;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  (void)::sigaction(SIGBUS, &action, nullptr);
}

void remember_mapped_file(std::span<const std::byte> memory, const MappedFile& file) noexcept {
  for (RememberedFile& one : remembered_files) {
    if (file.path.size() >= one.path.size() || one.taken.exchange(true)) continue;
    one.bytes = memory.size();
    one.what = file.what;
    one.remedy = file.remedy;
    *std::copy(file.path.begin(), file.path.end(), one.path.begin()) = '\0';
    one.first.store(address_of(memory.data()), std::memory_order_release);
    return;
  }
}

void forget_mapped_file(std::span<const std::byte> memory) noexcept {
  for (RememberedFile& one : remembered_files) {
    if (memory.empty() || one.first.load() != address_of(memory.data())) continue;
    one.first.store(0);
    one.taken.store(false);
    return;
  }
}

}  // namespace sluice
