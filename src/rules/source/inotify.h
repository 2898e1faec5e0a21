// Watches on every directory entry on some paths, and on the files at their ends.
//
// The kernel watches objects, not paths: after each change the path may lead elsewhere, so watches
// are set again. In a folder that is watched as a whole every visible name matters, also new ones.
// One thread.
#pragma once

#include "base/file_descriptor.h"
#include "rules/source/path_chain.h"
#include "rules/source/watched_paths.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sluice::rules {

class Inotify {
 public:
  Inotify();

  // Readable after an event; -1 if this machine has no watches left.
  [[nodiscard]] int descriptor() const noexcept { return inotify_.get(); }

  // Watches the entries that are on the paths now. A change after it began is either in the state
  // that it saw or will be an event.
  void follow(const WatchedPaths& paths);

  // Takes all events out of the queue. Whether one of them concerns a path.
  [[nodiscard]] bool drain();

  // Whether the last events include a file that was written to and not closed since.
  [[nodiscard]] bool is_being_written() const noexcept { return !written_.empty(); }
  // Stops waiting for it: its next events count as new.
  void forget_writing() noexcept { written_.clear(); }

  // Why some changes may cause no event; empty if all do.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

 private:
  // The entries on the paths at one moment.
  struct Ways {
    std::vector<PathChain> chains;
    std::set<std::string> whole_folders;  // without links in their paths

    friend bool operator==(const Ways&, const Ways&) = default;
  };
  // Which names in a folder matter; none for an object that is watched by itself.
  struct Names {
    std::string path;
    std::set<std::string> some;
    bool all_visible = false;
  };

  [[nodiscard]] static Ways ways_of(const WatchedPaths& paths);
  void watch(const Ways& ways);
  // Whether the kernel now watches it.
  bool add(const std::string& path, std::uint32_t events, const Names& names,
           std::map<int, Names>& watched);
  [[nodiscard]] bool concerns(int watch, std::uint32_t events, const std::string& name) const;
  // An event that concerns a path.
  void note_writing(int watch, std::uint32_t events, const std::string& name);

  FileDescriptor inotify_;
  std::map<int, Names> watched_;  // by the kernel's number
  // Open for writing: the watch and the name in it, empty for the watched object itself.
  std::set<std::pair<int, std::string>> written_;
  std::string problem_;
};

}  // namespace sluice::rules
