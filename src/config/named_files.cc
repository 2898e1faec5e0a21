#include "config/named_files.h"

#include "config/mistake_at.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace sluice::config {

void NamedFiles::add(const Node& at, std::string key, std::string path) {
  if (path.empty()) return;
  all_.push_back({.path = std::move(path),
                  .key = std::move(key),
                  .at = mistake_at(at, Severity::error, {}, {})});
}

std::string NamedFiles::resolve(const Node* at, std::string key, std::string_view folder) {
  if (at == nullptr || at->text.empty()) return {};
  std::string path = (std::filesystem::path{folder} / at->text).lexically_normal().string();
  add(*at, std::move(key), path);
  return path;
}

const NamedFiles::Named* NamedFiles::find(std::string_view path) const {
  const auto found = std::ranges::find(all_, path, &Named::path);
  return found == all_.end() ? nullptr : &*found;
}

void NamedFiles::report(const Named* named, Diagnostic what, Severity severity,
                        Diagnostics& diagnostics) {
  Mistake mistake = named == nullptr ? Mistake{} : named->at;
  mistake.severity = severity;
  mistake.message = named == nullptr ? std::move(what.message) : named->key + ": " + what.message;
  mistake.remedy = std::move(what.remedy);
  diagnostics.add(std::move(mistake));
}

void NamedFiles::error(std::string_view path, Diagnostic what, Diagnostics& diagnostics) const {
  report(find(path), std::move(what), Severity::error, diagnostics);
}

void NamedFiles::warning(std::string_view path, Diagnostic what, Diagnostics& diagnostics) const {
  report(find(path), std::move(what), Severity::warning, diagnostics);
}

// Of several the longest: a.pem is also a part of data.pem.
void NamedFiles::error(Diagnostic what, Diagnostics& diagnostics) const {
  const Named* longest = nullptr;
  for (const Named& one : all_) {
    if (what.message.find(one.path) == std::string::npos) continue;
    if (longest == nullptr || one.path.size() > longest->path.size()) longest = &one;
  }
  report(longest, std::move(what), Severity::error, diagnostics);
}

}  // namespace sluice::config
