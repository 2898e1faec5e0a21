#include "support/json_schema.h"

#include "base/json_escape.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <regex>

namespace sluice::testing {
namespace {

namespace dom = simdjson::dom;

template <class Value>
std::string text_of(const Value& value) {
  return simdjson::minify(value);
}

const char* type_of(const dom::element& value) {
  switch (value.type()) {
    case dom::element_type::ARRAY: return "array";
    case dom::element_type::OBJECT: return "object";
    case dom::element_type::INT64:
    case dom::element_type::UINT64: return "integer";
    case dom::element_type::DOUBLE: return "number";
    case dom::element_type::STRING: return "string";
    case dom::element_type::BOOL: return "boolean";
    case dom::element_type::NULL_VALUE: break;
  }
  return "null";
}

bool contains(const dom::object& object, std::string_view name) {
  return object.at_key(name).error() == simdjson::SUCCESS;
}

// Conversions of simdjson's values throw where the schema has something else.
class Validator {
 public:
  explicit Validator(dom::object root) : root_(root) {}

  std::string check(dom::object schema, dom::element value) const {
    for (const auto& [keyword, argument] : schema) {
      if (std::string wrong = check_keyword(keyword, argument, schema, value); !wrong.empty()) {
        return wrong;
      }
    }
    return {};
  }

 private:
  static bool is_annotation(std::string_view keyword) {
    constexpr std::array<std::string_view, 7> kAnnotations{
        "$schema", "$id", "$defs", "title", "description", "default", "examples"};
    return std::find(kAnnotations.begin(), kAnnotations.end(), keyword) != kAnnotations.end();
  }

  std::string check_keyword(std::string_view keyword, dom::element argument, dom::object schema,
                            dom::element value) const {
    if (is_annotation(keyword)) return {};
    if (keyword == "type") return check_type(argument, value);
    if (keyword == "$ref") return check(referred(argument), value);
    if (keyword == "enum") return check_enum(argument, value);
    if (keyword == "anyOf") return check_any(argument, value);
    if (keyword == "oneOf") return check_one(argument, value);
    if (keyword == "allOf") return check_all(argument, value);
    if (keyword == "pattern" || keyword == "minLength") return check_text(keyword, argument, value);
    if (keyword == "minimum" || keyword == "maximum") return check_number(keyword, argument, value);
    if (keyword == "items" || keyword == "minItems") return check_list(keyword, argument, value);
    if (value.is_object()) return check_object(keyword, argument, schema, value);
    constexpr std::array<std::string_view, 5> kObject{"properties", "required", "propertyNames",
                                                      "additionalProperties", "dependentRequired"};
    const bool known = std::find(kObject.begin(), kObject.end(), keyword) != kObject.end();
    return known ? std::string{} : "unknown keyword " + std::string{keyword};
  }

  dom::object referred(std::string_view reference) const {
    constexpr std::string_view kPrefix = "#/$defs/";
    return root_["$defs"][reference.substr(kPrefix.size())];
  }

  static std::string check_type(std::string_view type, dom::element value) {
    return type == type_of(value) ? std::string{}
                                  : text_of(value) + " is not of type " + std::string{type};
  }

  static std::string check_enum(dom::array words, dom::element value) {
    for (const dom::element word : words) {
      if (text_of(word) == text_of(value)) return {};
    }
    return text_of(value) + " is none of " + text_of(words);
  }

  std::size_t matching(dom::array schemas, dom::element value) const {
    std::size_t count = 0;
    for (const dom::element one : schemas) count += check(one, value).empty() ? 1U : 0U;
    return count;
  }

  std::string check_any(dom::array schemas, dom::element value) const {
    return matching(schemas, value) > 0 ? std::string{} : text_of(value) + " matches none";
  }
  std::string check_one(dom::array schemas, dom::element value) const {
    return matching(schemas, value) == 1 ? std::string{} : text_of(value) + " does not match one";
  }
  std::string check_all(dom::array schemas, dom::element value) const {
    for (const dom::element one : schemas) {
      if (std::string wrong = check(one, value); !wrong.empty()) return wrong;
    }
    return {};
  }

  static std::string check_text(std::string_view keyword, dom::element argument,
                                dom::element value) {
    if (!value.is_string()) return {};
    const std::string text{std::string_view{value}};
    const bool good =
        keyword == "minLength"
            ? text.size() >= std::uint64_t{argument}
            : std::regex_search(text, std::regex{std::string{std::string_view{argument}}});
    return good ? std::string{} : text_of(value) + " does not have " + text_of(argument);
  }

  static std::string check_number(std::string_view keyword, dom::element argument,
                                  dom::element value) {
    if (value.type() == dom::element_type::UINT64) {  // only what does not fit a signed one
      return keyword == "maximum" ? text_of(value) + " is too large" : std::string{};
    }
    if (!value.is_int64()) return {};
    const std::int64_t number = value;
    const std::int64_t bound = argument;
    const bool good = keyword == "minimum" ? number >= bound : number <= bound;
    return good ? std::string{} : text_of(value) + " is out of range";
  }

  std::string check_list(std::string_view keyword, dom::element argument,
                         dom::element value) const {
    if (!value.is_array()) return {};
    const dom::array items = value;
    if (keyword == "minItems") {
      return items.size() >= std::uint64_t{argument} ? std::string{} : "too few items";
    }
    for (const dom::element item : items) {
      if (std::string wrong = check(argument, item); !wrong.empty()) return wrong;
    }
    return {};
  }

  std::string check_object(std::string_view keyword, dom::element argument, dom::object schema,
                           dom::object object) const {
    if (keyword == "required") return lacking(argument, object);
    if (keyword == "properties") return check_properties(argument, object);
    if (keyword == "propertyNames") return check_names(argument, object);
    if (keyword == "dependentRequired") {
      for (const auto& [name, needed] : dom::object{argument}) {
        if (!contains(object, name)) continue;
        if (std::string wrong = lacking(needed, object); !wrong.empty()) return wrong;
      }
      return {};
    }
    if (keyword == "additionalProperties") return check_others(argument, schema, object);
    return "unknown keyword " + std::string{keyword};
  }

  std::string check_properties(dom::object properties, dom::object object) const {
    for (const auto& [name, one] : properties) {
      if (!contains(object, name)) continue;
      if (std::string wrong = check(one, object[name]); !wrong.empty()) return wrong;
    }
    return {};
  }

  std::string check_names(dom::object schema, dom::object object) const {
    dom::parser parser;
    for (const auto& [name, value] : object) {
      std::string quoted = "\"";
      escape_json(name, [&quoted](std::string_view piece) { quoted += piece; });
      if (std::string wrong = check(schema, parser.parse(quoted + "\"")); !wrong.empty()) {
        return wrong;
      }
    }
    return {};
  }

  static std::string lacking(dom::array names, dom::object object) {
    for (const dom::element name : names) {
      if (!contains(object, name)) return text_of(name) + " is missing";
    }
    return {};
  }

  std::string check_others(dom::element argument, dom::object schema, dom::object object) const {
    for (const auto& [name, value] : object) {
      if (contains(schema, "properties") && contains(schema["properties"], name)) continue;
      if (argument.is_bool()) {
        if (!bool{argument}) return "unknown property " + std::string{name};
      } else if (std::string wrong = check(argument, value); !wrong.empty()) {
        return wrong;
      }
    }
    return {};
  }

  dom::object root_;
};

}  // namespace

JsonSchema::JsonSchema(std::string_view schema)
    : root_(parser_.parse(schema.data(), schema.size())) {}

std::string JsonSchema::mistake_in(std::string_view json) const {
  dom::parser parser;
  dom::element value;
  const simdjson::error_code failed = parser.parse(json.data(), json.size()).get(value);
  if (failed != simdjson::SUCCESS) return std::string{"no JSON: "} + error_message(failed);
  try {
    return Validator{root_}.check(root_, value);
  } catch (const std::exception& wrong) {
    return std::string{"the schema is malformed: "} + wrong.what();
  }
}

}  // namespace sluice::testing
