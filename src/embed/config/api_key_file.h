// A file of API keys: read, and extended so that people can read and edit it.
//
// In YAML, so JSON will do. All mistakes in a file are reported at once, by line and column alone:
// there may be a key where its hash belongs.
#pragma once

#include "config/diagnostics.h"
#include "identity/api_keys.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::embed {

inline constexpr std::size_t kKeyFileBytesMax = 64U << 20U;

// Names and hashes of the result are unique.
[[nodiscard]] std::vector<identity::ApiKeyRecord> read_api_keys(std::string_view text,
                                                                std::string_view file,
                                                                config::Diagnostics& diagnostics);

// The record as an item of the list `keys`, its dash in this column, counted from 0.
[[nodiscard]] std::string key_file_item(const identity::ApiKeyRecord& record, std::size_t column);

// A file of these keys, with a comment that says what it is.
[[nodiscard]] std::string key_file_text(const std::vector<identity::ApiKeyRecord>& records,
                                        std::string_view schema = {});

// The file with one key more; all else in it stays as it is, comments included. A mistake if the
// file is invalid, has the name or the hash already, or has a layout that only a person can add to.
[[nodiscard]] Parsed<std::string> with_api_key(std::string_view text, std::string_view file,
                                               const identity::ApiKeyRecord& record);

}  // namespace sluice::embed
