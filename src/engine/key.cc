#include "engine/key.h"

#include "base/text.h"
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

std::string_view descriptor_value(const RequestView& request, std::string_view key) noexcept {
  for (const DescriptorEntry& entry : request.descriptor) {
    if (entry.key == key) return entry.value;
  }
  return {};
}

}  // namespace

std::string_view value_of(const Per& per, const rules::Asked& asked,
                          const rules::PathTemplate* path, ValueScratch& scratch) noexcept {
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
    case Per::Kind::method: return asked.request.method;
    case Per::Kind::route: return path != nullptr ? path->text() : std::string_view{};
    case Per::Kind::path:
      return path != nullptr ? path->value_in(asked.path, per.name) : std::string_view{};
    case Per::Kind::header: return asked.request.header(per.name).value_or(std::string_view{});
    case Per::Kind::query:
      return identity::find_query_field(asked.query, per.name, scratch)
          .value_or(std::string_view{});
    case Per::Kind::claim:
      return client.claims != nullptr ? client.claims->find(per.name) : std::string_view{};
    case Per::Kind::descriptor: return descriptor_value(asked.request, per.name);
  }
  return {};
}

Key key_of(const Plan& plan, const rules::Asked& asked, const rules::PathTemplate* path) noexcept {
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
      case Missing::skip: return {.fate = Key::Fate::skipped, .digest = {}};
      case Missing::refuse: return {.fate = Key::Fate::refused, .digest = {}};
      case Missing::shared: digest.add(static_cast<std::uint8_t>(KeyPart::shared), {}); break;
      case Missing::ip:
        digest.add(static_cast<std::uint8_t>(Per::Kind::ip),
                   address_bytes(asked.client.address, 32, 64, scratch));
        break;
    }
  }
  return {.digest = digest.finish()};
}

store::Cost stated_cost(const rules::CostRule& cost, const rules::Asked& asked) noexcept {
  using Kind = rules::CostRule::Kind;
  if (cost.kind == Kind::method) {
    const auto found =
        std::ranges::find(cost.by_method, asked.request.method,
                          [](const auto& one) -> std::string_view { return one.first; });
    return found == cost.by_method.end() ? cost.constant : found->second;
  }
  ValueScratch scratch;
  const auto text = cost.kind == Kind::header
                        ? asked.request.header(cost.name)
                        : identity::find_query_field(asked.query, cost.name, scratch);
  const auto number = text ? parse_number(*text) : std::nullopt;
  if (!number) return cost.constant;
  return static_cast<store::Cost>(std::clamp<std::uint64_t>(*number, 1, cost.max));
}

}  // namespace sluice::engine
