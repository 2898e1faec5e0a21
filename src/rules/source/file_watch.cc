#include "rules/source/file_watch.h"

#include "base/folder.h"
#include <sluice/clock.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <system_error>
#include <utility>
#include <vector>

namespace sluice::rules {
namespace {

using namespace std::chrono_literals;

MonoTime mono_now() { return SystemClock{}.now().mono; }

timespec for_poll(Nanos time) {
  const Nanos left = std::max(time, Nanos{0});
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(left);
  return {.tv_sec = whole.count(), .tv_nsec = (left - whole).count()};
}

}  // namespace

Parsed<std::unique_ptr<FileWatch>> FileWatch::start(WatchedPaths paths, const FileWatchTimes& times,
                                                    std::function<void()> changed) {
  std::vector<std::string> all = paths.files;
  all.insert(all.end(), paths.folders.begin(), paths.folders.end());
  const std::string names = fmt::format("{}", fmt::join(all, ", "));
  FileDescriptor stop{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (!stop) {
    return mistake(
        fmt::format("cannot watch {}: {}", names, std::generic_category().message(errno)),
        "raise the limit on open files");
  }
  std::unique_ptr<FileWatch> watch{
      new FileWatch{std::move(paths), times, std::move(changed), std::move(stop)}};
  try {
    watch->thread_ = std::jthread{[raw = watch.get()] { raw->run(); }};
  } catch (const std::system_error& error) {
    return mistake(fmt::format("cannot watch {}: no thread: {}", names, error.what()),
                   "raise the limit on threads");
  }
  return watch;
}

FileWatch::FileWatch(WatchedPaths paths, const FileWatchTimes& times, std::function<void()> changed,
                     FileDescriptor stop)
    : paths_(std::move(paths)),
      times_(times),
      changed_(std::move(changed)),
      stop_(std::move(stop)),
      debounce_(times.debounce),
      looks_(look_at_all()),
      next_look_(mono_now() + times.look_every) {
  if (times_.use_events) inotify_.emplace();
  follow();
}

FileWatch::~FileWatch() {
  const eventfd_t one = 1;
  ::eventfd_write(stop_.get(), one);  // fails only if it is written already
}

std::string FileWatch::problem() const {
  const std::scoped_lock lock{mutex_};
  return problem_;
}

void FileWatch::run() {
  // Between two readings of the queue: a busy folder wakes the thread at most 200 times a second.
  constexpr Nanos kBreath = 5ms;
  while (!wait_until(std::min(debounce_.due(), next_look_))) {
    const MonoTime now = mono_now();
    if (inotify_ && inotify_->drain()) {
      follow();
      is_being_written_ = inotify_->is_being_written();
      debounce_.event(now, is_being_written_);
    }
    if (now >= next_look_) look(now);
    if (debounce_.take(now)) {
      is_being_written_ = false;
      if (inotify_) inotify_->forget_writing();
      looks_.accept(look_at_all());
      changed_();
    }
    if (stops_within(kBreath)) return;
  }
}

void FileWatch::follow() {
  if (!inotify_) return;
  inotify_->follow(paths_);
  const std::scoped_lock lock{mutex_};
  problem_ = inotify_->problem();
}

// Also sets the watches again, for folders that could not be watched before. A burst of events is
// handled by itself: a look in the middle of it would end it too early.
void FileWatch::look(MonoTime now) {
  next_look_ = now + times_.look_every;
  follow();
  if (debounce_.pending()) return;
  switch (looks_.look(look_at_all())) {
    case TwoReadings<AllLooks>::Found::nothing: break;
    case TwoReadings<AllLooks>::Found::unsettled:
      next_look_ = now + std::min(times_.look_every, times_.look_again);
      break;
    case TwoReadings<AllLooks>::Found::change: debounce_.event(now); break;
  }
}

FileWatch::AllLooks FileWatch::look_at_all() const {
  AllLooks all;
  for (const std::string& path : paths_.files) all[path] = look_at(path);
  for (const std::string& folder : paths_.folders) {
    all[folder] = look_at(folder);
    for (const std::filesystem::directory_entry& entry : visible_below(folder).entries) {
      all[entry.path().string()] = look_at(entry.path().string());
    }
  }
  return all;
}

FileWatch::Looks FileWatch::look_at(const std::string& path) {
  struct stat file{};
  if (::stat(path.c_str(), &file) != 0) return {};
  // A folder's times also change with hidden names in it, which do not matter.
  if (S_ISDIR(file.st_mode)) {
    return {static_cast<std::int64_t>(file.st_dev), static_cast<std::int64_t>(file.st_ino),
            file.st_mode};
  }
  return {static_cast<std::int64_t>(file.st_dev),
          static_cast<std::int64_t>(file.st_ino),
          file.st_size,
          file.st_mtim.tv_sec,
          file.st_mtim.tv_nsec,
          file.st_ctim.tv_sec,
          file.st_ctim.tv_nsec};
}

bool FileWatch::wait_until(MonoTime until) const {
  std::array<pollfd, 2> waiting{
      pollfd{.fd = stop_.get(), .events = POLLIN, .revents = 0},
      pollfd{.fd = inotify_ ? inotify_->descriptor() : -1, .events = POLLIN, .revents = 0}};
  return wait_for(waiting, until - mono_now());
}

bool FileWatch::stops_within(Nanos time) const {
  std::array<pollfd, 1> waiting{pollfd{.fd = stop_.get(), .events = POLLIN, .revents = 0}};
  return wait_for(waiting, time);
}

// Poll rejects more descriptors than the process may open, however many it has. If not even one is
// allowed, it would return at once, again and again.
bool FileWatch::wait_for(std::span<pollfd> waiting, Nanos time) const {
  constexpr Nanos kNap = 100ms;
  const timespec limit = for_poll(time);
  if (::ppoll(waiting.data(), waiting.size(), &limit, nullptr) >= 0 || errno == EINTR) {
    return (waiting.front().revents & POLLIN) != 0;
  }
  const timespec nap = for_poll(std::min(time, kNap));
  (void)::nanosleep(&nap, nullptr);
  eventfd_t stopped = 0;
  return ::eventfd_read(stop_.get(), &stopped) == 0;
}

}  // namespace sluice::rules
