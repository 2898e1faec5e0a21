// A validator for the part of JSON Schema (draft 2020-12) that our schemas use.
//
// A keyword that it does not know is an error, so that no schema rests on one that is not checked.
#pragma once

#include <simdjson.h>

#include <string>
#include <string_view>

namespace sluice::testing {

class JsonSchema {
 public:
  // Throws simdjson::simdjson_error where it is no JSON.
  explicit JsonSchema(std::string_view schema);
  JsonSchema(const JsonSchema&) = delete;
  JsonSchema& operator=(const JsonSchema&) = delete;
  ~JsonSchema() = default;

  [[nodiscard]] simdjson::dom::object root() const { return root_; }

  // What is wrong with a text of JSON, or with the schema itself; empty if nothing is.
  [[nodiscard]] std::string mistake_in(std::string_view json) const;

 private:
  simdjson::dom::parser parser_;
  simdjson::dom::object root_;
};

}  // namespace sluice::testing
