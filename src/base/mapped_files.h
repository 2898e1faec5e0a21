// What a process says when a file that it has mapped is taken away from under it.
//
// If a mapped file is truncated, or its device fails, the next access to it is a SIGBUS, which ends
// the process without a word. With the handler installed, one line names the file and the remedy
// before the process ends as it would have.
//
// A library must not change what its host does about signals: a program installs the handler.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace sluice {

// For the whole process. A handler that was there before is replaced.
void explain_lost_files() noexcept;

struct MappedFile {
  const char* what = "";    // "state file"; static, as is the remedy
  std::string_view path;    // copied; a path that is too long is not named
  const char* remedy = "";  // what to do
};

// A range of memory that a file is mapped to, until it is forgotten. Only a few are remembered.
void remember_mapped_file(std::span<const std::byte> memory, const MappedFile& file) noexcept;
void forget_mapped_file(std::span<const std::byte> memory) noexcept;

}  // namespace sluice
