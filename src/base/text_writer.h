// Appends text to a buffer of the caller's, without an allocation.
//
// A piece is written whole or not at all; after the first piece that does not fit nothing more is,
// so the text is always a beginning of the intended one. One thread.
#pragma once

#include <sluice/address.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace sluice {

class TextWriter {
 public:
  explicit TextWriter(std::span<char> room) noexcept : room_(room) {}

  void put(std::string_view text) noexcept {
    if (is_full_ || room_.size() - size_ < text.size()) {
      is_full_ = true;
      return;
    }
    // An empty view may point nowhere, which memcpy must not see.
    if (!text.empty()) std::memcpy(room_.data() + size_, text.data(), text.size());
    size_ += text.size();
  }
  void put(char c) noexcept { put(std::string_view{&c, 1}); }

  void number(std::uint64_t value) noexcept {
    char digits[20];
    const char* const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    put(std::string_view{digits, static_cast<std::size_t>(end - digits)});
  }
  // With zeros in front of it, if it has fewer digits than `width`, which is at most 20.
  void padded(std::uint64_t value, unsigned width) noexcept;

  // With quotes and escapes, as json_string() writes it.
  void json(std::string_view text) noexcept;
  // As RFC 5952 writes it.
  void address(const IpAddress& address) noexcept;

  [[nodiscard]] bool is_full() const noexcept { return is_full_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::string_view text() const noexcept { return {room_.data(), size_}; }

  // Back to an earlier size, as if what came behind it had never been written.
  void rewind(std::size_t size) noexcept {
    size_ = size;
    is_full_ = false;
  }

 private:
  std::span<char> room_;
  std::size_t size_ = 0;
  bool is_full_ = false;
};

}  // namespace sluice
