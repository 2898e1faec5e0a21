// The files below a folder, for readers and watchers of all of it: both must see the same files.
#pragma once

#include <filesystem>
#include <system_error>
#include <vector>

namespace sluice {

struct FolderContent {
  std::vector<std::filesystem::directory_entry> entries;  // of all kinds, in the order of paths
  std::error_code error;                                  // why some or all are missing
};

// Also in the folders below. A name that begins with a dot is left out with all that is in it, as
// the kubelet's ..data in a mounted ConfigMap. A link to a folder is an entry, and not entered.
[[nodiscard]] FolderContent visible_below(const std::filesystem::path& folder);

}  // namespace sluice
