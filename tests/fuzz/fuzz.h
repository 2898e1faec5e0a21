// What all fuzz targets share.
//
// A target is one function over bytes. It ends the process when a promise is broken; rejecting the
// input is no failure. The fuzz preset links it with libFuzzer, the tests with replay_main.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

// libFuzzer fixes name and linkage.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace sluice::fuzz {

inline void expect(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

}  // namespace sluice::fuzz
