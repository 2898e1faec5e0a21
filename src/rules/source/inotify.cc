#include "rules/source/inotify.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <sys/inotify.h>
#include <system_error>
#include <utility>
#include <vector>

namespace sluice::rules {
namespace {

// IN_ATTRIB: a file that could not be read may become readable.
constexpr std::uint32_t kEntryEvents = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                                       IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
constexpr std::uint32_t kWriteEvents = IN_MODIFY | IN_CLOSE_WRITE;
// A file that a container mounts by itself is written by way of another folder.
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

std::vector<PathChain> chains_of(std::span<const std::string> paths) {
  std::vector<PathChain> chains;
  for (const std::string& path : paths) chains.push_back(path_chain(path));
  return chains;
}

}  // namespace

Inotify::Inotify() : inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  if (!inotify_) problem_ = problem_with("for changes", errno);
}

void Inotify::follow(std::span<const std::string> paths) {
  if (!inotify_) return;
  // What changed before its watch was set shows in the second look. Somebody who swaps links all
  // the time could keep this busy; the last watches then still tell of the next swap.
  constexpr int kLooksMax = 10;
  std::vector<PathChain> chains = chains_of(paths);
  for (int look = 0; look < kLooksMax; ++look) {
    watch(chains);
    std::vector<PathChain> now = chains_of(paths);
    if (now == chains) return;
    chains = std::move(now);
  }
}

void Inotify::watch(std::span<const PathChain> chains) {
  // What several paths run through is watched for all of them.
  std::map<std::string, Names> folders;
  std::set<std::string> with_files;
  for (const PathChain& chain : chains) {
    for (const auto& [folder, names] : chain.names) {
      folders[folder].insert(names.begin(), names.end());
    }
    with_files.insert(chain.last_folder);
  }
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
  // Their folders tell of most changes, so it is no problem if one of these fails.
  for (const PathChain& chain : chains) {
    if (!chain.file.empty()) add(chain.file, kFileEvents, {}, watched);
  }
  for (const auto& [number, names] : watched_) {
    if (!watched.contains(number)) ::inotify_rm_watch(inotify_.get(), number);
  }
  watched_ = std::move(watched);
}

bool Inotify::add(const std::string& path, std::uint32_t events, const Names& names,
                  std::map<int, Names>& watched) {
  const int number = ::inotify_add_watch(inotify_.get(), path.c_str(), events);
  if (number < 0) return false;
  watched[number].insert(names.begin(), names.end());
  return true;
}

bool Inotify::drain() {
  if (!inotify_) return false;
  alignas(inotify_event) std::array<char, 16384> buffer;
  bool concerned = false;
  // A bounded number of reads: somebody who writes all the time must not keep us here.
  for (int reads = 0; reads < 64; ++reads) {
    const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      inotify_event event{};
      std::memcpy(&event, &buffer[at], sizeof event);
      const char* name = event.len > 0 ? &buffer[at + sizeof event] : "";
      concerned = concerned || concerns(event.wd, event.mask, name);
      at += sizeof event + event.len;
    }
  }
  return concerned;
}

bool Inotify::concerns(int watch, std::uint32_t events, const std::string& name) const {
  if ((events & IN_Q_OVERFLOW) != 0) return true;  // anything may have happened
  const auto found = watched_.find(watch);
  if (found == watched_.end()) return false;
  return name.empty() || found->second.contains(name);
}

}  // namespace sluice::rules
