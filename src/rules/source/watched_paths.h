// The paths to watch: files, and folders for the files in them.
#pragma once

#include <string>
#include <vector>

namespace sluice::rules {

// All absolute. Missing paths are noticed when they appear.
struct WatchedPaths {
  std::vector<std::string> files;
  std::vector<std::string> folders;  // each with all that visible_below() shows

  friend bool operator==(const WatchedPaths&, const WatchedPaths&) = default;
};

}  // namespace sluice::rules
