#include "config/yaml_reader.h"

#include "base/text.h"
#include "config/yaml_mistakes.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <sstream>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/node/node.h>  // parser.h declares YAML::Node, which linters take for our Node
#include <yaml-cpp/parser.h>

namespace sluice::config {
namespace {

constexpr std::string_view kMergeKey = "<<";

// Ends the parse early, from inside a handler of the library; never leaves this file.
struct Stop {
  std::size_t offset;
  std::string message;
  std::string remedy;
};

std::size_t count_nodes(const Node& node) {
  std::size_t count = 1;
  for (const Node& child : node.children) count += count_nodes(child);
  return count;
}

// Whether the quoted text that begins at the offset ends at all: the library takes the end of the
// file for a closing quote.
bool is_closed(std::string_view text, std::size_t offset) noexcept {
  const char quote = text[offset];
  for (std::size_t i = offset + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      if (quote == '"' || i + 1 >= text.size() || text[i + 1] != quote) return true;
      ++i;
    }
  }
  return false;
}

// Receives the events of one document and builds the tree.
class Builder final : public YAML::EventHandler {
 public:
  Builder(const Source& source, Diagnostics& diagnostics, const DocumentOptions& options)
      : source_(source), diagnostics_(diagnostics), options_(options) {}

  [[nodiscard]] Node take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node = make(Node::Kind::null, mark);
    const std::string_view rest = rest_of_text(node.offset);
    if (const Node* key = pending_key(); key != nullptr && key->offset == node.offset) {
      stop_at_lonely_key(*key);
    }
    node.text = written_null(rest);
    if (node.text.empty() && anchor == 0) {  // nothing is written: the place is that of the key
      if (const Node* key = pending_key()) node.offset = key->offset;
    }
    complete(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node = make(Node::Kind::refused, mark);
    if (!options_.lenient) {
      diagnostics_.error(node, "aliases are not supported", "write the value out where it is used");
    } else if (const auto found = anchors_.find(anchor); found != anchors_.end()) {
      node = found->second;
      add_nodes(count_nodes(node), mark);
    }
    complete(std::move(node), 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = make(Node::Kind::scalar, mark);
    node.text = value;
    const std::size_t begin = skip_properties(node.offset);
    const char first = begin < source_.text.size() ? source_.text[begin] : ' ';
    if (first == '"' || first == '\'') {
      node.style = Node::Style::quoted;
      if (!is_closed(source_.text, begin)) {
        throw Stop{begin, "a quote is opened and never closed",
                   fmt::format("add the closing {}", first)};
      }
    } else if (first == '|' || first == '>') {
      node.style = Node::Style::block;
    }
    refuse_properties(node, anchor);
    complete(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(Node::Kind::list, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(Node::Kind::map, mark, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor = 0;
    std::unordered_set<std::string> keys;  // only of maps too large to look through
  };

  [[nodiscard]] std::string_view rest_of_text(std::size_t offset) const {
    return std::string_view{source_.text}.substr(std::min(offset, source_.text.size()));
  }

  static std::string written_null(std::string_view rest) {
    for (const std::string_view word : {"~", "null", "Null", "NULL"}) {
      if (!rest.starts_with(word)) continue;
      if (rest.size() == word.size() ||
          std::string_view{" \t\r\n,]}"}.find(rest[word.size()]) != std::string_view::npos) {
        return std::string{word};
      }
    }
    return {};
  }

  [[nodiscard]] Node make(Node::Kind kind, const YAML::Mark& mark) {
    add_nodes(1, mark);
    Node node;
    node.kind = kind;
    node.offset = static_cast<std::uint32_t>(std::max(mark.pos, 0));
    node.source = &source_;
    return node;
  }

  void add_nodes(std::size_t count, const YAML::Mark& mark) {
    nodes_ += count;
    if (nodes_ <= options_.nodes_max) return;
    throw Stop{static_cast<std::size_t>(std::max(mark.pos, 0)),
               fmt::format("there are more than {} values", options_.nodes_max), "split the file"};
  }

  // The library takes a last word for a key, also where a bracket is still open.
  [[noreturn]] void stop_at_lonely_key(const Node& key) const {
    const auto is_bracket = [&](const Open& open) {
      const char first = source_.text[open.node.offset];
      return first == '[' || first == '{';
    };
    const auto open = std::find_if(stack_.rbegin(), stack_.rend(), is_bracket);
    if (open != stack_.rend()) {
      const Diagnostic mistake = explain_yaml_mistake(
          open->node.is_list() ? "end of sequence flow not found" : "end of map flow not found");
      throw Stop{open->node.offset, mistake.message, mistake.remedy};
    }
    throw Stop{key.offset, fmt::format("there is no ':' after {}", key.shown()),
               "write key: value"};
  }

  // Anchors and tags stand before the value that they belong to.
  [[nodiscard]] std::size_t skip_properties(std::size_t offset) const {
    const std::string_view text = source_.text;
    while (offset < text.size() && (text[offset] == '&' || text[offset] == '!')) {
      offset = std::min(text.find_first_of(" \t\r\n", offset), text.size());
      offset = std::min(text.find_first_not_of(" \t\r\n", offset), text.size());
    }
    return offset;
  }

  void refuse_properties(Node& node, YAML::anchor_t anchor) {
    if (options_.lenient) return;
    if (anchor != 0) {
      diagnostics_.error(node, "anchors are not supported", "write the value out where it is used");
    } else if (rest_of_text(node.offset).starts_with('!')) {
      diagnostics_.error(node, "tags are not supported", "leave it out");
    } else {
      return;
    }
    if (node.is_scalar()) node.kind = Node::Kind::refused;
  }

  void open(Node::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    Node node = make(kind, mark);
    if (stack_.size() >= options_.depth_max) {
      throw Stop{node.offset, fmt::format("there are more than {} levels", options_.depth_max),
                 "nest less deeply"};
    }
    refuse_properties(node, anchor);
    stack_.push_back({std::move(node), anchor, {}});
  }

  void close() {
    Open open = std::move(stack_.back());
    stack_.pop_back();
    if (open.node.is_map()) {
      remove_refused_keys(open.node);
      if (options_.lenient) merge(open.node);
    }
    complete(std::move(open.node), open.anchor);
  }

  // The key whose value comes next, if that is what comes next.
  [[nodiscard]] Node* pending_key() {
    if (stack_.empty() || !stack_.back().node.is_map()) return nullptr;
    std::vector<Node>& children = stack_.back().node.children;
    return children.size() % 2 == 1 ? &children.back() : nullptr;
  }

  void complete(Node node, YAML::anchor_t anchor) {
    if (anchor != 0 && options_.lenient) anchors_.insert_or_assign(anchor, node);
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = stack_.back();
    if (parent.node.is_map() && parent.node.children.size() % 2 == 0) check_key(parent, node);
    parent.node.children.push_back(std::move(node));
  }

  void check_key(Open& map, Node& key) {
    if (key.kind == Node::Kind::refused) return;
    const bool is_written_null = key.is_null() && !key.text.empty();
    const bool is_word = key.is_scalar() || (options_.lenient && is_written_null);
    if (!is_word) {
      diagnostics_.error(key, "a key must be a word", "write key: value");
      key.kind = Node::Kind::refused;
    } else if (key.text == kMergeKey && key.is_plain() && !options_.lenient) {
      diagnostics_.error(key, "merge keys are not supported", "write the keys out");
      key.kind = Node::Kind::refused;
    } else if (const Node* first = known_key(map, key)) {
      diagnostics_.error(key,
                         fmt::format("the key {} is written twice, first in line {}", key.shown(),
                                     first->place().line),
                         "remove one of the two");
      key.kind = Node::Kind::refused;
    }
  }

  // Small maps are looked through, large ones have a set, so that no file takes quadratic time.
  const Node* known_key(Open& map, const Node& key) {
    constexpr std::size_t kLarge = 64;
    const std::vector<Node>& children = map.node.children;
    if (children.size() >= kLarge) {
      if (map.keys.empty()) {
        for (std::size_t i = 0; i < children.size(); i += 2) map.keys.insert(children[i].text);
      }
      if (map.keys.insert(key.text).second) return nullptr;
    }
    for (std::size_t i = 0; i < children.size(); i += 2) {
      if (children[i].kind != Node::Kind::refused && children[i].text == key.text) {
        return &children[i];
      }
    }
    return nullptr;
  }

  static void remove_refused_keys(Node& map) {
    std::vector<Node>& children = map.children;
    std::size_t kept = 0;
    for (std::size_t i = 0; i + 1 < children.size(); i += 2) {
      if (children[i].kind == Node::Kind::refused) continue;
      if (kept != i) {
        children[kept] = std::move(children[i]);
        children[kept + 1] = std::move(children[i + 1]);
      }
      kept += 2;
    }
    children.resize(kept);
  }

  // `<<: *defaults`, or a list of such: what the map does not say itself.
  void merge(Node& map) {
    Node merged;
    for (std::size_t i = 0; i < map.children.size(); i += 2) {
      if (map.children[i].text != kMergeKey || !map.children[i].is_plain()) continue;
      merged = std::move(map.children[i + 1]);
      map.children.erase(map.children.begin() + static_cast<std::ptrdiff_t>(i),
                         map.children.begin() + static_cast<std::ptrdiff_t>(i + 2));
      break;
    }
    if (merged.is_map()) merge_from(map, merged);
    if (!merged.is_list()) return;
    for (const Node& one : merged.children) {
      if (one.is_map()) merge_from(map, one);
    }
  }

  static void merge_from(Node& map, const Node& other) {
    for (std::size_t i = 0; i < other.size(); ++i) {
      if (map.find(other.key(i).text) != nullptr) continue;
      map.children.push_back(other.key(i));
      map.children.push_back(other.value(i));
    }
  }

  const Source& source_;
  Diagnostics& diagnostics_;
  const DocumentOptions& options_;
  Node root_;
  std::vector<Open> stack_;
  std::unordered_map<YAML::anchor_t, Node> anchors_;
  std::size_t nodes_ = 0;
};

// Events of documents behind the first one.
class Ignored final : public YAML::EventHandler {
 public:
  std::optional<std::size_t> offset;

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (!offset) offset = static_cast<std::size_t>(std::max(mark.pos, 0));
    throw Stop{*offset, {}, {}};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// A tab in the indentation is behind many a message that names something else.
void report(const Source& source, std::size_t offset, std::string_view library_message,
            Diagnostics& diagnostics) {
  const std::string_view line = source.line(source.place(offset).line);
  const std::size_t indent = std::min(line.find_first_not_of(" \t"), line.size());
  if (const std::size_t tab = line.substr(0, indent).find('\t'); tab != std::string_view::npos) {
    offset = static_cast<std::size_t>(line.data() - source.text.data()) + tab;
    library_message = "illegal tab";
  }
  const Diagnostic mistake = explain_yaml_mistake(library_message);
  diagnostics.error(source, offset, mistake.message, mistake.remedy);
}

// Whether the first document could be read.
bool read_first(YAML::Parser& parser, Builder& builder, const Source& source,
                Diagnostics& diagnostics) {
  try {
    parser.HandleNextDocument(builder);
    return true;
  } catch (const Stop& stop) {
    diagnostics.error(source, stop.offset, stop.message, stop.remedy);
  } catch (const YAML::Exception& wrong) {
    report(source, static_cast<std::size_t>(std::max(wrong.mark.pos, 0)), wrong.msg, diagnostics);
  } catch (const std::exception& wrong) {
    diagnostics.error(source, 0, fmt::format("the file cannot be read: {}", wrong.what()));
  }
  return false;
}

// Where a second document begins, be it well-formed or not.
std::optional<std::size_t> second_document(YAML::Parser& parser) {
  Ignored ignored;
  try {
    parser.HandleNextDocument(ignored);
  } catch (const Stop& stop) {
    return stop.offset;
  } catch (const YAML::Exception& wrong) {
    return static_cast<std::size_t>(std::max(wrong.mark.pos, 0));
  } catch (const std::exception&) {
    return 0;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Node> read_yaml(const Source& source, Diagnostics& diagnostics,
                              const DocumentOptions& options) {
  std::istringstream stream{source.text};
  YAML::Parser parser{stream};
  Builder builder{source, diagnostics, options};
  if (!read_first(parser, builder, source, diagnostics)) return std::nullopt;
  if (!options.lenient) {
    if (const auto second = second_document(parser)) {
      diagnostics.error(source, *second, "a second document begins here",
                        "keep one document in a file");
    }
  }
  return builder.take_root();
}

}  // namespace sluice::config
