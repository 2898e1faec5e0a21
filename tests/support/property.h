// Rapidcheck properties inside GoogleTest, with a number of cases that fits their cost.
//
// A failing property prints its seed and its smallest counterexample; RC_PARAMS="seed=..." repeats
// it, RC_PARAMS="max_success=1000" runs ten times as many cases of everything.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

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
  params.maxSuccess = params.maxSuccess * cases / 100;
  const rc::detail::TestResult result =
      rc::detail::checkTestable(std::forward<Testable>(testable), metadata, params);
  if (result.is<rc::detail::SuccessResult>()) return;
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  ADD_FAILURE() << text.str();
}

}  // namespace sluice::testing
