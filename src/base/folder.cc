#include "base/folder.h"

#include <algorithm>

namespace sluice {

FolderContent visible_below(const std::filesystem::path& folder) {
  FolderContent content;
  std::filesystem::recursive_directory_iterator entry{folder, content.error};
  for (const auto end = std::filesystem::recursive_directory_iterator{};
       !content.error && entry != end; entry.increment(content.error)) {
    if (entry->path().filename().native().starts_with('.')) {
      entry.disable_recursion_pending();
      continue;
    }
    content.entries.push_back(*entry);
  }
  std::ranges::sort(content.entries);
  return content;
}

}  // namespace sluice
