#include "config/schema.h"

#include "base/text.h"
#include "config/json.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::config {
namespace {

// Members of an object, comma by comma.
class Members {
 public:
  void add(std::string_view name, const std::string& json) {
    text_ += (text_.empty() ? "" : ",") + json_string(name) + ":" + json;
  }
  void add_raw(const std::string& members) {
    if (!members.empty()) text_ += (text_.empty() ? "" : ",") + members;
  }
  [[nodiscard]] const std::string& members() const noexcept { return text_; }
  [[nodiscard]] std::string object() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

std::string array(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ",") + item;
  return "[" + text + "]";
}

template <class Words>
std::string word_array(const Words& words) {
  std::vector<std::string> quoted_words;
  for (const std::string_view one : words) quoted_words.push_back(json_string(one));
  return array(quoted_words);
}

std::string shape_members(const Shape& shape);

std::string form_members(const Form& form) {
  Members members;
  switch (form.type) {
    case Form::Type::text:
      members.add("type", "\"string\"");
      if (form.format == nullptr) {
        members.add("minLength", "1");
      } else if (!form.format->pattern.empty()) {
        members.add("pattern", json_string(form.format->pattern));
      }
      break;
    case Form::Type::word: members.add("enum", word_array(form.words)); break;
    case Form::Type::flag: members.add("type", "\"boolean\""); break;
    case Form::Type::number:
      members.add("type", "\"integer\"");
      members.add("minimum", std::to_string(form.min));
      members.add("maximum", std::to_string(form.max));
      break;
    case Form::Type::decimal:
      members.add("type", "\"number\"");
      members.add("minimum", format_thousandths(form.min));
      members.add("maximum", format_thousandths(form.max));
      break;
    case Form::Type::list:
      members.add("type", "\"array\"");
      members.add("items", "{" + shape_members(*form.items) + "}");
      if (!form.may_be_empty) members.add("minItems", "1");
      break;
    case Form::Type::map:
      members.add("$ref", json_string(fmt::format("#/$defs/{}", form.section().name)));
      break;
    case Form::Type::anything: break;
  }
  return members.members();
}

std::string shape_members(const Shape& shape) {
  if (shape.forms.size() == 1) return form_members(shape.forms.front());
  std::vector<std::string> forms;
  for (const Form& form : shape.forms) forms.push_back("{" + form_members(form) + "}");
  return "\"anyOf\":" + array(forms);
}

// An example is a value in YAML; an invalid example is left out, and a test finds it.
std::optional<std::string> example_json(std::string_view yaml) {
  Diagnostics diagnostics;
  const auto document = parse_document(yaml, "example", diagnostics);
  if (!document || !diagnostics.ok()) return std::nullopt;
  return to_json(document->root);
}

std::string key_schema(const Key& key) {
  Members members;
  members.add("description", json_string(key.meaning));
  if (!key.fallback.empty()) {
    if (const auto fallback = example_json(key.fallback)) members.add("default", *fallback);
  }
  std::vector<std::string> examples;
  for (const std::string_view example : key.examples) {
    if (auto json = example_json(example)) examples.push_back(*std::move(json));
  }
  if (!examples.empty()) members.add("examples", array(examples));
  members.add_raw(shape_members(key.shape));
  return members.object();
}

std::string required_one(std::string_view key) {
  return "{\"required\":[" + json_string(key) + "]}";
}

std::string sets_schema(const Section& section) {
  std::vector<std::string> all;
  const auto add = [&](std::string_view combination, const std::vector<std::string_view>& keys) {
    std::vector<std::string> choices;
    for (const std::string_view key : keys) choices.push_back(required_one(key));
    all.push_back("{" + json_string(combination) + ":" + array(choices) + "}");
  };
  for (const auto& keys : section.exactly_one) add("oneOf", keys);
  for (const auto& keys : section.at_least_one) add("anyOf", keys);
  return all.empty() ? std::string{} : "\"allOf\":" + array(all);
}

std::string section_schema(const Section& section) {
  Members schema;
  Members properties;
  std::vector<std::string_view> required;
  for (const Key& key : section.keys) {
    properties.add(key.name, key_schema(key));
    if (key.required) required.push_back(key.name);
  }
  schema.add("description", json_string(section.meaning));
  schema.add("type", "\"object\"");
  schema.add("properties", properties.object());
  if (!required.empty()) schema.add("required", word_array(required));
  if (section.others) {
    const OtherKeys& others = *section.others;
    if (others.format != nullptr && !others.format->pattern.empty() && section.keys.empty()) {
      schema.add("propertyNames",
                 fmt::format("{{\"pattern\":{}}}", json_string(others.format->pattern)));
    }
    schema.add("additionalProperties",
               fmt::format("{{\"description\":{},{}}}", json_string(others.meaning),
                           shape_members(others.shape)));
  } else {
    schema.add("additionalProperties", "false");
  }
  Members needs;
  for (const auto& [key, needed] : section.needs) {
    needs.add(key, "[" + json_string(needed) + "]");
  }
  if (!needs.members().empty()) schema.add("dependentRequired", needs.object());
  schema.add_raw(sets_schema(section));
  return schema.object();
}

}  // namespace

std::string json_schema(const Shape& root, const SchemaTitle& title) {
  Members schema;
  schema.add("$schema", "\"https://json-schema.org/draft/2020-12/schema\"");
  schema.add("$id", json_string(title.id));
  schema.add("title", json_string(title.title));
  schema.add_raw(shape_members(root));
  Members definitions;
  for (const Section* section : sections_of(root)) {
    definitions.add(section->name, section_schema(*section));
  }
  schema.add("$defs", definitions.object());
  return schema.object();
}

}  // namespace sluice::config
