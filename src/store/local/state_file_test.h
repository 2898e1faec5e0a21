// For tests of files: a store with a few counts in it, and the file's bytes.
#pragma once

#include "base/digest.h"
#include "store/local/local_store.h"
#include "support/temp_folder.h"
#include "support/traffic.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>

namespace sluice::store {

// Where things are in a file of layout version 3.
inline constexpr std::size_t kChecksumAt = 72;  // of all before it
inline constexpr std::size_t kBootAt = 80;
inline constexpr std::size_t kLimitsAt = 4096;

inline Parsed<std::unique_ptr<LocalStore>> try_open(const std::string& file,
                                                    bool start_fresh = false, Now now = {},
                                                    std::size_t memory = Mapping::kMemoryMin) {
  return LocalStore::open({.mapping = {.memory = memory, .file = file, .start_fresh = start_fresh}},
                          now);
}

inline std::unique_ptr<LocalStore> open_file(const std::string& file, Now now = {},
                                             std::size_t memory = Mapping::kMemoryMin) {
  auto store = try_open(file, false, now, memory);
  if (!store) throw std::runtime_error{store.error().text()};
  return *std::move(store);
}

inline Digest digest_of(const LocalStore& store, std::uint64_t key) {
  return KeyDigest{store.secret()}.add(1, std::to_string(key)).finish();
}

inline std::string bytes_of(const std::string& file) {
  std::error_code none;  // a folder, say
  const auto size = std::filesystem::file_size(file, none);
  std::string bytes(none ? 0 : size, '\0');
  std::ifstream{file, std::ios::binary}.read(bytes.data(),
                                             static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

// Replaces the whole file; readable by its owner only, as ours are.
inline void write_file(const std::string& file, std::string_view bytes) {
  std::ofstream{file, std::ios::binary} << bytes;
  ::chmod(file.c_str(), 0600);
}

inline void overwrite(const std::string& file, std::size_t at, std::string_view bytes) {
  std::fstream stream{file, std::ios::binary | std::ios::in | std::ios::out};
  stream.seekp(static_cast<std::streamoff>(at));
  stream << bytes;
}

inline std::string with_flipped_bit(std::string bytes, std::size_t bit) {
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  return bytes;
}

inline Limit ten_an_hour() {
  return {.algorithm = Algorithm::token_bucket, .amount = 10, .period = std::chrono::hours{1}};
}

// What one key has left of ten an hour.
inline std::uint64_t left_of_ten(LocalStore& store, std::uint64_t key = 1) {
  const LimitNumber limit = store.use(ten_an_hour(), {}).value();
  return store.decide({.key = digest_of(store, key), .limit = limit, .cost = 0}, {})
      .decision.remaining;
}

inline void charge_of_ten(LocalStore& store, Cost cost, std::uint64_t key = 1) {
  const LimitNumber limit = store.use(ten_an_hour(), {}).value();
  (void)store.decide({.key = digest_of(store, key), .limit = limit, .cost = cost}, {});
}

}  // namespace sluice::store
