// What is to be watched: files, and folders for the files in them.
#pragma once

#include <string>
#include <vector>

namespace sluice::rules {

// All absolute. What is missing is waited for.
struct WatchedPaths {
  std::vector<std::string> files;
  std::vector<std::string> folders;  // each with all that visible_below() shows

  friend bool operator==(const WatchedPaths&, const WatchedPaths&) = default;
};

}  // namespace sluice::rules
