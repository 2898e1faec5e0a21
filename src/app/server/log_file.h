// The destination of log lines: a file, or the reader of a pipe.
//
// No thread waits for a reader. A file takes everything; a pipe, a socket or a terminal takes only
// what it accepts without blocking, and the caller keeps the rest. Other processes may share such a
// descriptor and would not expect it to be non-blocking: it is opened once more for ourselves, or,
// where that is not allowed, polled before each write.
//
// Lines of several threads never mix. A partly written line is finished before anything else is
// written, also after the disk was full, and in the file where it began. A line that an earlier
// process could not finish is ended, so that the next one starts on its own line. One
// destination has one object (is_open_at): a second one would not know of the line that the first
// has still to finish. Thread-safe.
#pragma once

#include "base/file_descriptor.h"
#include <sluice/time.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::app {

class LogFile {
 public:
  // For appending; `-` is standard output. Null on failure, with errno set.
  [[nodiscard]] static std::unique_ptr<LogFile> open(const std::string& file);
  // A descriptor already open, as standard error; its owner keeps it.
  [[nodiscard]] static std::unique_ptr<LogFile> of(int descriptor);
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  // Tries once more to finish a partly written line.
  ~LogFile() { (void)finish_line(); }

  // Whether open() would open the same destination again. False after a rename.
  [[nodiscard]] bool is_open_at(const std::string& file) const noexcept;

  struct Written {
    std::size_t bytes = 0;  // taken, up to the end of a line; its rest may be pending
    bool failed = false;    // the others cannot be written; else the reader is behind
  };
  [[nodiscard]] Written write(std::string_view lines) noexcept;

  // The same at shutdown, waiting for the reader. All callers share one budget of `patience`: once
  // it is used up, no call waits any more.
  [[nodiscard]] Written write_within(std::string_view lines, Nanos patience) noexcept;

 private:
  enum class Kind : std::uint8_t {
    file,    // never blocks for a reader
    ours,    // does not block
    socket,  // non-blocking by a flag of each call
    shared,  // may block, so it is polled before
  };

  LogFile(FileDescriptor descriptor, Kind kind);
  void end_last_line(const std::string& file);
  [[nodiscard]] std::optional<std::size_t> write_some(std::string_view text) const noexcept;
  [[nodiscard]] std::optional<bool> finish_line() noexcept;
  [[nodiscard]] bool is_ready_within(Nanos time) const noexcept;

  const FileDescriptor descriptor_;
  const Kind kind_;
  std::mutex mutex_;  // guards the following, and the order of writing
  std::string rest_;  // of a partly written line
  Nanos waited_{0};   // for readers, at shutdown
};

}  // namespace sluice::app
