// Which rules may concern a request, without looking at all of them.
//
// Every rule is filed under its rarest condition: of the things it asks for (a path, a header with
// some value, a tenant, a range of addresses, a method, ...) the one that the fewest other rules
// ask for as well. A request looks into the drawers of what it has: its path and host, each of its
// headers, its client's attributes. So the cost of a look does not grow with the number of rules
// that ask for something else, whatever it is that tells the rules apart. A rule that asks for
// nothing else is in the drawer of its domain. A rule that asks for a value by a regular
// expression, and for nothing rarer, is in the drawer of the name: those are compared one by one.
//
// What is found is a candidate: it still has to be compared. Only its path need not be, if that is
// where it was found. Some may be found twice.
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

// One thing that a rule may ask for. Two that are equal have the same number; two that differ have
// the same by accident only, which costs a comparison and nothing else.
// Not keyed: keys come from rules, and a client that finds a value with the number of another one
// gains a comparison that fails.
using IndexKey = std::uint64_t;

// The kinds of things; names and values of one kind never meet those of another.
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
// Of the name's key: with that value, and with that prefix.
[[nodiscard]] IndexKey with_value(IndexKey named, std::string_view value) noexcept;
[[nodiscard]] IndexKey with_prefix(IndexKey named, std::string_view prefix) noexcept;

// A place in the tree of hosts and paths.
struct Location {
  std::string_view host;               // empty: any; *.example.com: all below
  const PathTemplate* path = nullptr;  // null: any
};

// The alternatives of one condition: a rule that is filed under them is in each of the drawers.
struct Condition {
  Asks kind = Asks::host;
  std::vector<IndexKey> keys;
  std::vector<Location> locations;  // instead of keys, for hosts and paths
};

class RuleIndex {
 public:
  // What a rule asks for, its domain at least; all of the conditions hold for the requests it
  // concerns.
  using Conditions = std::vector<Condition>;

  RuleIndex() = default;
  explicit RuleIndex(std::span<const Conditions> rules);  // their templates outlive it

  // The rules filed under one thing.
  [[nodiscard]] std::span<const RuleNumber> under(IndexKey key) const noexcept {
    const Drawer* const found = drawers_.find(key);
    return found == nullptr ? std::span<const RuleNumber>{} : contents(*found);
  }
  // Whether anything is filed under things of this kind at all.
  [[nodiscard]] bool uses(Asks kind) const noexcept {
    return used_[static_cast<std::size_t>(kind)];
  }

  // Calls visit(std::span<const RuleNumber>) for every place that a host and a path are in: the
  // rules there name that path.
  template <class Visit>
  void at(std::string_view host, std::string_view path, Visit&& visit) const noexcept {
    if (any_host_ != kNone) visit_node(any_host_, PathWalker{path}, visit);
    if (!has_hosts_ || host.empty()) return;
    visit_root(host, path, visit);
    if (!has_wildcards_) return;
    for (std::size_t dot = host.find('.'); dot != std::string_view::npos;
         dot = host.find('.', dot + 1)) {
      visit_root(host.substr(dot), path, visit);  // ".example.com" stands for all below it
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
    Drawer below;  // ... and all that go on
  };

  struct Builder;

  [[nodiscard]] std::span<const RuleNumber> contents(Drawer drawer) const noexcept {
    return std::span{numbers_}.subspan(drawer.first, drawer.count);
  }
  // Which node a literal segment leads to from another one. Its own table, open and half empty at
  // least: a path takes as many looks, one after the other, as it has segments.
  class Steps {
   public:
    // kNone: to nowhere.
    [[nodiscard]] std::uint32_t find(std::uint32_t node, std::string_view segment) const noexcept {
      return slots_[place_of({node, segment})].child;
    }
    // A reference to the child, kNone if it is new. The text of the segment outlives the table.
    [[nodiscard]] std::uint32_t& at(std::uint32_t node, std::string_view segment);

   private:
    // Most segments are so short that their first word is all of them.
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

      std::uint64_t from = 0;  // the node, and how long the segment is
      std::uint64_t first = 0;
      const char* text = nullptr;
    };
    struct Slot {
      Step step;
      std::uint32_t child = kNone;
    };

    // Where it is, or where it would be.
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
