// Lines of access logs: whatever they hold, they are read or refused with a reason.

#include "cli/replay/access_log.h"

#include "fuzz.h"

#include <string>
#include <string_view>

using sluice::fuzz::expect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string line{data, data + size};
  for (const auto parse : {&sluice::cli::parse_combined, &sluice::cli::parse_json_line}) {
    const auto request = parse(line);
    if (!request) {
      expect(!request.error().message.empty(), "a rejected line comes with a reason");
      continue;
    }
    expect(request->status <= 999, "a status has three digits at most");
    expect(request->duration >= sluice::Nanos{0}, "nothing takes less than no time");
    expect(request->at >= sluice::WallTime{}, "no accepted time lies before 1970");
  }
  return 0;
}
