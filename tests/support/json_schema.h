// A validator for the part of JSON Schema (draft 2020-12) that our schemas use.
//
// A keyword that it does not know is an error, so that no schema rests on one that is not checked.
#pragma once

#include <boost/json/value.hpp>

#include <string>

namespace sluice::testing {

// What is wrong with a value, or with the schema itself; empty if nothing is.
[[nodiscard]] std::string schema_mistake(const boost::json::value& schema,
                                         const boost::json::value& value);

}  // namespace sluice::testing
