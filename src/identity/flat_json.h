// Strict JSON as a flat list of named values: {"a": {"b": [1, true]}} is a.b.0 = 1, a.b.1 = true.
//
// Of a name that occurs twice, programs may take either value, and an attacker can use two programs
// that disagree about a token. So such a text is rejected, also when the name is spelled by a dot
// in one place and by nesting in the other. Depth, members and memory are bounded, the text must be
// UTF-8, and the outermost value must be an object. Immutable once parsed, so threads may then
// share it.
#pragma once

#include "identity/identity.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::identity {

struct JsonLimits {
  std::size_t bytes_max = 16U << 10U;
  std::size_t members_max = 512;
  unsigned depth_max = 8;
};

enum class JsonKind : std::uint8_t { object, array, text, number, boolean, null };

struct JsonFault {
  const char* what = nullptr;  // static text; null: there is none
  std::size_t at = 0;          // bytes from the start

  [[nodiscard]] bool ok() const noexcept { return what == nullptr; }
};

class FlatJson final : public Attributes {
 public:
  struct Member {
    std::string_view name;
    std::string_view value;  // of texts unescaped, of numbers and truth values as written
    JsonKind kind = JsonKind::null;
  };

  // Once per object.
  [[nodiscard]] JsonFault parse(std::string_view text, const JsonLimits& limits = {});

  // Empty for what is absent, null, a list or an object.
  [[nodiscard]] std::string_view find(std::string_view name) const noexcept override;

  [[nodiscard]] std::optional<Member> member(std::string_view name) const noexcept;
  // The text at an index of a list.
  [[nodiscard]] std::optional<Member> element(std::string_view list,
                                              std::size_t index) const noexcept;

  // All members, ordered by name.
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] Member at(std::size_t index) const noexcept;

  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return sizeof(*this) + text_.capacity() + entries_.capacity() * sizeof(Entry);
  }

 private:
  friend class FlatJsonParser;

  // Places in text_, which may still move while it grows.
  struct Entry {
    std::uint32_t name_at = 0;
    std::uint32_t name_size = 0;
    std::uint32_t value_at = 0;
    std::uint32_t value_size = 0;
    JsonKind kind = JsonKind::null;
  };
  [[nodiscard]] std::string_view name_of(const Entry& entry) const noexcept {
    return std::string_view{text_}.substr(entry.name_at, entry.name_size);
  }

  std::string text_;
  std::vector<Entry> entries_;
};

}  // namespace sluice::identity
