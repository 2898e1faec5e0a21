#include "embed/config/api_key_file.h"

#include "base/rfc3339.h"
#include "base/text.h"
#include "config/document.h"
#include "config/grammar.h"
#include "config/plain.h"
#include "embed/config/api_key_grammar.h"
#include "rules/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace sluice::embed {
namespace {

using config::Checked;
using config::Diagnostics;
using config::Node;
using config::Reader;
using identity::ApiKeyRecord;

constexpr config::DocumentOptions kOptions{.confidential = true, .bytes_max = kKeyFileBytesMax};

// ---- reading ----------------------------------------------------------------------------------

class KeyReader {
 public:
  KeyReader(const Checked& checked, Diagnostics& diagnostics)
      : checked_(checked), diagnostics_(diagnostics) {}

  // Nothing if it has a mistake.
  [[nodiscard]] std::optional<ApiKeyRecord> read(const Node& map) {
    const Reader reader{map, key_section(), checked_};
    ApiKeyRecord record;
    record.name = reader.text("name");
    record.hash = reader.text("hash");
    record.user = reader.text("user");
    record.tenant = reader.text("tenant");
    record.tier = reader.text("tier");
    if (reader.has("expires")) record.expires = parse_rfc3339(reader.text("expires")).value();
    if (const Node* attributes = reader.find("attributes")) {
      attribute_names_.clear();
      add_attributes(*attributes, {}, record);
    }
    if (record.name.empty() || record.hash.empty()) return std::nullopt;  // reported already
    if (!is_first(record, reader)) return std::nullopt;
    return record;
  }

 private:
  void add_attributes(const Node& map, const std::string& prefix, ApiKeyRecord& record) {
    for (std::size_t i = 0; i < map.size(); ++i) {
      if (!checked_.good(map.value(i))) continue;
      std::string name = prefix + map.key(i).text;
      if (map.value(i).is_map()) {
        add_attributes(map.value(i), name + ".", record);
      } else if (!attribute_names_.insert(name).second) {
        diagnostics_.error(map.key(i), fmt::format("the attribute {} is given twice", quoted(name)),
                           "remove one of the two");
      } else {
        record.attributes.emplace_back(std::move(name), map.value(i).text);
      }
    }
  }

  [[nodiscard]] bool is_first(const ApiKeyRecord& record, const Reader& reader) {
    const Node& name = *reader.find("name");
    const auto [named, new_name] = lines_of_names_.try_emplace(record.name, name.place().line);
    if (!new_name) {
      diagnostics_.error(
          name,
          fmt::format("the name {} is taken, first in line {}", quoted(record.name), named->second),
          "names are unique: choose another");
    }
    const Node& hash = *reader.find("hash");
    // Digits of either case are the same hash.
    const auto [hashed, new_hash] =
        lines_of_hashes_.try_emplace(rules::lower_case(record.hash), hash.place().line);
    if (!new_hash) {
      diagnostics_.error(hash,
                         fmt::format("the same hash stands in line {} already", hashed->second),
                         "remove one of the two");
    }
    return new_name && new_hash;
  }

  const Checked& checked_;
  Diagnostics& diagnostics_;
  std::set<std::string> attribute_names_;  // of the current key
  std::map<std::string, std::uint32_t> lines_of_names_;
  std::map<std::string, std::uint32_t> lines_of_hashes_;
};

std::vector<ApiKeyRecord> read_document(const config::Document& document,
                                        Diagnostics& diagnostics) {
  const Checked checked = config::check(document.root, key_file_shape(), "the file", diagnostics);
  if (!document.root.is_map()) return {};
  const Reader file{document.root, key_file_section(), checked};
  std::vector<ApiKeyRecord> records;
  KeyReader keys{checked, diagnostics};
  for (const Node* key : file.list("keys")) {
    if (auto record = keys.read(*key)) records.push_back(*std::move(record));
  }
  return records;
}

// ---- writing ----------------------------------------------------------------------------------

// Whether every YAML reader takes the text literally without quotes.
bool is_safe_plain(std::string_view text) {
  constexpr std::string_view kSafe =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-@/+";
  const auto is_word_like = [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  return !text.empty() && is_word_like(text.front()) &&
         text.find_first_not_of(kSafe) == std::string_view::npos && text != "null" &&
         text != "Null" && text != "NULL" && config::classify_plain(text) == config::Plain::text;
}

std::string yaml_text(std::string_view text) {
  return is_safe_plain(text) ? std::string{text} : json_string(text);
}

bool equal(const ApiKeyRecord& a, const ApiKeyRecord& b) {
  return a.name == b.name && a.hash == b.hash && a.user == b.user && a.tenant == b.tenant &&
         a.tier == b.tier && a.attributes == b.attributes && a.expires == b.expires;
}

// The list of keys as written: `keys: []`, or dashes below each other down to the end of the file.
// Any other layout is a person's.
std::optional<std::string> appended(const config::Document& document, const ApiKeyRecord& record) {
  const std::string& text = document.source->text;
  const Node& list = *document.root.find("keys");
  if (text[list.offset] != '[') {
    const std::size_t column = list.place().column - 1;
    return text + (text.ends_with('\n') ? "" : "\n") + key_file_item(record, column);
  }
  if (!list.children.empty()) return std::nullopt;
  const std::size_t close = text.find_first_not_of(" \t\r\n", list.offset + 1);
  if (close == std::string::npos || text[close] != ']') return std::nullopt;
  std::size_t before = list.offset;
  while (before > 0 && text[before - 1] == ' ') --before;
  return text.substr(0, before) + "\n" + key_file_item(record, 2) + text.substr(close + 1);
}

tl::unexpected<Diagnostic> cannot_add(std::string_view file, std::string_view why,
                                      const ApiKeyRecord& record) {
  return mistake(fmt::format("{}: {}", file, why),
                 fmt::format("add it by hand:\n{}", key_file_item(record, 2)));
}

}  // namespace

std::vector<ApiKeyRecord> read_api_keys(std::string_view text, std::string_view file,
                                        Diagnostics& diagnostics) {
  const auto document = config::parse_document(text, file, diagnostics, kOptions);
  return document ? read_document(*document, diagnostics) : std::vector<ApiKeyRecord>{};
}

std::string key_file_item(const ApiKeyRecord& record, std::size_t column) {
  const std::string indent(column, ' ');
  std::string item = fmt::format("{}- name: {}\n", indent, yaml_text(record.name));
  const auto add = [&](std::string_view key, std::string_view value) {
    if (!value.empty()) item += fmt::format("{}  {}: {}\n", indent, key, yaml_text(value));
  };
  item += fmt::format("{}  hash: {}\n", indent, record.hash);
  add("user", record.user);
  add("tenant", record.tenant);
  add("tier", record.tier);
  if (!record.attributes.empty()) item += fmt::format("{}  attributes:\n", indent);
  for (const auto& [name, value] : record.attributes) {
    item += fmt::format("{}    {}: {}\n", indent, yaml_text(name), json_string(value));
  }
  if (record.expires)
    item += fmt::format("{}  expires: {}\n", indent, format_rfc3339(*record.expires));
  return item;
}

std::string key_file_text(const std::vector<ApiKeyRecord>& records, std::string_view schema) {
  std::string text;
  if (!schema.empty()) text += fmt::format("# yaml-language-server: $schema={}\n", schema);
  text +=
      "# API keys by their hashes; the keys themselves are nowhere. 'sluice keys create' adds "
      "one.\n";
  text += records.empty() ? "keys: []\n" : "keys:\n";
  for (const ApiKeyRecord& record : records) text += key_file_item(record, 2);
  return text;
}

// The result is read again and compared, so that no unforeseen layout does harm.
Parsed<std::string> with_api_key(std::string_view text, std::string_view file,
                                 const ApiKeyRecord& record) {
  Diagnostics diagnostics;
  const auto document = config::parse_document(text, file, diagnostics, kOptions);
  std::vector<ApiKeyRecord> records;
  if (document) records = read_document(*document, diagnostics);
  if (!diagnostics.ok()) {
    return mistake(fmt::format("{} has mistakes already\n{}", file, diagnostics.text()),
                   "correct them first");
  }
  for (const ApiKeyRecord& known : records) {
    if (known.name == record.name) {
      return mistake(fmt::format("{} has a key called {}", file, quoted(record.name)),
                     "choose another name");
    }
  }
  const std::optional<std::string> longer = appended(*document, record);
  if (!longer) return cannot_add(file, "its keys are written in brackets", record);

  std::vector<ApiKeyRecord> wanted = std::move(records);
  wanted.push_back(record);
  Diagnostics after;
  if (!std::ranges::equal(read_api_keys(*longer, file, after), wanted, equal) || !after.ok()) {
    return cannot_add(file, "its keys are arranged in an unusual way", record);
  }
  return *longer;
}

}  // namespace sluice::embed
