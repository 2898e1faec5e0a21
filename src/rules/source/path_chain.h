// The directory entries on a path, symbolic links included.
//
// If the path's target changes, so does one of these entries, or the file at its end. A Kubernetes
// volume is the hard case: rules.yaml -> ..data/rules.yaml, and ..data -> a folder with a date for
// its name, which is replaced on every change.
#pragma once

#include <map>
#include <set>
#include <string>

namespace sluice::rules {

struct PathChain {
  // Folders, each without links in its path, and the names in them that matter. If an entry is
  // missing, the last folder is where it is missing.
  std::map<std::string, std::set<std::string>> names;
  std::string last_folder;  // the folder of the last entry
  std::string file;         // the path's target, without links; empty if it is missing

  friend bool operator==(const PathChain&, const PathChain&) = default;
};

// `path` is absolute. Parents sort before their contents.
[[nodiscard]] PathChain path_chain(const std::string& path);

}  // namespace sluice::rules
