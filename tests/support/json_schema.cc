#include "support/json_schema.h"

#include <boost/json/src.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <regex>
#include <string_view>

namespace sluice::testing {
namespace {

namespace json = boost::json;

std::string text_of(const json::value& value) { return json::serialize(value); }

class Validator {
 public:
  explicit Validator(const json::object& root) : root_(root) {}

  std::string check(const json::object& schema, const json::value& value) const {
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

  std::string check_keyword(std::string_view keyword, const json::value& argument,
                            const json::object& schema, const json::value& value) const {
    if (is_annotation(keyword)) return {};
    if (keyword == "type") return check_type(argument.as_string(), value);
    if (keyword == "$ref") return check(referred(argument.as_string()), value);
    if (keyword == "enum") return check_enum(argument.as_array(), value);
    if (keyword == "anyOf") return check_any(argument.as_array(), value);
    if (keyword == "oneOf") return check_one(argument.as_array(), value);
    if (keyword == "allOf") return check_all(argument.as_array(), value);
    if (keyword == "pattern" || keyword == "minLength") return check_text(keyword, argument, value);
    if (keyword == "minimum" || keyword == "maximum") return check_number(keyword, argument, value);
    if (keyword == "items" || keyword == "minItems") return check_list(keyword, argument, value);
    if (value.is_object()) return check_object(keyword, argument, schema, value.as_object());
    constexpr std::array<std::string_view, 5> kObject{"properties", "required", "propertyNames",
                                                      "additionalProperties", "dependentRequired"};
    const bool known = std::find(kObject.begin(), kObject.end(), keyword) != kObject.end();
    return known ? std::string{} : "unknown keyword " + std::string{keyword};
  }

  const json::object& referred(std::string_view reference) const {
    constexpr std::string_view kPrefix = "#/$defs/";
    return root_.at("$defs").as_object().at(reference.substr(kPrefix.size())).as_object();
  }

  static std::string check_type(std::string_view type, const json::value& value) {
    const bool is_integer = value.is_int64() || value.is_uint64();
    const bool good = (type == "string" && value.is_string()) ||
                      (type == "boolean" && value.is_bool()) || (type == "integer" && is_integer) ||
                      (type == "array" && value.is_array()) ||
                      (type == "object" && value.is_object());
    return good ? std::string{} : text_of(value) + " is not of type " + std::string{type};
  }

  static std::string check_enum(const json::array& words, const json::value& value) {
    const bool found = std::find(words.begin(), words.end(), value) != words.end();
    return found ? std::string{} : text_of(value) + " is none of " + text_of(words);
  }

  std::size_t matching(const json::array& schemas, const json::value& value) const {
    return static_cast<std::size_t>(std::count_if(
        schemas.begin(), schemas.end(),
        [&](const json::value& one) { return check(one.as_object(), value).empty(); }));
  }

  std::string check_any(const json::array& schemas, const json::value& value) const {
    return matching(schemas, value) > 0 ? std::string{} : text_of(value) + " matches none";
  }
  std::string check_one(const json::array& schemas, const json::value& value) const {
    return matching(schemas, value) == 1 ? std::string{} : text_of(value) + " does not match one";
  }
  std::string check_all(const json::array& schemas, const json::value& value) const {
    for (const json::value& one : schemas) {
      if (std::string wrong = check(one.as_object(), value); !wrong.empty()) return wrong;
    }
    return {};
  }

  static std::string check_text(std::string_view keyword, const json::value& argument,
                                const json::value& value) {
    if (!value.is_string()) return {};
    const std::string text{value.as_string()};
    const bool good = keyword == "minLength"
                          ? text.size() >= argument.to_number<std::size_t>()
                          : std::regex_search(text, std::regex{std::string{argument.as_string()}});
    return good ? std::string{} : text_of(value) + " does not have " + text_of(argument);
  }

  static std::string check_number(std::string_view keyword, const json::value& argument,
                                  const json::value& value) {
    if (value.is_uint64()) {  // only what does not fit a signed one
      return keyword == "maximum" ? text_of(value) + " is too large" : std::string{};
    }
    if (!value.is_int64()) return {};
    const auto bound = argument.to_number<std::int64_t>();
    const bool good = keyword == "minimum" ? value.as_int64() >= bound : value.as_int64() <= bound;
    return good ? std::string{} : text_of(value) + " is out of range";
  }

  std::string check_list(std::string_view keyword, const json::value& argument,
                         const json::value& value) const {
    if (!value.is_array()) return {};
    const json::array& items = value.as_array();
    if (keyword == "minItems") {
      return items.size() >= argument.to_number<std::size_t>() ? std::string{} : "too few items";
    }
    for (const json::value& item : items) {
      if (std::string wrong = check(argument.as_object(), item); !wrong.empty()) return wrong;
    }
    return {};
  }

  std::string check_object(std::string_view keyword, const json::value& argument,
                           const json::object& schema, const json::object& object) const {
    if (keyword == "required") return lacking(argument.as_array(), object);
    if (keyword == "properties") {
      for (const auto& [name, one] : argument.as_object()) {
        const json::value* member = object.if_contains(name);
        if (member == nullptr) continue;
        if (std::string wrong = check(one.as_object(), *member); !wrong.empty()) return wrong;
      }
      return {};
    }
    if (keyword == "propertyNames") {
      for (const auto& member : object) {
        const json::value name{member.key()};
        if (std::string wrong = check(argument.as_object(), name); !wrong.empty()) return wrong;
      }
      return {};
    }
    if (keyword == "dependentRequired") {
      for (const auto& [name, needed] : argument.as_object()) {
        if (!object.contains(name)) continue;
        if (std::string wrong = lacking(needed.as_array(), object); !wrong.empty()) return wrong;
      }
      return {};
    }
    if (keyword == "additionalProperties") return check_others(argument, schema, object);
    return "unknown keyword " + std::string{keyword};
  }

  static std::string lacking(const json::array& names, const json::object& object) {
    for (const json::value& name : names) {
      if (!object.contains(name.as_string())) return text_of(name) + " is missing";
    }
    return {};
  }

  std::string check_others(const json::value& argument, const json::object& schema,
                           const json::object& object) const {
    const json::value* properties = schema.if_contains("properties");
    for (const auto& member : object) {
      if (properties != nullptr && properties->as_object().contains(member.key())) continue;
      if (argument.is_bool()) {
        if (!argument.as_bool()) return "unknown property " + std::string{member.key()};
      } else if (std::string wrong = check(argument.as_object(), member.value()); !wrong.empty()) {
        return wrong;
      }
    }
    return {};
  }

  const json::object& root_;
};

}  // namespace

std::string schema_mistake(const json::value& schema, const json::value& value) {
  try {
    return Validator{schema.as_object()}.check(schema.as_object(), value);
  } catch (const std::exception& wrong) {
    return std::string{"the schema is malformed: "} + wrong.what();
  }
}

}  // namespace sluice::testing
