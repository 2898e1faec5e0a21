// Redis's protocol, RESP2: replies as values, commands and replies as bytes.
//
// Enough for a simulated server and its clients. Bytes come from simulated parties, so malformed
// ones are a mistake of the test and throw.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::sim {

struct Reply {
  enum class Kind : std::uint8_t { status, error, integer, bulk, nil, array };

  Kind kind = Kind::nil;
  std::int64_t integer = 0;
  std::string text;  // of a status, an error or a bulk string
  std::vector<Reply> items;

  [[nodiscard]] static Reply status(std::string_view text) {
    return {.kind = Kind::status, .text = std::string{text}};
  }
  // Begins with a code: "ERR", "WRONGTYPE".
  [[nodiscard]] static Reply error(std::string_view text) {
    return {.kind = Kind::error, .text = std::string{text}};
  }
  [[nodiscard]] static Reply number(std::int64_t value) {
    return {.kind = Kind::integer, .integer = value};
  }
  [[nodiscard]] static Reply bulk(std::string_view text) {
    return {.kind = Kind::bulk, .text = std::string{text}};
  }
  [[nodiscard]] static Reply array(std::vector<Reply> items = {}) {
    return {.kind = Kind::array, .items = std::move(items)};
  }

  [[nodiscard]] bool is_error() const noexcept { return kind == Kind::error; }
  // The numbers of an array, for store::read_reply(); throws if it is something else.
  [[nodiscard]] std::vector<std::int64_t> numbers() const;
  // For messages of tests.
  [[nodiscard]] std::string described() const;

  friend bool operator==(const Reply&, const Reply&) = default;
};

// A command and its arguments; views of the caller's texts.
using Words = std::span<const std::string_view>;

void append_command(std::string& to, Words words);
void append_reply(std::string& to, const Reply& reply);

// Each takes one from the front of the bytes.
[[nodiscard]] std::vector<std::string_view> take_command(std::string_view& bytes);
[[nodiscard]] Reply take_reply(std::string_view& bytes);

}  // namespace sluice::sim
