// Appends text to a buffer of the caller's, without an allocation.
//
// A piece is written whole or not at all; after the first piece that does not fit nothing more is,
// so the text is always a beginning of the intended one. One thread.
#pragma once

#include <sluice/address.h>

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <system_error>

namespace sluice {

class TextWriter {
 public:
  explicit TextWriter(std::span<char> room) noexcept
      : begin_(room.data()), at_(begin_), limit_(begin_ + room.size()), end_(limit_) {}

  // The pieces of one call go together: all of them or none. Always inlined, so that a literal is
  // a few stores instead of a call.
  template <std::convertible_to<std::string_view>... Pieces>
  [[gnu::always_inline]] void put(const Pieces&... pieces) noexcept {
    put_views(std::string_view{pieces}...);
  }
  [[gnu::always_inline]] void put(char c) noexcept { put_views(std::string_view{&c, 1}); }

  void number(std::uint64_t value) noexcept {
    if (value < 10) return put(static_cast<char>('0' + value));
    const std::to_chars_result written = std::to_chars(at_, limit_, value);
    if (written.ec != std::errc{}) return overflow();
    at_ = written.ptr;
  }
  // With zeros in front of it, if it has fewer digits than `width`, which is at most 20.
  void padded(std::uint64_t value, unsigned width) noexcept;

  // With quotes and escapes, as json_string() writes it.
  void json(std::string_view text) noexcept;
  // As RFC 5952 writes it.
  void address(const IpAddress& address) noexcept;

  [[nodiscard]] bool is_full() const noexcept { return is_full_; }
  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(at_ - begin_); }
  [[nodiscard]] std::string_view text() const noexcept { return {begin_, size()}; }

  // Back to an earlier size, as if what came behind it had never been written.
  void rewind(std::size_t size) noexcept {
    at_ = begin_ + size;
    limit_ = end_;
    is_full_ = false;
  }

 private:
  template <class... Views>
  [[gnu::always_inline]] void put_views(Views... views) noexcept {
    if (static_cast<std::size_t>(limit_ - at_) < (views.size() + ...)) return overflow();
    (copy(views), ...);
  }
  [[gnu::always_inline]] void copy(std::string_view text) noexcept {
    // An empty view may point nowhere, which memcpy must not see.
    if (!text.empty()) std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  // Nothing more fits from now on.
  void overflow() noexcept {
    limit_ = at_;
    is_full_ = true;
  }

  char* begin_;
  char* at_;     // behind what was written
  char* limit_;  // behind what may be written: the end, or, after an overflow, `at_`
  char* end_;
  bool is_full_ = false;
};

}  // namespace sluice
