// Any time that is read is written so that reading it again yields the same instant.

#include "base/rfc3339.h"

#include "fuzz.h"

#include <string>
#include <string_view>

using sluice::fuzz::expect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text{data, data + size};
  const auto time = sluice::parse_rfc3339(text);
  if (!time) {
    expect(!time.error().message.empty(), "a rejected time comes with a reason");
    return 0;
  }
  expect(*time >= sluice::WallTime{}, "no accepted time lies before 1970");
  const auto again = sluice::parse_rfc3339(sluice::format_rfc3339(*time));
  expect(again && *again == *time, "an accepted time survives format and parse");
  return 0;
}
