// One cookie, or one field of a query, by its name.
//
// Where a name is repeated the first one counts, as in most servers. Nothing allocates.
#pragma once

#include <sluice/request.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace sluice::identity {

// Names are compared exactly. The value is as it was sent, quotes included. All Cookie lines are
// searched, since HTTP/2 splits them.
[[nodiscard]] std::optional<std::string_view> find_cookie(std::span<const HeaderView> headers,
                                                          std::string_view name) noexcept;

// Name and value are decoded: %xx, and + for a space. A percent sign that encodes nothing stands
// for itself. A value that needs decoding goes to the scratch; one that does not fit counts as
// absent, and so falls under whatever the rule says of absent values.
[[nodiscard]] std::optional<std::string_view> find_query_field(std::string_view query,
                                                               std::string_view name,
                                                               std::span<char> scratch) noexcept;

// Takes one character of a query, however it is written, off the front of a text that is not empty.
char take_decoded(std::string_view& text) noexcept;

}  // namespace sluice::identity
