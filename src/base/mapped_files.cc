#include "base/mapped_files.h"

#include <algorithm>
#include <array>
#include <atomic>
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

void write_error(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// The default action is back in place by now: the access that failed is repeated when this returns,
// and ends the process.
void explain_fault(int /*signal*/, siginfo_t* info, void* /*context*/) noexcept {
  const RememberedFile* const file = remembered_at(address_of(info->si_addr));
  if (file == nullptr) return;
  write_error("sluice: ");
  write_error(file->what);
  write_error(" '");
  write_error(file->path.data());
  write_error("': it was truncated, or its device failed, while it was in use; ");
  write_error(file->remedy);
  write_error("\n");
}

}  // namespace

void explain_lost_files() noexcept {
  struct sigaction action{};
  action.sa_sigaction = explain_fault;
  action.sa_flags = SA_SIGINFO | static_cast<int>(SA_RESETHAND);
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
