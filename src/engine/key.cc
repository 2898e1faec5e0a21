#include "engine/key.h"

#include "base/characters.h"
#include "engine/stated_number.h"
#include "identity/fields.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace sluice::engine {
namespace {

using rules::Per;

std::string_view address_bytes(const IpAddress& address, unsigned v4_bits, unsigned v6_bits,
                               ValueScratch& scratch) noexcept {
  const IpAddress masked = address.masked(address.is_v4 ? v4_bits : v6_bits);
  // All of it, in the words that it was written in: a wider load would wait for them.
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  std::memcpy(scratch.data(), masked.bytes.data(), kWord);
  std::memcpy(scratch.data() + kWord, masked.bytes.data() + kWord, kWord);
  return {scratch.data(), masked.bits() / 8};
}

void add_address(KeyDigest& digest, const IpAddress& address) noexcept {
  ValueScratch scratch;
  digest.add(static_cast<std::uint8_t>(Per::Kind::ip), address_bytes(address, 32, 64, scratch));
}

std::string_view descriptor_value(const RequestView& request, std::string_view key) noexcept {
  for (const DescriptorEntry& entry : request.descriptor) {
    if (entry.key == key) return entry.value;
  }
  return {};
}

// The value of a header. Also empty if several lines disagree.
std::string_view only_header(const RequestView& request, std::string_view lower_name) noexcept {
  std::string_view value;
  bool found = false;
  for (const HeaderView& one : request.headers) {
    if (!reads_as(one.name, lower_name)) continue;
    if (found && one.value != value) return {};
    value = one.value;
    found = true;
  }
  return value;
}

// As with headers. A value too long to be read counts as missing, too.
std::string_view only_query_field(std::string_view query, std::string_view name,
                                  ValueScratch& scratch) noexcept {
  std::optional<identity::Decoded> value;
  while (const auto field = identity::take_query_field(query)) {
    if (!identity::decodes_to(field->name, name)) continue;
    if (!value) {
      value = identity::decode_field(field->value, scratch);
    } else if (!value->whole || !identity::decodes_to(field->value, value->text)) {
      return {};
    }
  }
  return value && value->whole ? value->text : std::string_view{};
}

// Why a value that the request chooses is unknown.
enum class Untold : std::uint8_t {
  absent,    // or empty
  too_long,  // more than is read
  differs,   // stated twice, differently
};

Untold untold_header(const RequestView& request, std::string_view name) noexcept {
  const auto says_something = [&](const HeaderView& one) {
    return !one.value.empty() && reads_as(one.name, name);
  };
  return std::ranges::any_of(request.headers, says_something) ? Untold::differs : Untold::absent;
}

Untold untold_query_field(std::string_view query, std::string_view name) noexcept {
  std::size_t found = 0;
  bool is_empty = true;
  while (const auto field = identity::take_query_field(query)) {
    if (!identity::decodes_to(field->name, name)) continue;
    ++found;
    is_empty &= field->value.empty();
  }
  if (is_empty) return Untold::absent;
  return found > 1 ? Untold::differs : Untold::too_long;
}

// For a value that only_header or only_query_field returns as empty.
Untold untold(const Per& per, const rules::Asked& asked) noexcept {
  if (per.kind == Per::Kind::header) return untold_header(asked.request, per.name);
  if (per.kind == Per::Kind::query) return untold_query_field(asked.query, per.name);
  return Untold::absent;
}

// The cost in one value. A number too large to be read is the largest; other text costs as if
// absent.
std::uint64_t cost_in(std::string_view text, const rules::CostRule& cost) noexcept {
  const std::optional<std::uint64_t> number = stated_number(text);
  return number ? std::clamp<std::uint64_t>(*number, 1, cost.max) : cost.constant;
}

std::uint64_t cost_in_query(const rules::CostRule& cost, std::string_view query) noexcept {
  std::uint64_t most = 0;
  ValueScratch scratch;
  while (const auto field = identity::take_query_field(query)) {
    if (!identity::decodes_to(field->name, cost.name)) continue;
    most = std::max(most, cost_in(identity::decode_field(field->value, scratch).text, cost));
  }
  return most;
}

std::uint64_t cost_in_headers(const rules::CostRule& cost,
                              std::span<const HeaderView> headers) noexcept {
  std::uint64_t most = 0;
  for (const HeaderView& one : headers) {
    if (!reads_as(one.name, cost.name)) continue;
    each_element(one.value,
                 [&](std::string_view text) { most = std::max(most, cost_in(text, cost)); });
  }
  return most;
}

}  // namespace

std::string_view value_of(const Per& per, const rules::Asked& asked, const rules::MatchedPath& path,
                          ValueScratch& scratch) noexcept {
  const identity::Identity& client = asked.client;
  switch (per.kind) {
    case Per::Kind::user: return client.user;
    case Per::Kind::api_key: return client.api_key;
    case Per::Kind::tenant: return client.tenant;
    case Per::Kind::ip: return address_bytes(client.address, per.v4_bits, per.v6_bits, scratch);
    case Per::Kind::country: return client.country;
    case Per::Kind::asn: {
      if (client.asn == 0) return {};
      const auto end = std::to_chars(scratch.data(), scratch.data() + scratch.size(), client.asn);
      return {scratch.data(), static_cast<std::size_t>(end.ptr - scratch.data())};
    }
    case Per::Kind::method: return asked.method;
    case Per::Kind::route:
      return path.pattern != nullptr ? path.pattern->text() : std::string_view{};
    case Per::Kind::path:
      return path.pattern != nullptr ? path.pattern->value_in(path.text, per.name)
                                     : std::string_view{};
    case Per::Kind::header: return only_header(asked.request, per.name);
    case Per::Kind::query: return only_query_field(asked.query, per.name, scratch);
    case Per::Kind::claim:
      return client.claims != nullptr ? client.claims->find(per.name) : std::string_view{};
    case Per::Kind::attribute:
      return client.attributes != nullptr ? client.attributes->find(per.name) : std::string_view{};
    case Per::Kind::descriptor: return descriptor_value(asked.request, per.name);
  }
  return {};
}

bool is_ambiguous(const Per& per, const rules::Asked& asked) noexcept {
  return untold(per, asked) == Untold::differs;
}

Key key_of(const Plan& plan, const rules::Asked& asked, const rules::MatchedPath& path) noexcept {
  using rules::OnMissing;
  const rules::Rule& rule = *plan.rule;
  ValueScratch scratch;
  if (plan.hasher) {
    const std::string_view value = value_of(rule.per[0], asked, path, scratch);
    if (!value.empty()) [[likely]]
      return {.digest = plan.is_shared ? (*plan.hasher)(value)
                                       : Digest{.low = plan.hasher->low(value), .high = 0}};
  }
  KeyDigest digest = plan.prefix;
  for (const Per& per : rule.per) {
    const std::string_view value = value_of(per, asked, path, scratch);
    if (!value.empty()) {
      digest.add(static_cast<std::uint8_t>(per.kind), value);
      continue;
    }
    // Counts by none of them: a client that adds another one must not get another counter.
    const Untold why = untold(per, asked);
    if (why == Untold::differs) return {.fate = Key::Fate::ambiguous, .digest = {}};
    switch (rule.on_missing) {
      case OnMissing::skip:
        if (why == Untold::absent) return {.fate = Key::Fate::skipped, .digest = {}};
        add_address(digest, asked.client.address);
        break;
      case OnMissing::reject: return {.fate = Key::Fate::refused, .digest = {}};
      case OnMissing::shared: digest.add(static_cast<std::uint8_t>(KeyPart::shared), {}); break;
      case OnMissing::ip: add_address(digest, asked.client.address); break;
    }
  }
  return {.digest = digest.finish()};
}

store::Cost stated_cost(const rules::CostRule& cost, const rules::Asked& asked) noexcept {
  using Kind = rules::CostRule::Kind;
  if (cost.kind == Kind::method) {
    const auto found =
        std::ranges::find(cost.by_method, asked.method,
                          [](const auto& one) -> std::string_view { return one.first; });
    return found == cost.by_method.end() ? cost.constant : found->second;
  }
  const std::uint64_t stated = cost.kind == Kind::header
                                   ? cost_in_headers(cost, asked.request.headers)
                                   : cost_in_query(cost, asked.query);
  return static_cast<store::Cost>(stated == 0 ? cost.constant : stated);
}

}  // namespace sluice::engine
