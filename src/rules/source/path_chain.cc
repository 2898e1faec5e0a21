#include "rules/source/path_chain.h"

#include <deque>
#include <filesystem>
#include <system_error>
#include <vector>

namespace sluice::rules {
namespace {

namespace fs = std::filesystem;

constexpr int kLinksMax = 40;  // as many as Linux follows

std::vector<std::string> parts_of(const fs::path& path) {
  std::vector<std::string> parts;
  for (const fs::path& part : path.relative_path()) {
    if (!part.empty() && part != ".") parts.push_back(part.string());
  }
  return parts;
}

}  // namespace

PathChain path_chain(const std::string& path) {
  PathChain chain;
  fs::path folder = "/";  // has no links, so its parent is ".."
  const std::vector<std::string> parts = parts_of(path);
  std::deque<std::string> left{parts.begin(), parts.end()};
  int links = 0;
  while (!left.empty()) {
    const std::string name = left.front();
    left.pop_front();
    if (name == "..") {
      folder = folder.parent_path();
      continue;
    }
    chain.names[folder.string()].insert(name);
    chain.last_folder = folder.string();
    const fs::path entry = folder / name;
    std::error_code error;
    const fs::file_status status = fs::symlink_status(entry, error);
    if (!fs::exists(status)) return chain;
    if (!fs::is_symlink(status)) {
      folder = entry;
      continue;
    }
    const fs::path target = fs::read_symlink(entry, error);
    if (error || ++links > kLinksMax) return chain;
    if (target.is_absolute()) folder = "/";
    const std::vector<std::string> more = parts_of(target);
    left.insert(left.begin(), more.begin(), more.end());
  }
  chain.file = folder.string();
  return chain;
}

}  // namespace sluice::rules
