// The syntax of single rate limit headers: structured fields (RFC 9651) and plain numbers. Used by
// rate_headers.cc alone. No allocation.
#pragma once

#include "base/text_writer.h"
#include "frontend/responses/limit_view.h"
#include "frontend/responses/rate_headers.h"
#include "net/http/head_writer.h"
#include "net/http/message.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::frontend {

// ---- writing ----------------------------------------------------------------------------------

// A list may span several lines of the same name, so a long list continues on the next line.
class ListLine {
 public:
  ListLine(net::HeadWriter& writer, std::string_view name) noexcept
      : writer_(writer), name_(name) {}
  ListLine(const ListLine&) = delete;
  ListLine& operator=(const ListLine&) = delete;
  ~ListLine() = default;

  // `write` appends one item. An item longer than a line is omitted.
  template <class Write>
  void add(const Write& write) noexcept {
    if (text_.size() > 0) {
      const std::size_t before = text_.size();
      text_.put(", ");
      write(text_);
      if (!text_.is_full()) return;
      text_.rewind(before);
      finish();
    }
    write(text_);
    if (text_.is_full()) text_.rewind(0);
  }
  void finish() noexcept;

 private:
  static constexpr std::size_t kLineBytes = 1024;

  net::HeadWriter& writer_;
  std::string_view name_;
  std::array<char, kLineBytes> room_;
  TextWriter text_{room_};
};

struct FieldStyle {
  Family family = Family::ietf_11;
  WallTime now;
  std::string_view partition;  // base64; empty: none
};

// Whether all fields are lists with an item for each limit, by its name.
[[nodiscard]] constexpr bool is_list_of_names(Family family) noexcept {
  return family == Family::ietf_11 || family == Family::ietf_next;
}
// Whether a list always has exactly one element.
[[nodiscard]] constexpr bool shows_one(Family family, RateHeaders::Role role) noexcept {
  return family == Family::ietf_07 && role == RateHeaders::Role::rate;
}

void add_item(ListLine& line, RateHeaders::Role role, const LimitView& view,
              const FieldStyle& style) noexcept;
void write_number(net::HeadWriter& writer, const RateHeaders::Field& field, const LimitView& view,
                  const FieldStyle& style) noexcept;

// ---- beside the origin's headers --------------------------------------------------------------

enum class Beside : std::uint8_t { origin_alone, both, ours_alone };

// Which value stays. Of plain numbers the stricter one; unreadable values of the origin stay.
[[nodiscard]] Beside compare_with_origin(const RateHeaders::FamilyFields& fields,
                                         std::uint64_t remaining,
                                         std::span<const HeaderView> origin) noexcept;
void leave_out(const RateHeaders::FamilyFields& fields, std::span<const HeaderView> origin,
               net::HeaderSet& left_out) noexcept;

}  // namespace sluice::frontend
