// A hundred mistakes that people make, each in a file of its own beside what it should be told.
//
// With SLUICE_WRITE_EXPECTED=1 in the environment the expectations are written anew; read the
// difference before it is committed.

#include "rules/parse_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace sluice::rules {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder{fs::path{SLUICE_SOURCE_DIR} / "tests" / "corpus" / "broken_rules"};

std::vector<std::string> names() {
  std::vector<std::string> stems;
  for (const auto& entry : fs::directory_iterator{kFolder}) {
    if (entry.path().extension() == ".yaml") stems.push_back(entry.path().stem().string());
  }
  std::sort(stems.begin(), stems.end());
  return stems;
}

std::string content_of(const fs::path& file) {
  std::ifstream stream{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{stream}, std::istreambuf_iterator<char>{}};
}

// line:column: message; remedy
std::string told(const config::Diagnostics& diagnostics) {
  std::string text;
  for (const config::Mistake& mistake : diagnostics.sorted()) text += mistake.headline() + "\n";
  return text;
}

class BrokenRules : public testing::TestWithParam<std::string> {};

TEST_P(BrokenRules, AreToldWhatIsWrongAndWhere) {
  config::Diagnostics diagnostics;
  (void)parse_rules_text(content_of(kFolder / (GetParam() + ".yaml")), "", diagnostics);
  const std::string actual = told(diagnostics);
  const fs::path expectation = kFolder / (GetParam() + ".txt");
  if (std::getenv("SLUICE_WRITE_EXPECTED") != nullptr) {
    std::ofstream{expectation, std::ios::binary} << actual;
  }
  EXPECT_FALSE(diagnostics.empty()) << "nothing is wrong with this file";
  EXPECT_EQ(actual, content_of(expectation));
}

INSTANTIATE_TEST_SUITE_P(Corpus, BrokenRules, testing::ValuesIn(names()),
                         [](const auto& one) { return one.param; });

TEST(BrokenRulesCorpus, HasAHundredFiles) { EXPECT_GE(names().size(), 100U); }

}  // namespace
}  // namespace sluice::rules
