// Watches on every directory entry that some paths run through, and on the files at their ends.
//
// The kernel watches objects, not paths: after each change the path may run elsewhere, so watches
// are set anew. One thread.
#pragma once

#include "base/file_descriptor.h"
#include "rules/source/path_chain.h"

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>

namespace sluice::rules {

class Inotify {
 public:
  Inotify();

  // Readable when something happened; -1 if this machine has no watches to give.
  [[nodiscard]] int descriptor() const noexcept { return inotify_.get(); }

  // Watches what the paths run through now. Whatever changes after it began is either in what it
  // saw or will be an event.
  void follow(std::span<const std::string> paths);

  // Takes all events out of the queue. Whether one of them concerns a path.
  [[nodiscard]] bool drain();

  // Why some changes may cause no event; empty if all do.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

 private:
  using Names = std::set<std::string>;

  void watch(std::span<const PathChain> chains);
  // Whether the kernel now watches it.
  bool add(const std::string& path, std::uint32_t events, const Names& names,
           std::map<int, Names>& watched);
  [[nodiscard]] bool concerns(int watch, std::uint32_t events, const std::string& name) const;

  FileDescriptor inotify_;
  std::map<int, Names> watched_;  // by the kernel's number; without names: the object itself
  std::string problem_;
};

}  // namespace sluice::rules
