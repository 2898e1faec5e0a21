#include "store/redis/function_library.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::store {
namespace {

// The name follows the text: a changed function has another name.
TEST(FunctionLibrary, IsNamedAfterItsText) {
  const FunctionLibrary shipped = function_library();
  EXPECT_EQ(shipped.name.size(), std::string{"sluice_"}.size() + 16);
  EXPECT_EQ(shipped.name, function_library().name);
  EXPECT_EQ(shipped.read_only_name, shipped.name + "_ro");
  EXPECT_NE(shipped.name, function_library_with("-- another clock\n").name);
}

TEST(FunctionLibrary, IsOneTextForFunctionsAndScripts) {
  const FunctionLibrary shipped = function_library();
  EXPECT_EQ(shipped.library, "#!lua name=" + shipped.name + "\n" + shipped.script);
  EXPECT_EQ(shipped.script.find("@NAME@"), std::string::npos);
  EXPECT_EQ(shipped.script.find(function_file("clock")), 0U);
}

TEST(FunctionLibrary, HoldsEveryFile) {
  for (const char* const name :
       {"bucket", "call", "chunks", "clock", "counter", "field", "grants", "lease", "log", "main",
        "numbers", "operations", "session", "slices", "slots", "window"}) {
    EXPECT_FALSE(function_file(name).empty()) << name;
  }
  EXPECT_TRUE(function_file("another").empty());
}

}  // namespace
}  // namespace sluice::store
