#include "identity/api_key_file.h"

#include "base/read_file.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "identity/flat_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace sluice::identity {
namespace {

constexpr JsonLimits kLimits{.bytes_max = 64U << 20U, .members_max = 4'000'000, .depth_max = 12};
constexpr std::string_view kList = "keys.";
constexpr std::string_view kAttributes = "attributes";
constexpr std::array<std::string_view, 7> kMembers{"name", "hash",       "user",   "tenant",
                                                   "tier", "attributes", "expires"};

// keys.12.tier: 12 and tier.
struct Place {
  std::size_t index = 0;
  std::string_view member;  // empty: the key itself
};

std::optional<Place> place_of(std::string_view name) {
  if (!name.starts_with(kList)) return std::nullopt;
  name.remove_prefix(kList.size());
  const std::size_t dot = name.find('.');
  const std::optional<std::uint64_t> index = parse_number(name.substr(0, dot));
  if (!index) return std::nullopt;
  return Place{*index, dot == std::string_view::npos ? std::string_view{} : name.substr(dot + 1)};
}

Parsed<void> refuse(std::string_view where, std::string what, std::string remedy) {
  return mistake(std::string{where} + ": " + std::move(what), std::move(remedy));
}

std::string nth(std::size_t index) { return "key " + std::to_string(index + 1); }

std::string* text_member(ApiKeyRecord& record, std::string_view member) {
  if (member == "name") return &record.name;
  if (member == "hash") return &record.hash;
  if (member == "user") return &record.user;
  if (member == "tenant") return &record.tenant;
  if (member == "tier") return &record.tier;
  return nullptr;
}

Parsed<void> add_attribute(ApiKeyRecord& record, std::string_view name,
                           const FlatJson::Member& value) {
  const bool scalar = value.kind == JsonKind::text || value.kind == JsonKind::number ||
                      value.kind == JsonKind::boolean;
  if (scalar) record.attributes.emplace_back(name, value.value);
  return {};
}

Parsed<void> add(ApiKeyRecord& record, const Place& at, const FlatJson::Member& value,
                 std::string_view place) {
  if (at.member.empty()) {
    if (value.kind == JsonKind::object) return {};
    return refuse(place, nth(at.index) + " is not an object",
                  R"(write {"name": ..., "hash": ...})");
  }
  if (at.member == kAttributes && value.kind == JsonKind::object) return {};
  const std::string nested = std::string{kAttributes} + ".";
  if (at.member.starts_with(nested)) {
    return add_attribute(record, at.member.substr(nested.size()), value);
  }
  if (std::find(kMembers.begin(), kMembers.end(), at.member) == kMembers.end()) {
    const std::string_view meant = nearest_word(at.member, kMembers);
    return refuse(place, nth(at.index) + " has an unknown member " + quoted(at.member),
                  meant.empty() ? "known are " + join_words(kMembers)
                                : "did you mean " + quoted(meant) + "?");
  }
  if (value.kind != JsonKind::text) {
    return refuse(place, nth(at.index) + ": " + std::string{at.member} + " has the wrong type",
                  at.member == kAttributes ? "write an object" : "write a text");
  }
  if (std::string* const text = text_member(record, at.member)) {
    *text = value.value;
    return {};
  }
  Parsed<WallTime> expires = parse_rfc3339(value.value);
  if (!expires)
    return refuse(place, nth(at.index) + ": " + expires.error().message, expires.error().remedy);
  record.expires = *expires;
  return {};
}

std::string position(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t begin = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format(":{}:{}", line, at - begin + 1);
}

}  // namespace

Parsed<std::vector<ApiKeyRecord>> parse_api_keys(std::string_view json, std::string_view place) {
  FlatJson file;
  const JsonFault fault = file.parse(json, kLimits);
  if (!fault.ok()) {
    return mistake(std::string{place} + position(json, fault.at) + ": " + fault.what);
  }
  const std::optional<FlatJson::Member> list = file.member("keys");
  if (!list || list->kind != JsonKind::array) {
    return mistake(std::string{place} + ": there is no list of keys", R"(write {"keys": [...]})");
  }
  std::vector<ApiKeyRecord> records;
  for (std::size_t i = 0; i < file.size(); ++i) {
    const FlatJson::Member member = file.at(i);
    if (member.name == "keys") continue;
    const std::optional<Place> at = place_of(member.name);
    if (!at || at->index >= file.size()) {  // no list is longer than all members together
      return mistake(std::string{place} + ": unknown member " + quoted(member.name),
                     R"(only "keys" is known)");
    }
    // Ordered by name, 10 comes before 2.
    if (at->index >= records.size()) records.resize(at->index + 1);
    Parsed<void> added = add(records[at->index], *at, member, place);
    if (!added) return tl::unexpected(std::move(added.error()));
  }
  return records;
}

Parsed<std::vector<ApiKeyRecord>> read_api_keys(const std::string& path) {
  Parsed<std::string> content = read_file(path, kLimits.bytes_max);
  if (!content) return tl::unexpected(std::move(content.error()));
  return parse_api_keys(*content, path);
}

}  // namespace sluice::identity
