// Which directory entries a path runs through, symbolic links and all.
//
// A change of what the path leads to changes one of these entries, or the file at its end. A
// Kubernetes volume is the hard case: rules.yaml -> ..data/rules.yaml, and ..data -> a folder with
// a date for its name, which is replaced on every change.
#pragma once

#include <map>
#include <set>
#include <string>

namespace sluice::rules {

struct PathChain {
  // Folders, each without links in its path, and the names in them that matter. If something is
  // missing on the way, the last is where it is missing.
  std::map<std::string, std::set<std::string>> names;
  std::string last_folder;  // the one that holds the last entry
  std::string file;         // where the path ends, without links; empty if that is missing

  friend bool operator==(const PathChain&, const PathChain&) = default;
};

// `path` is absolute. Parents sort before what they hold.
[[nodiscard]] PathChain path_chain(const std::string& path);

}  // namespace sluice::rules
