// The subject of an exception: an address or a range of them, a key, a user, a tenant.
#pragma once

#include "base/flat_map.h"
#include "base/hash.h"
#include "identity/identity.h"
#include <sluice/address.h>
#include <sluice/diagnostic.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::engine {

struct Subject {
  enum class Kind : std::uint8_t { ip, api_key, user, tenant };
  Kind kind = Kind::ip;
  IpRange range;     // ip
  std::string text;  // the others: the public name of the key, the user, the tenant

  // As people write it: ip=10.0.0.0/8, api_key=acme-1, user=ann, tenant=acme.
  [[nodiscard]] static Parsed<Subject> parse(std::string_view written);
  [[nodiscard]] std::string written() const;

  friend bool operator==(const Subject&, const Subject&) = default;
};
[[nodiscard]] std::string_view to_string(Subject::Kind kind) noexcept;

// Finds the numbers filed under subjects. A lookup costs one probe for a text, and for an address
// one probe for each prefix length on file. Built once, then immutable.
class SubjectIndex {
 public:
  void add(const Subject& subject, std::uint32_t number);
  [[nodiscard]] bool has(Subject::Kind kind) const noexcept {
    return filed_[static_cast<std::size_t>(kind)];
  }

  // Calls visit(number) for numbers filed under a text, or under a range around an address, the
  // narrowest first, until visit returns true; then returns true.
  template <class Visit>
  bool find(Subject::Kind kind, std::string_view text, Visit&& visit) const noexcept {
    if (!has(kind) || text.empty()) return false;
    return each(texts_[static_cast<std::size_t>(kind)], text, visit);
  }
  template <class Visit>
  bool find(const IpAddress& address, Visit&& visit) const noexcept {
    if (!has(Subject::Kind::ip)) return false;
    for (const unsigned bits : address.is_v4 ? v4_lengths_ : v6_lengths_) {
      if (each(ranges_, IpRange{.first = address.masked(bits), .prefix_bits = bits}, visit)) {
        return true;
      }
    }
    return false;
  }

 private:
  struct RangeHash {
    std::uint64_t operator()(const IpRange& range) const noexcept {
      return hash_address(range.prefix_bits * kOddFactor, range.first);
    }
  };
  using Numbers = std::vector<std::uint32_t>;
  using Texts = FlatMap<std::string, Numbers>;

  template <class Map, class Key, class Visit>
  static bool each(const Map& map, const Key& key, Visit& visit) noexcept {
    const Numbers* const found = map.find(key);
    if (found == nullptr) return false;
    for (const std::uint32_t number : *found) {
      if (visit(number)) return true;
    }
    return false;
  }

  std::array<Texts, 4> texts_;  // by kind
  FlatMap<IpRange, Numbers, RangeHash> ranges_;
  std::vector<std::uint8_t> v4_lengths_;  // of prefixes, longest first
  std::vector<std::uint8_t> v6_lengths_;
  std::array<bool, 4> filed_{};
};

}  // namespace sluice::engine
