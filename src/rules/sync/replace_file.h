// Replacing a file so that a crash at any moment leaves the old content or the new, never a
// mixture.
#pragma once

#include <sluice/diagnostic.h>

#include <functional>
#include <string>
#include <string_view>

namespace sluice::rules {

// Writes to `path`.new, brings that to the disk, renames it and brings the rename to the disk. The
// file can be read by its owner only. What a killed writer left behind is overwritten, so nothing
// piles up; of two writers at a time the second is refused. `before_rename` is for tests.
[[nodiscard]] Parsed<void> replace_file(const std::string& path, std::string_view content,
                                        const std::function<void()>& before_rename = nullptr);

}  // namespace sluice::rules
