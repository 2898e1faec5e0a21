#include "rules/source/file_source.h"

#include "rules/rules_file.h"
#include "rules/source/digest_text.h"

#include <filesystem>
#include <system_error>
#include <utility>

namespace sluice::rules {
namespace {

std::string absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  return error ? path : whole.string();
}

}  // namespace

FileSource::FileSource(const std::string& path, const FileSourceOptions& options)
    : path_(absolute(path)), name_("file " + path_), options_(options) {}

Parsed<Fetched> FileSource::fetch() {
  Parsed<std::string> text = read_rules_file(path_, options_.limits);
  if (!text) return tl::unexpected(std::move(text.error()));
  std::string version = digest_text(*text);
  return Fetched{.text = *std::move(text), .version = std::move(version), .where = path_};
}

Parsed<void> FileSource::watch(const Changed& changed) {
  unwatch();
  auto watch = FileWatch::start({.files = {path_}, .folders = {}}, options_.watch, changed);
  if (!watch) return tl::unexpected(std::move(watch.error()));
  const std::scoped_lock lock{mutex_};
  watch_ = *std::move(watch);
  return {};
}

bool FileSource::is_being_written() const {
  const std::scoped_lock lock{mutex_};
  return watch_ && watch_->is_being_written();
}

void FileSource::unwatch() noexcept {
  std::unique_ptr<FileWatch> ended;  // outside the lock: it waits for its thread
  const std::scoped_lock lock{mutex_};
  std::swap(ended, watch_);
}

std::string FileSource::watch_problem() const {
  const std::scoped_lock lock{mutex_};
  return watch_ ? watch_->problem() : std::string{};
}

}  // namespace sluice::rules
