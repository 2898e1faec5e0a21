#include "engine/key.h"

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
  // All of it, and by the words that it was made of: a wider load would wait for them.
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

// As with headers. One that is too long to be read counts as missing, too.
std::string_view only_query_field(std::string_view query, std::string_view name,
                                  ValueScratch& scratch) noexcept {
  std::string_view first_sent;
  std::size_t found = 0;
  while (const auto field = identity::take_query_field(query)) {
    if (!identity::decodes_to(field->name, name)) continue;
    if (found++ == 0) first_sent = field->value;
    if (field->value != first_sent) return {};
  }
  const identity::Decoded value = identity::decode_field(first_sent, scratch);
  return value.whole ? value.text : std::string_view{};
}

// It is there, but cannot be told: it says several things, or more than is read. Who sends that is
// not treated as if he had sent nothing.
bool is_unclear(const Per& per, const rules::Asked& asked) noexcept {
  std::size_t found = 0;
  bool whole = true;
  if (per.kind == Per::Kind::header) {
    for (const HeaderView& one : asked.request.headers) {
      found += equals_ignoring_case(one.name, per.name) ? 1U : 0U;
    }
  } else if (per.kind == Per::Kind::query) {
    std::string_view query = asked.query;
    ValueScratch scratch;
    while (const auto field = identity::take_query_field(query)) {
      if (!identity::decodes_to(field->name, per.name)) continue;
      ++found;
      whole = identity::decode_field(field->value, scratch).whole;
    }
  }
  return found > 1 || !whole;
}

// What one value costs. More than can be read is the most; what is no number costs as if there were
// none.
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
    if (equals_ignoring_case(one.name, cost.name)) most = std::max(most, cost_in(one.value, cost));
  }
  return most;
}

}  // namespace

std::string_view only_header(const RequestView& request, std::string_view lower_name) noexcept {
  std::string_view value;
  bool found = false;
  for (const HeaderView& one : request.headers) {
    if (!equals_ignoring_case(one.name, lower_name)) continue;
    if (found && one.value != value) return {};
    value = one.value;
    found = true;
  }
  return value;
}

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

Key key_of(const Plan& plan, const rules::Asked& asked, const rules::MatchedPath& path) noexcept {
  using rules::Missing;
  const rules::Rule& rule = *plan.rule;
  ValueScratch scratch;
  if (plan.hasher) {
    const std::string_view value = value_of(rule.per[0], asked, path, scratch);
    if (!value.empty()) [[likely]]
      return {.digest = {.low = plan.hasher->low(value)}};
  }
  KeyDigest digest = plan.prefix;
  for (const Per& per : rule.per) {
    const std::string_view value = value_of(per, asked, path, scratch);
    if (!value.empty()) {
      digest.add(static_cast<std::uint8_t>(per.kind), value);
      continue;
    }
    switch (rule.missing) {
      case Missing::skip:
        if (!is_unclear(per, asked)) return {.fate = Key::Fate::skipped, .digest = {}};
        add_address(digest, asked.client.address);
        break;
      case Missing::refuse: return {.fate = Key::Fate::refused, .digest = {}};
      case Missing::shared: digest.add(static_cast<std::uint8_t>(KeyPart::shared), {}); break;
      case Missing::ip: add_address(digest, asked.client.address); break;
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
