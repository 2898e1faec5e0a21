// Rules in one file.
//
// The version is a digest of the content: touching a file, or replacing it by an equal one, is no
// change. For errors see rules/rules_file.h; for file systems without permissions there is
// ReadLimits::world_writable.
#pragma once

#include "base/read_file.h"
#include "rules/source/file_watch.h"
#include "rules/source/rule_source.h"

#include <memory>
#include <mutex>
#include <string>

namespace sluice::rules {

struct FileSourceOptions {
  ReadLimits limits;
  FileWatchTimes watch;
};

class FileSource final : public RuleSource {
 public:
  // A relative path is resolved from the folder that is current now.
  explicit FileSource(const std::string& path, const FileSourceOptions& options = {});

  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  [[nodiscard]] Parsed<Fetched> fetch() override;
  [[nodiscard]] Parsed<void> watch(const Changed& changed) override;
  [[nodiscard]] bool is_being_written() const override;
  void unwatch() noexcept override;
  [[nodiscard]] std::string watch_problem() const override;

 private:
  const std::string path_;  // absolute
  const std::string name_;
  const FileSourceOptions options_;
  mutable std::mutex mutex_;
  std::unique_ptr<FileWatch> watch_;  // guarded by the mutex
};

}  // namespace sluice::rules
