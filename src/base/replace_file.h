// Replacing a file so that a crash at any moment leaves the old content or the new, never a
// mixture.
//
// The new content goes to `path`.new, from there to the disk, and under its name by a rename that
// is brought to the disk, too. Only the process that has `path`.new open and locked may replace the
// file: content that it reads in the meantime is the content that it replaces. The file of a killed
// writer is overwritten, so nothing piles up.
#pragma once

#include "base/file_descriptor.h"
#include <sluice/diagnostic.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace sluice {

// Read permission of the new file.
enum class FileAccess : std::uint8_t {
  owner,      // its owner alone
  as_before,  // as for the old file; of a new file, its owner
};

// What to do while another process replaces the same file.
enum class WhenBusy : std::uint8_t { refuse, wait };

// The right to replace one file. Without finish() the file stays as it was. One thread.
class FileReplacement {
 public:
  [[nodiscard]] static Parsed<FileReplacement> begin(std::string path, WhenBusy when_busy);
  FileReplacement(FileReplacement&& from) noexcept = default;
  FileReplacement& operator=(FileReplacement&&) = delete;
  FileReplacement(const FileReplacement&) = delete;
  FileReplacement& operator=(const FileReplacement&) = delete;
  ~FileReplacement();

  // `before_rename` is for tests.
  [[nodiscard]] Parsed<void> finish(std::string_view content, FileAccess access,
                                    const std::function<void()>& before_rename = nullptr);

 private:
  FileReplacement(std::string path, FileDescriptor file);

  std::string path_;
  std::string unfinished_;
  FileDescriptor file_;  // nothing: finished, or moved from
};

// In one step, for its owner alone; fails while another process does the same.
[[nodiscard]] Parsed<void> replace_file(const std::string& path, std::string_view content,
                                        const std::function<void()>& before_rename = nullptr);

}  // namespace sluice
