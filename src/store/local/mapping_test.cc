// State files that cannot be used: each is refused with words that help, and stays as it was.

#include "store/local/mapping.h"

#include "base/mapped_files.h"
#include "store/local/state_file_test.h"
#include "support/child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace sluice::store {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::in_child;
using testing::TempFolder;

using Words = std::vector<std::string>;

class StateFile : public ::testing::Test {
 protected:
  // A file in which a key has 7 of 10 left.
  void make() {
    const std::unique_ptr<LocalStore> store = open_file(file_);
    charge_of_ten(*store, 3);
  }

  // Refused, with these words and the file's name, and not a byte of the file is different.
  void expect_refused(const Words& words, bool start_fresh = false,
                      std::size_t memory = Mapping::kMemoryMin) const {
    const std::string before = bytes_of(file_);
    const auto store = try_open(file_, start_fresh, {}, memory);
    ASSERT_FALSE(store);
    const std::string text = store.error().text();
    EXPECT_THAT(text, HasSubstr("state file '" + file_ + "'"));
    EXPECT_FALSE(store.error().remedy.empty()) << text;
    for (const std::string& word : words) EXPECT_THAT(text, HasSubstr(word));
    EXPECT_TRUE(bytes_of(file_) == before) << "after: " << text;
  }

  // Starting fresh is offered, and does what it says.
  void expect_fresh_start(std::size_t memory = Mapping::kMemoryMin) const {
    auto store = try_open(file_, true, {}, memory);
    ASSERT_TRUE(store) << store.error().text();
    EXPECT_EQ(left_of_ten(**store), 10U);
  }

  TempFolder folder_;
  std::string file_ = folder_.file("state");
};

const Words kMayStartFresh{"or remove it, which forgets all counts"};

Words fresh_and(const std::string& word) { return {word, kMayStartFresh.front()}; }

// ---- what is there is not a file of ours
// ---------------------------------------------------------

TEST_F(StateFile, MayNotExistYetOrBeEmpty) {
  EXPECT_EQ(left_of_ten(*open_file(file_)), 10U);
  write_file(folder_.file("empty"), "");
  EXPECT_EQ(left_of_ten(*open_file(folder_.file("empty"))), 10U);
}

TEST_F(StateFile, IsReadableByItsOwnerOnly) {
  make();
  struct stat status{};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(StateFile, InAFolderThatIsMissingIsRefused) {
  file_ = folder_.file("missing/state");
  expect_refused({"cannot be opened: No such file or directory", "a directory that this user may"});
  expect_refused({"cannot be opened"}, true);
}

TEST_F(StateFile, BelowAFileIsRefused) {
  write_file(folder_.file("plain"), "text");
  file_ = folder_.file("plain/state");
  expect_refused({"cannot be opened: Not a directory", "a directory that this user may write to"});
  EXPECT_EQ(bytes_of(folder_.file("plain")), "text");
}

TEST_F(StateFile, ThatMayNotBeWrittenToIsRefused) {
  make();
  ::chmod(file_.c_str(), 0400);
  if (::geteuid() != 0) return expect_refused({"cannot be opened: Permission denied"});
  // Root may write to every file, so a child becomes somebody else.
  constexpr ::uid_t kNobody = 65'534;
  ASSERT_EQ(::chmod(std::filesystem::path{file_}.parent_path().c_str(), 0755), 0);
  ASSERT_EQ(::chown(file_.c_str(), kNobody, kNobody), 0);
  const auto refused = testing::in_child([this] {
    if (::setresuid(kNobody, kNobody, kNobody) != 0) return 2;
    const auto store = try_open(file_);
    return !store && store.error().message.ends_with("cannot be opened: Permission denied") ? 0 : 1;
  });
  EXPECT_EQ(refused, 0);
}

TEST_F(StateFile, ThatIsADirectoryIsRefused) {
  std::filesystem::create_directory(file_);
  expect_refused({"cannot be opened: Is a directory"});
  expect_refused({"cannot be opened: Is a directory"}, true);
  EXPECT_TRUE(std::filesystem::is_directory(file_));
}

TEST_F(StateFile, ThatIsAPipeOrALinkIsRefused) {
  const std::string target = folder_.file("target");
  write_file(target, "precious");
  std::filesystem::create_symlink(target, file_);
  EXPECT_FALSE(try_open(file_, true));
  EXPECT_EQ(bytes_of(target), "precious");

  file_ = folder_.file("pipe");
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  const auto store = try_open(file_, true);
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().text(), AllOf(HasSubstr(file_), HasSubstr("is not a regular file")));
}

TEST_F(StateFile, OfSomebodyElseIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  make();
  ASSERT_EQ(::chown(file_.c_str(), 65'534, 65'534), 0);
  expect_refused({"belongs to user 65534, this process runs as user 0", "change the owner"});
  expect_refused({"belongs to user 65534"}, true);
}

TEST_F(StateFile, ThatOthersCanReadIsRefused) {
  make();
  for (const mode_t mode : {0644U, 0640U, 0620U, 0602U, 0601U}) {
    ::chmod(file_.c_str(), mode);
    expect_refused({"can be read or written by others", "chmod 600 " + file_});
    expect_refused({"chmod 600 " + file_}, true);
  }
  ::chmod(file_.c_str(), 0600);
  EXPECT_EQ(left_of_ten(*open_file(file_)), 7U);
}

// ---- what is in it cannot be used
// ----------------------------------------------------------------

TEST_F(StateFile, WithSomethingElseInItIsRefused) {
  for (const std::size_t length : {2'000U, 5'000'000U}) {
    std::string text = "notes that somebody needs\n";
    text.resize(length, '.');
    write_file(file_, text);
    expect_refused(fresh_and("is not a state file of sluice"));
  }
  expect_fresh_start();
}

// Images of disks and tapes begin with zeros, as does a file whose creation was interrupted.
TEST_F(StateFile, WithSomethingElseBehindZerosIsRefused) {
  for (const std::size_t zeros : {4'096U, 32'768U, 2'097'151U, 3'000'000U}) {
    write_file(file_, std::string(zeros, '\0') + "CD001");
    expect_refused(fresh_and("is not a state file of sluice"));
  }
  write_file(file_, std::string(Mapping::kMemoryMin, '\0'));
  EXPECT_EQ(left_of_ten(*open_file(file_)), 10U);
}

TEST_F(StateFile, ThatIsTruncatedIsRefused) {
  make();
  for (const std::size_t length :
       {2'097'151U, 1'000'000U, 4'097U, 4'096U, 1'500U, 1'000U, 80U, 72U, 71U, 8U, 1U}) {
    ASSERT_EQ(::truncate(file_.c_str(), static_cast<off_t>(length)), 0);
    expect_refused(fresh_and("is truncated: " + std::to_string(length)));
  }
  expect_fresh_start();
}

// Somebody truncates the file of a process that goes on: it dies of that, but says why.
TEST_F(StateFile, ThatIsTruncatedUnderAProcessIsNamedBeforeItDies) {
  make();
  const auto end = testing::end_of_child([&] {
    explain_lost_files();
    const std::unique_ptr<LocalStore> store = open_file(file_);
    if (::truncate(file_.c_str(), 4096) != 0) return 1;
    charge_of_ten(*store, 1);
    return 2;  // it should not have come that far
  });
  EXPECT_TRUE(end.is_by(SIGBUS)) << end.status;
  EXPECT_EQ(end.said,
            "sluice: state file '" + file_ +
                "': it was truncated, or its device failed, while it was in use; remove it and "
                "start again, which forgets all counts\n");
}

TEST_F(StateFile, OfAnotherLayoutIsRefused) {
  make();
  overwrite(file_, 8, "\x01");
  expect_refused(fresh_and("has layout version 1, this program knows 3"));
  expect_refused({"use the program that wrote it"});
  expect_fresh_start();
}

TEST_F(StateFile, MadeForAnotherMemoryIsRefused) {
  make();
  const std::string advice = "was made for 4194304 bytes of memory, 8388608 are configured";
  expect_refused(fresh_and(advice), false, 2 * Mapping::kMemoryMin);
  expect_refused({"configure 4194304 bytes"}, false, 2 * Mapping::kMemoryMin);
  EXPECT_EQ(left_of_ten(*open_file(file_)), 7U);
  expect_fresh_start(2 * Mapping::kMemoryMin);
}

TEST_F(StateFile, WithAnyBitOfItsHeaderFlippedIsRefused) {
  make();
  const std::string good = bytes_of(file_).substr(0, kLimitsAt);
  for (std::size_t bit = 0; bit < 8 * (kChecksumAt + 8); ++bit) {
    overwrite(file_, 0, with_flipped_bit(good, bit));
    expect_refused(kMayStartFresh);
    if (HasFailure()) FAIL() << "bit " << bit;
  }
  overwrite(file_, 0, good);
  EXPECT_EQ(left_of_ten(*open_file(file_)), 7U);
  overwrite(file_, 0, with_flipped_bit(good, 200));
  expect_fresh_start();
}

// Here only the header's bookkeeping may change: who opened the file, and when.
TEST_F(StateFile, WithAnyBitOfALimitFlippedIsRefused) {
  make();
  const std::string good = bytes_of(file_);
  const std::string limit = good.substr(kLimitsAt, sizeof(LimitRecord));
  for (std::size_t bit = 0; bit < 8 * sizeof(LimitRecord); ++bit) {
    const bool bookkeeping = bit / 8 >= 8 && bit / 8 < 16;  // LimitRecord::used
    if (bookkeeping) continue;
    overwrite(file_, kLimitsAt, with_flipped_bit(limit, bit));
    const auto store = try_open(file_);
    ASSERT_FALSE(store) << "bit " << bit;
    const std::string text = store.error().text();
    ASSERT_THAT(text, AllOf(HasSubstr(file_), HasSubstr("limit 0 is damaged"),
                            HasSubstr(kMayStartFresh.front())));
  }
  EXPECT_TRUE(bytes_of(file_).substr(kLimitsAt + sizeof(LimitRecord)) ==
              good.substr(kLimitsAt + sizeof(LimitRecord)));
  overwrite(file_, kLimitsAt, limit);
  EXPECT_EQ(left_of_ten(*open_file(file_)), 7U);
  overwrite(file_, kLimitsAt, with_flipped_bit(limit, 200));
  expect_fresh_start();
}

// A state that can be used is used, whatever is allowed.
TEST_F(StateFile, ThatIsGoodIsNotForgottenWhenStartingFreshIsAllowed) {
  make();
  auto store = try_open(file_, true);
  ASSERT_TRUE(store);
  EXPECT_EQ(left_of_ten(**store), 7U);
}

TEST_F(StateFile, InUseCannotStartFresh) {
  make();
  const std::unique_ptr<LocalStore> user = open_file(file_);
  overwrite(file_, kLimitsAt + 20, "X");
  const auto store = try_open(file_, true);
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().text(),
              AllOf(HasSubstr(file_), HasSubstr("cannot start fresh while other processes use it"),
                    HasSubstr("stop them first")));
  EXPECT_EQ(left_of_ten(*user), 7U);
  EXPECT_FALSE(try_open(file_, true, {}, 2 * Mapping::kMemoryMin));
  EXPECT_EQ(left_of_ten(*user), 7U);
}

// ---- no room
// -------------------------------------------------------------------------------------

// 0 if a file of the smallest size is refused for want of room, in words that help.
int refused_for_room(const std::string& file) {
  const auto store = try_open(file);
  if (store) return 1;
  const std::string text = store.error().text();
  const auto says = [&text](std::string_view word) { return text.find(word) != std::string::npos; };
  return says(file) && says("cannot be given its 4194304 bytes") && says("make room on the device")
             ? 0
             : 2;
}

TEST_F(StateFile, BeyondTheLargestAllowedSizeIsAnErrorAtTheStart) {
  EXPECT_EQ(in_child([this] {
              ::signal(SIGXFSZ, SIG_IGN);
              const rlimit most{.rlim_cur = 1U << 20U, .rlim_max = 1U << 20U};
              ::setrlimit(RLIMIT_FSIZE, &most);
              return refused_for_room(file_);
            }),
            0);
  EXPECT_EQ(left_of_ten(*open_file(file_)), 10U);  // nothing is left that would be misread
}

// Root in a world of its own, where a file system may be mounted.
bool enter_own_world() {
  const std::string user = "0 " + std::to_string(::geteuid()) + " 1";
  const std::string group = "0 " + std::to_string(::getegid()) + " 1";
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  std::ofstream{"/proc/self/setgroups"} << "deny";
  return (std::ofstream{"/proc/self/uid_map"} << user << std::flush).good() &&
         (std::ofstream{"/proc/self/gid_map"} << group << std::flush).good();
}

TEST_F(StateFile, OnAFullDeviceIsAnErrorAtTheStart) {
  constexpr int kNotPermitted = 77;
  const std::string device = folder_.file("device");
  std::filesystem::create_directory(device);
  const std::optional<int> code = in_child([&] {
    const bool mounted =
        enter_own_world() && ::mount("none", device.c_str(), "tmpfs", 0, "size=1m") == 0;
    if (!mounted) return kNotPermitted;
    if (const int wrong = refused_for_room(device + "/state"); wrong != 0) return wrong;
    if (::mount("none", device.c_str(), "tmpfs", MS_REMOUNT, "size=8m") != 0) return kNotPermitted;
    return try_open(device + "/state") ? 0 : 3;
  });
  if (code == kNotPermitted) GTEST_SKIP() << "may not mount a file system, not even for itself";
  EXPECT_EQ(code, 0);
}

// ---- interrupted creation
// ------------------------------------------------------------------------

// Kills a child that opens the file when it has entered or left that many system calls. False if it
// was done before.
bool killed_at_call(const std::string& file, int calls) {
  const pid_t child = testing::start_child([&file] {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::raise(SIGSTOP);
    return try_open(file) ? 0 : 1;
  });
  int status = 0;
  for (int call = 0; call <= calls; ++call) {
    ::waitpid(child, &status, 0);
    if (!WIFSTOPPED(status)) return false;
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
  }
  ::waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) return false;
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return true;
}

// Wherever the making of a file was interrupted, the next start makes it.
TEST_F(StateFile, WhoseMakerWasKilledIsMadeByTheNext) {
  int calls = 0;
  for (bool killed = true; killed; ++calls) {
    std::filesystem::remove(file_);
    killed = killed_at_call(file_, calls);
    const auto store = try_open(file_);
    ASSERT_TRUE(store) << "after call " << calls << ": " << store.error().text();
    EXPECT_EQ(left_of_ten(**store), 10U);
  }
  if (calls < 10) GTEST_SKIP() << "may not trace its own children";
}

}  // namespace
}  // namespace sluice::store
