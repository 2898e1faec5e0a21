// Finds the rules that may match a request, without comparing all of them.
//
// Every rule is filed under its rarest condition: of its conditions (a path, a header with some
// value, a tenant, a range of addresses, a method, ...) the one that the fewest other rules share.
// A request looks into the drawers of its own values: its path and host, each of its headers, its
// client's attributes. So the cost of a lookup does not grow with the number of rules with other
// conditions, whatever distinguishes the rules. A rule without other conditions is in the drawer of
// its domain. A rule with a regular expression, and nothing rarer, is in the drawer of the name:
// those rules are compared one by one.
//
// A rule found is a candidate: it still has to be compared. Only its path need not be, if it was
// found by its path. Some rules may be found twice.
//
// Immutable once built.
#pragma once

#include "base/byte_words.h"
#include "base/flat_map.h"
#include "base/hash.h"
#include "rules/path_template.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::rules {

using RuleNumber = std::uint32_t;

// One condition of a rule. Equal conditions have the same number; different ones have the same
// number by accident only, which costs one comparison. Not keyed: keys come from rules, and a
// client that finds a value with the number of another one gains a comparison that fails.
using IndexKey = std::uint64_t;

// The kinds of conditions; names and values of one kind never collide with those of another.
enum class Asks : std::uint8_t {
  domain,
  header,
  query,
  cookie,
  descriptor,
  attribute,
  tier,
  tenant,
  country,
  asn,
  address,
  method,
  host,
};
[[nodiscard]] IndexKey index_key(Asks kind, std::string_view name, std::string_view value) noexcept;
[[nodiscard]] IndexKey index_key(Asks kind, std::string_view name) noexcept;  // with any value
// From the name's key: with that value, and with that prefix.
[[nodiscard]] IndexKey with_value(IndexKey named, std::string_view value) noexcept;
[[nodiscard]] IndexKey with_prefix(IndexKey named, std::string_view prefix) noexcept;

// A place in the tree of hosts and paths.
struct Location {
  std::string_view host;               // empty: any; *.example.com: all below
  const PathTemplate* path = nullptr;  // null: any
};

// The alternatives of one condition: a rule filed under them is in each of their drawers.
struct Condition {
  Asks kind = Asks::host;
  std::vector<IndexKey> keys;
  std::vector<Location> locations;  // instead of keys, for hosts and paths
};

class RuleIndex {
 public:
  // A rule's conditions, its domain at least; all of them hold for the requests that it matches.
  using Conditions = std::vector<Condition>;

  RuleIndex() = default;
  explicit RuleIndex(std::span<const Conditions> rules);  // their templates outlive it

  // The rules filed under one key.
  [[nodiscard]] std::span<const RuleNumber> under(IndexKey key) const noexcept {
    const Drawer* const found = drawers_.find(key);
    return found == nullptr ? std::span<const RuleNumber>{} : contents(*found);
  }
  // Whether any rule is filed under a key of this kind.
  [[nodiscard]] bool uses(Asks kind) const noexcept {
    return used_[static_cast<std::size_t>(kind)];
  }

  // Calls visit(std::span<const RuleNumber>) for every place that matches a host and a path: the
  // rules there name that path.
  template <class Visit>
  void at(std::string_view host, std::string_view path, Visit&& visit) const noexcept {
    if (any_host_ != kNone) visit_node(any_host_, PathWalker{path}, visit);
    if (!has_hosts_ || host.empty()) return;
    visit_root(host, path, visit);
    if (!has_wildcards_) return;
    for (std::size_t dot = host.find('.'); dot != std::string_view::npos;
         dot = host.find('.', dot + 1)) {
      visit_root(host.substr(dot), path, visit);  // ".example.com": all hosts below it
    }
  }

 private:
  struct Drawer {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Node {
    std::uint32_t any = kNone;  // the child for * and {name}
    bool has_literals = false;
    Drawer here;   // paths that end here
    Drawer below;  // ... and all longer paths
  };

  struct Builder;

  [[nodiscard]] std::span<const RuleNumber> contents(Drawer drawer) const noexcept {
    return std::span{numbers_}.subspan(drawer.first, drawer.count);
  }
  // The child of a node for a literal segment. Its own table, open and half empty at least: a path
  // takes as many lookups, one after the other, as it has segments.
  class Steps {
   public:
    // kNone: no child.
    [[nodiscard]] std::uint32_t find(std::uint32_t node, std::string_view segment) const noexcept {
      return slots_[place_of({node, segment})].child;
    }
    // A reference to the child, kNone if it is new. The text of the segment outlives the table.
    [[nodiscard]] std::uint32_t& at(std::uint32_t node, std::string_view segment);

   private:
    // Most segments fit into their first word.
    struct Step {
      Step() = default;
      Step(std::uint32_t node, std::string_view segment) noexcept
          : from(std::uint64_t{node} << 32U | segment.size()),
            first(segment.size() < sizeof first ? load_short(segment.data(), segment.size())
                                                : load_word(segment.data())),
            text(segment.data()) {}
      [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::uint32_t>(from); }
      [[nodiscard]] std::uint64_t hash() const noexcept {
        const std::uint64_t hash = folded(from * kOddFactor ^ first, kOddFactor);
        return size() <= sizeof first ? hash : with_rest(hash);
      }
      [[nodiscard]] std::uint64_t with_rest(std::uint64_t hash) const noexcept;
      friend bool operator==(const Step& a, const Step& b) noexcept {
        constexpr std::size_t kFirst = sizeof a.first;
        return a.from == b.from && a.first == b.first &&
               (a.size() <= kFirst ||
                same_bytes(a.text + kFirst, b.text + kFirst, a.size() - kFirst));
      }

      std::uint64_t from = 0;  // the node, and the segment's length
      std::uint64_t first = 0;
      const char* text = nullptr;
    };
    struct Slot {
      Step step;
      std::uint32_t child = kNone;
    };

    // Its place, or the place to insert it.
    [[nodiscard]] std::size_t place_of(const Step& step) const noexcept {
      std::size_t place = step.hash() & mask_;
      while (slots_[place].child != kNone && !(slots_[place].step == step)) {
        place = (place + 1) & mask_;
      }
      return place;
    }
    void grow();

    std::vector<Slot> slots_{1};
    std::size_t mask_ = 0;
    std::size_t used_ = 0;
  };

  template <class Visit>
  void visit_root(std::string_view host, std::string_view path, Visit&& visit) const noexcept {
    const std::uint32_t* const root = roots_.find(index_key(Asks::host, host));
    if (root != nullptr) visit_node(*root, PathWalker{path}, visit);
  }
  template <class Visit>
  void visit_node(std::uint32_t number, PathWalker walker, Visit&& visit) const noexcept {
    for (;;) {
      const Node& node = nodes_[number];
      if (node.below.count > 0) visit(contents(node.below));
      if (walker.done()) {
        if (node.here.count > 0) visit(contents(node.here));
        return;
      }
      const std::string_view segment = walker.next();
      number = node.has_literals ? steps_.find(number, segment) : kNone;
      if (number == kNone) {
        number = node.any;
      } else if (node.any != kNone) {
        visit_node(node.any, walker, visit);
      }
      if (number == kNone) return;
    }
  }

  std::vector<RuleNumber> numbers_;  // the contents of all drawers, one after another
  FlatMap<IndexKey, Drawer> drawers_;
  FlatMap<IndexKey, std::uint32_t> roots_;  // by host
  Steps steps_;
  std::vector<Node> nodes_;
  std::array<bool, 16> used_{};
  std::uint32_t any_host_ = kNone;  // the root of rules that name no host
  bool has_hosts_ = false;
  bool has_wildcards_ = false;
};

}  // namespace sluice::rules
