// Where lines of a log go: a file, or whoever reads at the other end of a pipe.
//
// Nobody waits for a reader. A file takes what it is given; of a pipe, a socket or a terminal only
// as much is written as goes through at once, and the caller keeps the rest. Other processes may
// share such an end, and would be surprised by one that does not block: it is opened once more for
// ourselves, or, where that is not allowed, asked each time.
//
// Lines of several threads never mix, and what was begun is finished before anything else is
// written: also on a disk that was full meanwhile. A line that an earlier process could not finish
// is ended, so that the next one begins at its own beginning. Thread-safe.
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
  // For appending; `-` is standard output. Null if that fails: errno tells why.
  [[nodiscard]] static std::unique_ptr<LogFile> open(const std::string& file);
  // One that is open already, as standard error; it stays with its owner.
  [[nodiscard]] static std::unique_ptr<LogFile> of(int descriptor);

  struct Written {
    std::size_t bytes = 0;  // that were taken, up to the end of a line, the rest of which may wait
    bool failed = false;    // the others cannot be written; else, the reader is behind
  };
  [[nodiscard]] Written write(std::string_view lines) noexcept;

  // The same at the very end, with some patience for readers. It is the same patience for all who
  // call it: when it has run out, it has for everybody.
  [[nodiscard]] Written write_within(std::string_view lines, Nanos patience) noexcept;

 private:
  enum class Kind : std::uint8_t {
    file,    // never makes anybody wait for a reader
    ours,    // does not block
    socket,  // can be told not to, call by call
    shared,  // may block, so it is asked before
  };

  LogFile(FileDescriptor descriptor, Kind kind);
  void end_last_line(const std::string& file);
  [[nodiscard]] std::optional<std::size_t> write_some(std::string_view text) const noexcept;
  [[nodiscard]] std::optional<bool> finish_line() noexcept;
  [[nodiscard]] bool is_ready_within(Nanos time) const noexcept;

  const FileDescriptor descriptor_;
  const Kind kind_;
  std::mutex mutex_;  // guards what follows, and the order of writing
  std::string rest_;  // of a line that was begun
  Nanos waited_{0};   // for readers, at the end
};

}  // namespace sluice::app
