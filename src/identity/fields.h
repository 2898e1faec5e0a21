// Cookies, and the fields of a query: one by its name, or all of them.
//
// Nothing allocates.
#pragma once

#include <sluice/request.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace sluice::identity {

struct Field {
  std::string_view name;  // both as they were sent
  std::string_view value;
};

// Takes the next field off a query or a Cookie line. What has no name of its own is skipped; none:
// there is nothing left.
[[nodiscard]] std::optional<Field> take_query_field(std::string_view& query) noexcept;
[[nodiscard]] std::optional<Field> take_cookie(std::string_view& line) noexcept;

// A name or a value of a query as it is meant: %xx, and + for a space. A percent sign that encodes
// nothing stands for itself. What needs decoding goes to the scratch, as much of it as fits.
struct Decoded {
  std::string_view text;
  bool whole = true;
};
[[nodiscard]] Decoded decode_field(std::string_view sent, std::span<char> scratch) noexcept;
[[nodiscard]] bool decodes_to(std::string_view sent, std::string_view plain) noexcept;

// Where a name is repeated, these take the first one, as most servers do. Names are compared
// exactly.
//
// The value of a cookie is as it was sent, quotes included. All Cookie lines are searched, since
// HTTP/2 splits them.
[[nodiscard]] std::optional<std::string_view> find_cookie(std::span<const HeaderView> headers,
                                                          std::string_view name) noexcept;

// Name and value of a query field are decoded. A value that does not fit counts as absent, and so
// falls under whatever is said of absent values.
[[nodiscard]] std::optional<std::string_view> find_query_field(std::string_view query,
                                                               std::string_view name,
                                                               std::span<char> scratch) noexcept;

// Takes one character of a query, however it is written, off the front of a text that is not empty.
char take_decoded(std::string_view& text) noexcept;

}  // namespace sluice::identity
