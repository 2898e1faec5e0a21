#include "frontend/responses/rate_fields.h"

#include "base/characters.h"
#include "base/json_escape.h"
#include "base/text.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace sluice::frontend {
namespace {

using Role = RateHeaders::Role;

// The grammar of rules limits names to 64 characters each; longer ones from elsewhere are cut.
constexpr std::size_t kNameBytes = 160;

// ---- structured fields ------------------------------------------------------------------------

// Integers have 15 digits at most.
std::uint64_t sf_integer(std::uint64_t value) noexcept {
  return std::min<std::uint64_t>(value, 999'999'999'999'999);
}

// Printable ASCII between quotes. Other characters are not allowed. Escapes the same ones as JSON.
void put_sf_string(TextWriter& writer, std::string_view text) noexcept {
  if (is_plain_in_json(text)) return writer.put("\"", text, "\"");
  writer.put('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') writer.put('\\');
    writer.put(c >= 0x20 && c < 0x7f ? c : '?');
  }
  writer.put('"');
}

void put_name(TextWriter& writer, const LimitView& view) noexcept {
  std::array<char, kNameBytes> room;
  put_sf_string(writer, name_of(view, room));
}

void put_parameter(TextWriter& writer, char name, std::uint64_t value) noexcept {
  const std::array<char, 3> begin{';', name, '='};
  writer.put(std::string_view{begin.data(), begin.size()});
  writer.number(sf_integer(value));
}

// The parameter names of RateLimit in the drafts.
struct RateParameters {
  char available;
  char window;
};
constexpr RateParameters kDraft11{.available = 'r', .window = 't'};
constexpr RateParameters kDraftNext{.available = 'a', .window = 'w'};

void put_policy(TextWriter& item, const LimitView& view, const FieldStyle& style) noexcept {
  if (style.family == Family::ietf_07) {
    item.number(sf_integer(view.policy.quota));
  } else {
    put_name(item, view);
    put_parameter(item, 'q', view.policy.quota);
  }
  if (view.policy.window_s > 0) {
    put_parameter(item, 'w', view.policy.window_s);
  } else if (style.family != Family::ietf_07) {
    item.put(";qu=\"concurrent-requests\"");
  }
}

void put_rate(TextWriter& item, const LimitView& view, const FieldStyle& style) noexcept {
  const RateParameters& names = style.family == Family::ietf_next ? kDraftNext : kDraft11;
  put_name(item, view);
  put_parameter(item, names.available, view.remaining);
  // The end of requests in flight is unknown.
  if (view.policy.window_s > 0 || !view.has_policy) {
    put_parameter(item, names.window, seconds_rounded_up(view.available_in));
  }
}

void put_partition(TextWriter& item, std::string_view partition) noexcept {
  if (partition.empty()) return;
  item.put(";pk=:", partition, ":");
}

void put_dictionary(TextWriter& item, const LimitView& view) noexcept {
  if (view.has_policy) {
    item.put("limit=");
    item.number(sf_integer(view.capacity));
    item.put(", ");
  }
  item.put("remaining=");
  item.number(sf_integer(view.remaining));
  item.put(", reset=");
  item.number(seconds_rounded_up(view.available_in));
}

// Rule names from elsewhere may contain characters that a header may not.
void write_plain(net::HeadWriter& writer, std::string_view name, std::string_view value) noexcept {
  std::array<char, kNameBytes> room;
  TextWriter plain{room};
  for (const char c : value) plain.put(c > 0x20 && c < 0x7f ? c : '_');
  writer.header(name, plain.text());
}

// ---- numbers ----------------------------------------------------------------------------------

bool is_epoch(Family family) noexcept {
  return family == Family::x_ratelimit_epoch || family == Family::x_rate_limit_epoch;
}

std::uint64_t used_of(const LimitView& view) noexcept {
  return view.capacity - std::min(view.remaining, view.capacity);
}

std::uint64_t reset_of(const LimitView& view, const FieldStyle& style) noexcept {
  if (!is_epoch(style.family)) return seconds_rounded_up(view.available_in);
  return seconds_rounded_up(style.now.time_since_epoch() + view.available_in);
}

// ---- the origin's -----------------------------------------------------------------------------

// The field with the remaining units: by itself, or within a dictionary.
bool tells_remaining(Role role) noexcept { return role == Role::remaining || role == Role::rate; }

std::optional<std::uint64_t> remaining_in(Role role, std::string_view value) noexcept {
  value = trimmed(value);
  if (role == Role::rate) {
    constexpr std::string_view kKey = "remaining=";
    const std::size_t at = value.find(kKey);
    if (at == std::string_view::npos) return std::nullopt;
    value.remove_prefix(at + kKey.size());
    value = trimmed(value.substr(0, value.find_first_of(",; ")));
  }
  return parse_number(value);
}

const RateHeaders::Field* field_named(const RateHeaders::FamilyFields& fields,
                                      std::string_view name) noexcept {
  for (const RateHeaders::Field& field : fields.fields) {
    if (!field.name.empty() && equals_ignoring_case(field.name, name)) return &field;
  }
  return nullptr;
}

// Lists of named items can be joined, unless the origin's value is no such list: an older draft has
// fields of the same names.
Beside compare_lists(const RateHeaders::FamilyFields& fields,
                     std::span<const HeaderView> origin) noexcept {
  for (const HeaderView& header : origin) {
    if (field_named(fields, header.name) == nullptr) continue;
    if (!trimmed(header.value).starts_with('"')) return Beside::origin_alone;
  }
  return Beside::both;
}

}  // namespace

// ---- lists ------------------------------------------------------------------------------------

void ListLine::finish() noexcept {
  if (text_.size() > 0) writer_.header(name_, text_.text());
  text_.rewind(0);
}

void add_item(ListLine& line, Role role, const LimitView& view, const FieldStyle& style) noexcept {
  if (role == Role::policy && !view.has_policy) return;
  line.add([&](TextWriter& item) {
    if (role == Role::policy) {
      put_policy(item, view, style);
    } else if (style.family == Family::ietf_07) {
      put_dictionary(item, view);
    } else {
      put_rate(item, view, style);
    }
    if (is_list_of_names(style.family)) put_partition(item, style.partition);
  });
}

void write_number(net::HeadWriter& writer, const RateHeaders::Field& field, const LimitView& view,
                  const FieldStyle& style) noexcept {
  switch (field.role) {
    case Role::limit:
      if (view.has_policy) writer.header(field.name, view.capacity);
      break;
    case Role::remaining: writer.header(field.name, view.remaining); break;
    case Role::used:
      if (view.has_policy) writer.header(field.name, used_of(view));
      break;
    case Role::reset: writer.header(field.name, reset_of(view, style)); break;
    case Role::resource: write_plain(writer, field.name, view.rule); break;
    case Role::policy:
    case Role::rate: break;
  }
}

// ---- beside the origin's headers --------------------------------------------------------------

Beside compare_with_origin(const RateHeaders::FamilyFields& fields, std::uint64_t remaining,
                           std::span<const HeaderView> origin) noexcept {
  if (is_list_of_names(fields.family)) return compare_lists(fields, origin);
  bool is_there = false;
  std::optional<std::uint64_t> least;
  for (const HeaderView& header : origin) {
    const RateHeaders::Field* const field = field_named(fields, header.name);
    if (field == nullptr) continue;
    is_there = true;
    if (!tells_remaining(field->role)) continue;
    const std::optional<std::uint64_t> left = remaining_in(field->role, header.value);
    if (!left) return Beside::origin_alone;
    least = least ? std::min(*least, *left) : *left;
  }
  if (!is_there) return Beside::both;
  return least && remaining < *least ? Beside::ours_alone : Beside::origin_alone;
}

void leave_out(const RateHeaders::FamilyFields& fields, std::span<const HeaderView> origin,
               net::HeaderSet& left_out) noexcept {
  for (std::size_t i = 0; i < origin.size(); ++i) {
    if (field_named(fields, origin[i].name) != nullptr) left_out.add(i);
  }
}

}  // namespace sluice::frontend
