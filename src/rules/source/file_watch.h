// Calls back when one of some paths may lead to other content than before.
//
// A file is reported when its writer closes it or renames it into place, so that half of it is not
// read; a file that stays open, after some seconds without an event. On file systems without
// events, two polls in a row have to find the same.
//
// Noticed are: writing in place, renaming over, deleting and creating again, changed permissions,
// and symbolic links replaced anywhere on the path, as Kubernetes does with its volumes; in folders
// also new files. Changes without an event (network file systems, a machine without watches left)
// are found by polling the file now and then. A burst of events is one call.
//
// One thread of its own, which sleeps while nothing happens. Construct and destroy in one thread.
#pragma once

#include "base/file_descriptor.h"
#include "rules/source/debounce.h"
#include "rules/source/inotify.h"
#include "rules/source/two_readings.h"
#include "rules/source/watched_paths.h"
#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <poll.h>
#include <span>
#include <string>
#include <thread>

namespace sluice::rules {

struct FileWatchTimes {
  DebounceTimes debounce;
  Nanos look_every = std::chrono::seconds{5};  // for changes without an event; > 0
  Nanos look_again = std::chrono::seconds{1};  // at a change found by polling; > 0
  bool use_events = true;                      // off: only poll, as if there were no events
};

class FileWatch {
 public:
  // Changes after it returns are noticed. `changed` must not block.
  [[nodiscard]] static Parsed<std::unique_ptr<FileWatch>> start(WatchedPaths paths,
                                                                const FileWatchTimes& times,
                                                                std::function<void()> changed);
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;
  ~FileWatch();  // at once, unless `changed` is running

  // Why changes may be noticed late; empty if they are not. Thread-safe.
  [[nodiscard]] std::string problem() const;

  // Whether a change is pending that `changed` will report. Thread-safe.
  [[nodiscard]] bool is_being_written() const noexcept { return is_being_written_; }

 private:
  // Distinguishes states of the file without reading it; zeros if there is no file.
  using Looks = std::array<std::int64_t, 7>;
  using AllLooks = std::map<std::string, Looks>;  // by path

  FileWatch(WatchedPaths paths, const FileWatchTimes& times, std::function<void()> changed,
            FileDescriptor stop);
  [[nodiscard]] static Looks look_at(const std::string& path);
  [[nodiscard]] AllLooks look_at_all() const;
  void run();
  void follow();
  void look(MonoTime now);
  // Whether to stop, after an event or at the given time.
  [[nodiscard]] bool wait_until(MonoTime until) const;
  [[nodiscard]] bool stops_within(Nanos time) const;
  [[nodiscard]] bool wait_for(std::span<pollfd> waiting, Nanos time) const;

  const WatchedPaths paths_;
  const FileWatchTimes times_;
  const std::function<void()> changed_;
  const FileDescriptor stop_;

  // Used by the thread only.
  std::optional<Inotify> inotify_;
  Debounce debounce_;
  TwoReadings<AllLooks> looks_;
  MonoTime next_look_;

  std::atomic<bool> is_being_written_ = false;
  mutable std::mutex mutex_;
  std::string problem_;  // guarded by the mutex

  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace sluice::rules
