// The JSON Schema and the checks of the parser come from one grammar; here they have to agree.

#include "config/json.h"
#include "rules/rule_grammar.h"
#include "support/json_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <simdjson.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sluice::rules {
namespace {

namespace fs = std::filesystem;
namespace dom = simdjson::dom;

const fs::path kCorpus{fs::path{SLUICE_SOURCE_DIR} / "tests" / "corpus"};

const testing::JsonSchema& schema() {
  static const testing::JsonSchema kSchema{rules_schema()};
  return kSchema;
}

std::string content_of(const fs::path& file) {
  std::ifstream stream{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{stream}, std::istreambuf_iterator<char>{}};
}

std::optional<config::Document> readable(const fs::path& file) {
  config::Diagnostics diagnostics;
  auto document = config::parse_document(content_of(file), "f", diagnostics);
  if (!diagnostics.ok()) return std::nullopt;
  return document;
}

std::vector<fs::path> yaml_files(const char* folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator{kCorpus / folder}) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  return files;
}

std::string checked_mistake(const config::Node& root) {
  config::Diagnostics diagnostics;
  (void)check(root, rules_file_shape(), "the file", diagnostics);
  return diagnostics.text();
}

std::string schema_mistake_of(const config::Node& root) {
  return schema().mistake_in(config::to_json(root));
}

TEST(RuleSchema, IsSelfContainedAndNamesItsDraft) {
  EXPECT_EQ(std::string_view{schema().root()["$schema"]},
            "https://json-schema.org/draft/2020-12/schema");
  const dom::object definitions = schema().root()["$defs"];
  EXPECT_EQ(definitions.size(), sections_of(rules_file_shape()).size());
  for (const auto& [name, definition] : definitions) {
    EXPECT_FALSE(definition["description"].error()) << name;
    EXPECT_FALSE(definition["additionalProperties"].error()) << name;
  }
}

TEST(RuleSchema, AcceptsEveryGoodFile) {
  for (const fs::path& file : yaml_files("rules")) {
    const auto document = readable(file);
    ASSERT_TRUE(document) << file;
    EXPECT_EQ(schema_mistake_of(document->root), "") << file;
  }
}

// What a pattern cannot tell, or what is only wrong without quotes. Everything else that is broken
// in structure, the schema has to refuse.
const std::set<std::string>& only_the_parser_knows() {
  static const std::set<std::string> kNames{"limit_two_units",
                                            "match_country_norway",
                                            "match_country_uk",
                                            "match_host_with_port",
                                            "match_ip_host_bits",
                                            "match_ip_typo",
                                            "match_path_colon_parameter",
                                            "match_path_duplicate_parameter",
                                            "match_path_partial_star",
                                            "match_path_rest_in_middle",
                                            "match_regex_lookahead",
                                            "match_regex_open_group",
                                            "per_ip_bits",
                                            "count_status_backwards",
                                            "tolerance_too_large"};
  return kNames;
}

TEST(RuleSchema, RefusesBrokenFilesThatTheGrammarRefuses) {
  int refused = 0;
  for (const fs::path& file : yaml_files("broken_rules")) {
    const auto document = readable(file);
    if (!document) continue;  // no YAML
    const bool good = checked_mistake(document->root).empty();
    const bool accepted = schema_mistake_of(document->root).empty();
    if (good) {
      EXPECT_TRUE(accepted) << file << ": " << schema_mistake_of(document->root);
    } else if (!only_the_parser_knows().contains(file.stem().string())) {
      EXPECT_FALSE(accepted) << file << ": " << checked_mistake(document->root);
      ++refused;
    }
  }
  EXPECT_GT(refused, 40);
}

// ---- mutations ----------------------------------------------------------------------------------

void collect(config::Node& node, std::vector<config::Node*>& nodes) {
  nodes.push_back(&node);
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    if (!node.is_map() || i % 2 == 1) collect(node.children[i], nodes);
  }
}

config::Node scalar(std::string text, config::Node::Style style) {
  config::Node node;
  node.kind = config::Node::Kind::scalar;
  node.style = style;
  node.text = std::move(text);
  return node;
}

// One small change somewhere in a tree.
void mutate(config::Node& root) {
  std::vector<config::Node*> nodes;
  collect(root, nodes);
  config::Node& node = *nodes[*rc::gen::inRange<std::size_t>(0, nodes.size())];
  switch (*rc::gen::inRange(0, 7)) {
    case 0: node = scalar("word", config::Node::Style::quoted); break;
    case 1: node = scalar("7", config::Node::Style::plain); break;
    case 2: node = scalar("true", config::Node::Style::plain); break;
    case 3: node = config::Node{}; break;
    case 4: {
      config::Node list;
      list.kind = config::Node::Kind::list;
      if (*rc::gen::arbitrary<bool>()) list.children.push_back(node);
      node = std::move(list);
      break;
    }
    case 5:
      if (node.is_map() && node.size() > 0) {
        const auto i =
            static_cast<std::ptrdiff_t>(2 * *rc::gen::inRange<std::size_t>(0, node.size()));
        node.children.erase(node.children.begin() + i, node.children.begin() + i + 2);
      }
      break;
    default:
      if (node.is_map()) {
        node.children.push_back(scalar("surplus", config::Node::Style::plain));
        node.children.push_back(scalar("x", config::Node::Style::quoted));
      }
  }
}

// As JSON everything that is text is in quotes, so that the two differ only where a pattern is
// coarser than the parser. None of the mutations is such a text.
RC_GTEST_PROP(RuleSchema, AgreesWithTheParserOnMutationsOfGoodFiles, ()) {
  static const auto kOriginal = readable(kCorpus / "rules" / "every_key.yaml");
  config::Node root = kOriginal->root;
  mutate(root);
  const std::string text = config::to_json(root);
  config::Diagnostics diagnostics;
  const auto document = config::parse_document(text, "f", diagnostics);
  RC_ASSERT(document.has_value());
  const std::string checked = checked_mistake(document->root);
  const std::string by_schema = schema().mistake_in(text);
  RC_LOG() << "parser: " << checked << "schema: " << by_schema << "\n";
  RC_ASSERT(checked.empty() == by_schema.empty());
}

TEST(RuleReference, NamesEveryKey) {
  const std::string text = rules_reference_markdown();
  for (const config::Section* section : sections_of(rules_file_shape())) {
    EXPECT_THAT(text, ::testing::HasSubstr("## " + std::string{section->name} + "\n"));
    for (const config::Key& key : section->keys) {
      EXPECT_THAT(text, ::testing::HasSubstr("| `" + std::string{key.name} + "` | "));
    }
  }
}

}  // namespace
}  // namespace sluice::rules
