#include "rules/source/inotify.h"

#include "base/folder.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <system_error>
#include <utility>

namespace sluice::rules {
namespace {

// IN_ATTRIB: a file that could not be read may become readable.
constexpr std::uint32_t kEntryEvents = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                                       IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
constexpr std::uint32_t kWriteEvents = IN_MODIFY | IN_CLOSE_WRITE;
// A file that a container mounts by itself is written through another folder.
constexpr std::uint32_t kFileEvents = kWriteEvents | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;

std::string remedy_for(int error) {
  switch (error) {
    case ENOSPC: return "raise fs.inotify.max_user_watches";
    case EMFILE: return "raise fs.inotify.max_user_instances, or the limit on open files";
    case EACCES: return "allow this program's user to list it";
    default: return "changes are found by looking now and then";
  }
}

std::string problem_with(std::string_view what, int error) {
  return fmt::format("cannot watch {}: {}; {}", what, std::generic_category().message(error),
                     remedy_for(error));
}

// As open() creates it: its writer will close it. A link to a complete file has another name beside
// this one.
bool is_new_file(const std::string& path) {
  struct stat file{};
  return ::lstat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode) && file.st_nlink == 1;
}

}  // namespace

Inotify::Inotify() : inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  if (!inotify_) problem_ = problem_with("for changes", errno);
}

void Inotify::follow(const WatchedPaths& paths) {
  if (!inotify_) return;
  // A change before its watch was set shows in the second pass. A process that swaps links all the
  // time could keep this busy; the last watches then still report the next swap.
  constexpr int kLooksMax = 10;
  Ways ways = ways_of(paths);
  for (int look = 0; look < kLooksMax; ++look) {
    watch(ways);
    Ways now = ways_of(paths);
    if (now == ways) return;
    ways = std::move(now);
  }
}

Inotify::Ways Inotify::ways_of(const WatchedPaths& paths) {
  Ways ways;
  for (const std::string& path : paths.files) ways.chains.push_back(path_chain(path));
  for (const std::string& folder : paths.folders) {
    ways.chains.push_back(path_chain(folder));
    const std::string end = ways.chains.back().file;
    if (end.empty()) continue;
    ways.whole_folders.insert(end);
    for (const std::filesystem::directory_entry& entry : visible_below(end).entries) {
      std::error_code gone;
      if (std::filesystem::is_directory(entry.symlink_status(gone))) {
        ways.whole_folders.insert(entry.path().string());
      } else {
        ways.chains.push_back(path_chain(entry.path().string()));
      }
    }
  }
  return ways;
}

void Inotify::watch(const Ways& ways) {
  // An entry on several paths is watched for all of them.
  std::map<std::string, Names> folders;
  std::set<std::string> with_files = ways.whole_folders;
  for (const PathChain& chain : ways.chains) {
    for (const auto& [folder, names] : chain.names) {
      folders[folder].some.insert(names.begin(), names.end());
    }
    with_files.insert(chain.last_folder);
  }
  for (const std::string& folder : ways.whole_folders) folders[folder].all_visible = true;
  std::map<int, Names> watched;
  problem_.clear();
  for (const auto& [folder, names] : folders) {
    const bool holds_file = with_files.contains(folder);
    const std::uint32_t events = holds_file ? kEntryEvents | kWriteEvents : kEntryEvents;
    // A folder that is gone by now was an entry of the one before it.
    if (!add(folder, events, names, watched) && errno != ENOENT && errno != ENOTDIR) {
      problem_ = problem_with(folder, errno);
    }
  }
  // Their folders report most changes, so it is no problem if one of these fails. Another watch on
  // a folder would replace the watch that it has.
  for (const PathChain& chain : ways.chains) {
    if (chain.file.empty() || folders.contains(chain.file)) continue;
    add(chain.file, kFileEvents, {}, watched);
  }
  for (const auto& [number, names] : watched_) {
    if (!watched.contains(number)) ::inotify_rm_watch(inotify_.get(), number);
  }
  watched_ = std::move(watched);
  std::erase_if(written_, [this](const auto& one) { return !watched_.contains(one.first); });
}

bool Inotify::add(const std::string& path, std::uint32_t events, const Names& names,
                  std::map<int, Names>& watched) {
  const int number = ::inotify_add_watch(inotify_.get(), path.c_str(), events);
  if (number < 0) return false;
  Names& known = watched[number];
  known.path = path;
  known.some.insert(names.some.begin(), names.some.end());
  known.all_visible = known.all_visible || names.all_visible;
  return true;
}

bool Inotify::drain() {
  if (!inotify_) return false;
  alignas(inotify_event) std::array<char, 16384> buffer;
  bool concerned = false;
  // A bounded number of reads: a process that writes all the time must not keep the thread here.
  for (int reads = 0; reads < 64; ++reads) {
    const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      inotify_event event{};
      std::memcpy(&event, &buffer[at], sizeof event);
      const char* name = event.len > 0 ? &buffer[at + sizeof event] : "";
      if (concerns(event.wd, event.mask, name)) {
        concerned = true;
        note_writing(event.wd, event.mask, name);
      }
      at += sizeof event + event.len;
    }
  }
  return concerned;
}

bool Inotify::concerns(int watch, std::uint32_t events, const std::string& name) const {
  if ((events & IN_Q_OVERFLOW) != 0) return true;  // anything may have happened
  const auto found = watched_.find(watch);
  if (found == watched_.end()) return false;
  const Names& names = found->second;
  return name.empty() || names.some.contains(name) || (names.all_visible && name[0] != '.');
}

// A rename or a removal replaces the object that was being written.
void Inotify::note_writing(int watch, std::uint32_t events, const std::string& name) {
  if ((events & IN_Q_OVERFLOW) != 0) return written_.clear();
  const bool is_created = (events & (IN_CREATE | IN_ISDIR)) == IN_CREATE &&
                          is_new_file(watched_.at(watch).path + "/" + name);
  if ((events & IN_MODIFY) != 0 || is_created) {
    written_.emplace(watch, name);
  } else if ((events & ~std::uint32_t{IN_ATTRIB}) != 0) {
    written_.erase({watch, name});
  }
}

}  // namespace sluice::rules
