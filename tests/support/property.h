// Rapidcheck properties inside GoogleTest, with a number of cases that fits their cost.
//
// A failing property prints its seed and its smallest counterexample; RC_PARAMS="seed=..." repeats
// it, RC_PARAMS="max_success=1000" runs ten times as many cases of everything. A brief run
// (effort.h) has a quarter of the cases, and at least a hundred of each property that has as many.
#pragma once

#include "support/effort.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>

namespace sluice::testing {

template <class Testable>
void check_property(int cases, Testable&& testable) {
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const rc::detail::TestMetadata metadata{
      .id = std::string{test->test_suite_name()} + "/" + test->name(), .description = test->name()};
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  const int brief = std::max(cases / 4, std::min(cases, 100));
  params.maxSuccess = params.maxSuccess * effort(brief, cases) / 100;
  const rc::detail::TestResult result =
      rc::detail::checkTestable(std::forward<Testable>(testable), metadata, params);
  if (result.is<rc::detail::SuccessResult>()) return;
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  ADD_FAILURE() << text.str();
}

}  // namespace sluice::testing
