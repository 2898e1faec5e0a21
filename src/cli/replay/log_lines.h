// The lines of a log, which may be compressed by gzip.
#pragma once

#include "base/line_reader.h"
#include <sluice/diagnostic.h>

#include <memory>
#include <string>

namespace sluice::cli {

// "-" is standard input. What begins as gzip files do is unpacked on the way, in bounded memory.
[[nodiscard]] Parsed<LineReader> open_log_lines(const std::string& path);

// The content of a gzip file of one member or several. What is damaged, or ends too early, is an
// error when reading gets there. `name` is for messages.
[[nodiscard]] std::unique_ptr<ByteSource> gunzip(std::unique_ptr<ByteSource> packed,
                                                 std::string name);

}  // namespace sluice::cli
