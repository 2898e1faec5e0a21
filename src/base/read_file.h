// A file that a person named, as a whole. For the control road: it blocks and allocates.
#pragma once

#include <sluice/diagnostic.h>

#include <cstddef>
#include <optional>
#include <string>
#include <sys/types.h>

namespace sluice {

[[nodiscard]] Parsed<std::string> read_file(const std::string& path, std::size_t bytes_max);

// One that decides who may do what: refused if every user of this machine could have written it.
[[nodiscard]] Parsed<std::string> read_trusted_file(const std::string& path, std::size_t bytes_max);

// The same for a file that is open already. What is no regular file has no content to protect.
[[nodiscard]] Parsed<void> refuse_if_world_writable(const std::string& path, mode_t mode);

// What to tell about a file with a secret that every user of this machine may read; nothing where
// all is well, or there is no such file.
[[nodiscard]] std::optional<Diagnostic> warn_if_world_readable(const std::string& path);

}  // namespace sluice
