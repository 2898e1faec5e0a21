// For tests of what is watched: times, ways of writing, and a reader that is told of changes.
#pragma once

#include "rules/source/file_watch.h"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace sluice::rules {

// Only an event can be noticed before the test gives up: looking comes much later.
inline constexpr FileWatchTimes kEventsOnly{
    .debounce = {.quiet = std::chrono::milliseconds{2}, .at_most = std::chrono::milliseconds{50}},
    .look_every = std::chrono::hours{1},
    .use_events = true};
inline constexpr FileWatchTimes kLooksOnly{
    .debounce = {.quiet = std::chrono::milliseconds{2}, .at_most = std::chrono::milliseconds{50}},
    .look_every = std::chrono::milliseconds{5},
    .use_events = false};

inline void write(const std::string& path, const std::string& text) {
  std::ofstream{path, std::ios::trunc} << text;
}
inline void write_by_rename(const std::string& path, const std::string& text) {
  write(path + "~", text);
  std::filesystem::rename(path + "~", path);
}
inline void swap_link(const std::string& link, const std::string& target) {
  std::filesystem::create_symlink(target, link + "~");
  std::filesystem::rename(link + "~", link);
}

// Reads on every call, as a user of the watch does, and keeps what it saw.
class WatchingReader {
 public:
  WatchingReader(WatchedPaths paths, std::function<std::string()> read, const FileWatchTimes& times)
      : read_(std::move(read)) {
    watch_ = FileWatch::start(std::move(paths), times, [this] { read_anew(); }).value();
  }

  // Whether the newest content seen becomes this one.
  [[nodiscard]] bool comes_to(const std::string& text) {
    std::unique_lock lock{mutex_};
    return seen_more_.wait_for(lock, std::chrono::seconds{20},
                               [&] { return !seen_.empty() && seen_.back() == text; });
  }
  // Whether it is called so often within a short time.
  [[nodiscard]] bool is_called(std::size_t times) {
    std::unique_lock lock{mutex_};
    return seen_more_.wait_for(lock, std::chrono::milliseconds{200},
                               [&] { return seen_.size() >= times; });
  }
  [[nodiscard]] std::vector<std::string> seen() {
    const std::scoped_lock lock{mutex_};
    return seen_;
  }
  [[nodiscard]] std::string problem() const { return watch_->problem(); }
  void stop() { watch_.reset(); }

 private:
  void read_anew() {
    std::string text = read_();
    const std::scoped_lock lock{mutex_};
    seen_.push_back(std::move(text));
    seen_more_.notify_all();
  }

  std::function<std::string()> read_;
  std::mutex mutex_;
  std::condition_variable seen_more_;
  std::vector<std::string> seen_;
  std::unique_ptr<FileWatch> watch_;  // last: its thread uses the others
};

}  // namespace sluice::rules
