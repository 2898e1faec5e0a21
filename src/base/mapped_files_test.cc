#include "base/mapped_files.h"

#include "base/file_descriptor.h"
#include "support/child.h"
#include "support/temp_folder.h"

#include <gtest/gtest.h>

#include <barrier>
#include <csignal>
#include <cstddef>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace sluice {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kThreads = 8;

// Maps a file, truncates it, and touches it in as many threads at once. Does not return.
int touch_what_is_gone(const std::string& path) {
  const FileDescriptor file{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  if (::ftruncate(file.get(), kPage * kThreads) != 0) return 1;
  void* const memory =
      ::mmap(nullptr, kPage * kThreads, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return 1;
  auto* const bytes = static_cast<volatile char*>(memory);
  remember_mapped_file({static_cast<const std::byte*>(memory), kPage * kThreads},
                       {.what = "state file", .path = path, .remedy = "start again"});
  explain_lost_files();
  if (::ftruncate(file.get(), 0) != 0) return 1;
  std::barrier all{static_cast<std::ptrdiff_t>(kThreads)};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&all, bytes, i] {
      all.arrive_and_wait();
      bytes[i * kPage] = 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return 2;  // it should not have come that far
}

// All workers meet the fault at about the same time: none ends the process in the middle of what
// another says.
TEST(MappedFiles, AFileThatIsGoneIsNamedInOneWholeLineHoweverManyThreadsTouchIt) {
  const testing::TempFolder folder;
  const std::string path = folder.file("state");
  for (int round = 0; round < 20; ++round) {
    const auto end = testing::end_of_child([&] { return touch_what_is_gone(path); });
    EXPECT_TRUE(end.is_by(SIGBUS)) << end.status;
    ASSERT_EQ(end.said, "sluice: state file '" + path +
                            "': it was truncated, or its device failed, while it was in use; "
                            "start again\n")
        << "round " << round;
  }
}

// As without the handler: there is nothing to say.
TEST(MappedFiles, AFaultElsewhereEndsTheProcessWithoutAWord) {
  const auto end = testing::end_of_child([] {
    explain_lost_files();
    (void)::raise(SIGBUS);
    return 2;
  });
  EXPECT_TRUE(end.is_by(SIGBUS)) << end.status;
  EXPECT_EQ(end.said, "");
}

}  // namespace
}  // namespace sluice
