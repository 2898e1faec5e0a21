// What may be written in a file, as data.
//
// One description serves the checks of the parser, the JSON Schema for editors (schema.h) and the
// reference for people (reference.h). A section is a map with known keys; a key has a shape; a
// shape is one form or several, of which the writer chooses: text, or a list of texts, or a map. Of
// lists and of maps a shape has at most one form each, so that a mistake inside one is reported as
// such and not as "none of the alternatives".
//
// Parsers read a checked document through a Reader, which has only the keys of its section: grammar
// and parser cannot disagree about a key.
#pragma once

#include "config/diagnostics.h"
#include "config/document.h"
#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace sluice::config {

// A kind of text with rules of its own: a length of time, a range of addresses.
struct Format {
  std::string_view name;  // as the reference shows it: DURATION
  std::string_view
      pattern;  // for the schema: an anchored regular expression, not narrower than check
  std::optional<Diagnostic> (*check)(std::string_view text);
};

struct Section;
struct Shape;

struct Form {
  enum class Type : std::uint8_t { text, word, flag, number, decimal, list, map, anything };
  Type type = Type::text;
  const Format* format = nullptr;       // text; absent: any but the empty one
  std::vector<std::string_view> words;  // word: one of these
  std::uint64_t min = 0;                // number; decimal: in thousandths
  std::uint64_t max = 0;
  std::shared_ptr<const Shape> items;     // list
  bool may_be_empty = false;              // list
  const Section& (*section)() = nullptr;  // map
};

struct Shape {
  std::vector<Form> forms;
};

[[nodiscard]] Shape text();
[[nodiscard]] Shape text(const Format& format);
[[nodiscard]] Shape word(std::vector<std::string_view> words);
[[nodiscard]] Shape flag();
[[nodiscard]] Shape number(std::uint64_t min, std::uint64_t max);
// With at most three digits behind the point; the bounds are in thousandths. Read as text.
[[nodiscard]] Shape decimal(std::uint64_t min, std::uint64_t max);
[[nodiscard]] Shape list_of(const Shape& items);      // of at least one
[[nodiscard]] Shape one_or_list(const Shape& item);   // the item itself, or a list of them
[[nodiscard]] Shape any_list_of(const Shape& items);  // may be empty
[[nodiscard]] Shape map_of(const Section& (*section)());
// Whatever it is: another reader knows. Not to be combined with others.
[[nodiscard]] Shape anything();
[[nodiscard]] Shape operator|(Shape first, const Shape& second);

// A word that users write by mistake, and the remedy.
struct Hint {
  std::string_view word;
  std::string_view remedy;
};

struct Key {
  std::string_view name;
  Shape shape;
  std::string_view meaning;   // one sentence, Markdown
  std::string_view fallback;  // what holds without the key
  bool required = false;
  std::vector<std::string_view> examples;  // YAML values
  std::vector<Hint> hints;                 // for its value
  // Former names: no longer read; the message names the new one.
  std::vector<std::string_view> formerly;
};

// Keys that the writer chooses, as the names of headers.
struct OtherKeys {
  std::string_view what;  // HEADER
  const Format* format = nullptr;
  Shape shape;
  std::string_view meaning;
};

struct Section {
  std::string_view name;  // unique in its grammar
  std::string_view meaning;
  std::vector<Key> keys;
  std::optional<OtherKeys> others;
  std::vector<std::vector<std::string_view>> exactly_one;  // of each of these sets
  std::vector<std::vector<std::string_view>> at_least_one;
  std::vector<std::pair<std::string_view, std::string_view>> needs;  // the first the second
  std::vector<Hint> hints;                                           // for its keys

  [[nodiscard]] const Key* find(std::string_view key) const noexcept;
  [[nodiscard]] const Key* find_formerly(std::string_view key) const noexcept;
};

// Which parts of a document keep to the grammar.
class Checked {
 public:
  [[nodiscard]] bool good(const Node& node) const noexcept {
    return bad_.empty() || !bad_.contains(&node);
  }
  void refuse(const Node& node) { bad_.insert(&node); }

  // Test: the names "section.key" of all keys that Readers ask for are put into the set.
  void watch(std::set<std::string>* asked) noexcept { asked_ = asked; }
  [[nodiscard]] std::set<std::string>* watched() const noexcept { return asked_; }

 private:
  std::unordered_set<const Node*> bad_;
  std::set<std::string>* asked_ = nullptr;
};

// Reports all that is wrong with a tree; `what` names the root in messages, as in "the file".
[[nodiscard]] Checked check(const Node& root, const Shape& shape, std::string_view what,
                            Diagnostics& diagnostics);

// The values of one map that was checked. Absent, and there already reported as wrong, look alike.
class Reader {
 public:
  Reader(const Node& map, const Section& section, const Checked& checked) noexcept
      : map_(map), section_(section), checked_(checked) {}

  [[nodiscard]] const Node& node() const noexcept { return map_; }

  // To ask for a key that the grammar does not have is a mistake of the program.
  [[nodiscard]] const Node* find(std::string_view key) const;
  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }
  [[nodiscard]] std::string_view text(std::string_view key, std::string_view fallback = {}) const;
  [[nodiscard]] bool flag(std::string_view key, bool fallback) const;
  [[nodiscard]] std::optional<std::uint64_t> number(std::string_view key) const;

  // The items of a list that are well-formed, or a value that stands for a list of one.
  [[nodiscard]] std::vector<const Node*> list(std::string_view key) const;

  // Without the key `into` keeps its value. The key's format or bounds make sure that a value fits.
  void take(std::string_view key, Nanos& into) const;
  void take_size(std::string_view key, std::size_t& into) const;
  template <std::unsigned_integral Number>
  void take(std::string_view key, Number& into) const {
    if (const auto value = number(key)) into = static_cast<Number>(*value);
  }

 private:
  const Node& map_;
  const Section& section_;
  const Checked& checked_;
};

// A scalar that was checked to be a number.
[[nodiscard]] std::uint64_t number_of(const Node& node) noexcept;

// The well-formed items of a list, or the node itself when it is no list.
[[nodiscard]] std::vector<const Node*> items_of(const Node& node, const Checked& checked);

// Every section that can be reached from a shape, each once, in the order of first mention.
[[nodiscard]] std::vector<const Section*> sections_of(const Shape& shape);

}  // namespace sluice::config
