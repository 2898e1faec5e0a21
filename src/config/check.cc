#include "base/text.h"
#include "config/grammar.h"
#include "config/scalar_check.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::config {
namespace {

std::string_view article_and_kind(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::null: return "nothing";
    case Node::Kind::scalar: return "a single value";
    case Node::Kind::list: return "a list";
    case Node::Kind::map: return "a map";
    case Node::Kind::refused: break;
  }
  return "something else";
}

// "text, a list or a map"
std::string expected(const Shape& shape) {
  std::vector<std::string_view> kinds;
  const auto add = [&](std::string_view kind) {
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  };
  for (const Form& form : shape.forms) {
    switch (form.type) {
      case Form::Type::text:
      case Form::Type::word: add("text"); break;
      case Form::Type::flag: add("true or false"); break;
      case Form::Type::number:
      case Form::Type::decimal: add("a number"); break;
      case Form::Type::list: add("a list"); break;
      case Form::Type::map: add("a map of keys and values"); break;
      case Form::Type::anything: add("anything"); break;
    }
  }
  std::string text;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (i > 0) text += i + 1 == kinds.size() ? " or " : ", ";
    text += kinds[i];
  }
  return text;
}

// 'a', 'b' or 'c'
std::string alternatives(const std::vector<std::string_view>& keys) {
  std::string text;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i > 0) text += i + 1 == keys.size() ? " or " : ", ";
    text += fmt::format("'{}'", keys[i]);
  }
  return text;
}

class Checker {
 public:
  explicit Checker(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  [[nodiscard]] Checked take() { return std::move(checked_); }

  // Where a value stands, for messages.
  struct Position {
    std::string_view name;     // of the key
    const Key* key = nullptr;  // absent for the root and where the writer chooses the keys
    bool is_item = false;      // of a list behind the key

    [[nodiscard]] std::string text() const {
      return is_item ? fmt::format("an item of '{}'", name) : fmt::format("'{}'", name);
    }
  };

  void check_value(const Node& node, const Shape& shape, const Position& at) {
    if (form_of(shape, Form::Type::anything) != nullptr) return;
    switch (node.kind) {
      case Node::Kind::refused: checked_.refuse(node); return;
      case Node::Kind::null: refuse_null(node, shape, at); return;
      case Node::Kind::scalar: check_single(node, shape, at); return;
      case Node::Kind::list: check_list(node, shape, at); return;
      case Node::Kind::map: check_map(node, shape, at); return;
    }
  }

 private:
  void refuse(const Node& node, std::string message, std::string remedy) {
    diagnostics_.error(node, std::move(message), std::move(remedy));
    checked_.refuse(node);
  }

  static std::string example_of(const Position& at) {
    if (at.key == nullptr || at.key->examples.empty() || at.is_item) return {};
    return fmt::format(", as in {}: {}", at.name, at.key->examples.front());
  }

  void refuse_null(const Node& node, const Shape& shape, const Position& at) {
    const bool needed = at.key != nullptr && at.key->required && !at.is_item;
    refuse(node, fmt::format("{} has no value", at.text()),
           fmt::format("{}write {}{}", needed ? "" : "leave it out, or ", expected(shape),
                       example_of(at)));
  }

  void refuse_kind(const Node& node, const Shape& shape, const Position& at) {
    refuse(node, fmt::format("{} cannot be {}", at.text(), article_and_kind(node.kind)),
           fmt::format("write {}{}", expected(shape), example_of(at)));
  }

  static const Form* form_of(const Shape& shape, Form::Type type) {
    for (const Form& form : shape.forms) {
      if (form.type == type) return &form;
    }
    return nullptr;
  }

  void check_single(const Node& node, const Shape& shape, const Position& at) {
    if (std::none_of(shape.forms.begin(), shape.forms.end(), is_scalar_form)) {
      refuse_kind(node, shape, at);
      return;
    }
    const auto problem = check_scalar(node, shape);
    if (!problem) return;
    const Hint* hint = at.key == nullptr ? nullptr : find_hint(at.key->hints, node.text);
    refuse(node, fmt::format("{}: {}", at.name, problem->message),
           hint == nullptr ? problem->remedy : std::string{hint->remedy});
  }

  static const Hint* find_hint(const std::vector<Hint>& hints, std::string_view word) {
    for (const Hint& hint : hints) {
      if (hint.word == word) return &hint;
    }
    return nullptr;
  }

  void check_list(const Node& node, const Shape& shape, const Position& at) {
    const Form* form = form_of(shape, Form::Type::list);
    if (form == nullptr) {
      refuse_kind(node, shape, at);
      return;
    }
    if (node.children.empty() && !form->may_be_empty) {
      refuse(node, fmt::format("the list '{}' is empty", at.name),
             "leave the key out, or add an item");
    }
    for (const Node& item : node.items()) {
      check_value(item, *form->items, {.name = at.name, .key = at.key, .is_item = true});
    }
  }

  void check_map(const Node& node, const Shape& shape, const Position& at) {
    const Form* form = form_of(shape, Form::Type::map);
    if (form == nullptr) {
      refuse_kind(node, shape, at);
      return;
    }
    const Section& section = form->section();
    Misspelt misspelt;
    for (std::size_t i = 0; i < node.size(); ++i) check_entry(node, i, section, misspelt);
    if (misspelt.hinted) return;  // what is missing was most likely said in other words
    check_required(node, section, misspelt.meant);
    if (misspelt.meant.empty()) check_sets(node, section);
    check_needs(node, section);
  }

  // Unknown keys of one map.
  struct Misspelt {
    std::vector<std::string_view> meant;  // most likely
    bool hinted = false;
  };

  void check_entry(const Node& map, std::size_t i, const Section& section, Misspelt& misspelt) {
    const Node& key = map.key(i);
    if (const Key* known = section.find(key.text)) {
      check_value(map.value(i), known->shape, {.name = known->name, .key = known});
    } else if (section.others) {
      check_other(key, map.value(i), *section.others);
    } else {
      report_unknown(key, section, misspelt);
    }
  }

  void check_other(const Node& key, const Node& value, const OtherKeys& others) {
    if (others.format != nullptr) {
      if (const auto problem = others.format->check(key.text)) {
        diagnostics_.error(key, *problem);
        checked_.refuse(value);
        return;
      }
    }
    check_value(value, others.shape, {.name = key.text});
  }

  void report_unknown(const Node& key, const Section& section, Misspelt& misspelt) {
    std::vector<std::string_view> known;
    for (const Key& one : section.keys) known.push_back(one.name);
    const std::string_view nearest = nearest_word(key.text, known);
    // A word that resembles a known one is no secret.
    const bool is_known = !nearest.empty() || section.find_formerly(key.text) != nullptr;
    const std::string shown = is_known ? quoted(key.text) : key.shown();
    const std::string message = fmt::format("unknown key {} in {}", shown, section.name);
    if (const Key* renamed = section.find_formerly(key.text)) {
      misspelt.meant.push_back(renamed->name);
      diagnostics_.error(key, message, fmt::format("it is called '{}' now", renamed->name));
      return;
    }
    if (const Hint* hint = find_hint(section.hints, key.text)) {
      misspelt.hinted = true;
      diagnostics_.error(key, message, std::string{hint->remedy});
      return;
    }
    if (!nearest.empty()) misspelt.meant.push_back(nearest);
    diagnostics_.error(key, message,
                       nearest.empty() ? fmt::format("known are {}", join_words(known))
                                       : fmt::format("did you mean '{}'?", nearest));
  }

  void check_required(const Node& map, const Section& section,
                      const std::vector<std::string_view>& meant) {
    for (const Key& key : section.keys) {
      if (!key.required || map.find(key.name) != nullptr) continue;
      if (std::find(meant.begin(), meant.end(), key.name) != meant.end()) continue;
      const std::string example =
          key.examples.empty() ? std::string{}
                               : fmt::format(", as in {}: {}", key.name, key.examples.front());
      diagnostics_.error(map, fmt::format("'{}' is missing in {}", key.name, section.name),
                         "add it" + example);
    }
  }

  void check_sets(const Node& map, const Section& section) {
    const auto count = [&](const std::vector<std::string_view>& keys) {
      return std::count_if(keys.begin(), keys.end(),
                           [&](std::string_view key) { return map.find(key) != nullptr; });
    };
    for (const auto& keys : section.exactly_one) {
      const auto given = count(keys);
      if (given == 0) {
        refuse(map, fmt::format("{} says nothing of {}", section.name, alternatives(keys)),
               "write one of them");
      } else if (given > 1) {
        refuse(map, fmt::format("{} has more than one of {}", section.name, alternatives(keys)),
               "keep one of them");
      }
    }
    for (const auto& keys : section.at_least_one) {
      if (count(keys) > 0) continue;
      refuse(map, fmt::format("{} says nothing of {}", section.name, alternatives(keys)),
             "write at least one of them");
    }
  }

  void check_needs(const Node& map, const Section& section) {
    for (const auto& [key, needed] : section.needs) {
      if (map.find(key) == nullptr || map.find(needed) != nullptr) continue;
      refuse(*map.find(key), fmt::format("'{}' has no effect without '{}'", key, needed),
             fmt::format("add '{}', or leave it out", needed));
    }
  }

  Diagnostics& diagnostics_;
  Checked checked_;
};

}  // namespace

Checked check(const Node& root, const Shape& shape, std::string_view what,
              Diagnostics& diagnostics) {
  Checker checker{diagnostics};
  checker.check_value(root, shape, {.name = what});
  return checker.take();
}

}  // namespace sluice::config
