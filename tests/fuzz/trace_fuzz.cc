// A trace of arbitrary bytes is read to its end or stops with a message that names a place;
// whatever was read can be replayed through every algorithm, within its bounds.

#include "cli/replay/trace.h"

#include "cli/replay/comparison.h"
#include "cli/replay/picture.h"
#include "fuzz.h"
#include <sluice/core/limit_text.h>

#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

using sluice::fuzz::expect;

namespace {

// A file that exists in memory only.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view content) : descriptor_(memfd_create("trace", 0)) {
    const auto written = ::write(descriptor_, content.data(), content.size());
    expect(written == static_cast<ssize_t>(content.size()), "the test's own file can be written");
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(descriptor_); }

  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice::cli;
  const MemoryFile file{std::string{data, data + size}};
  auto reader = TraceReader::open(file.path());
  if (!reader) {
    expect(!reader.error().message.empty(), "a trace that cannot be read comes with a reason");
    return 0;
  }
  auto requests = read_all(*reader);
  if (!requests) {
    expect(requests.error().message.starts_with(file.path()), "a mistake names its file");
    return 0;
  }
  const auto limit = sluice::core::parse_limit("3/1h", std::nullopt);
  const ComparedField field = all_algorithms(*limit, true);
  const Comparison comparison = compare(*std::move(requests), field.contenders);
  for (const Lane& lane : comparison.lanes) {
    expect(lane.admissions.size() == comparison.requests.size(), "every request is answered");
  }
  expect(!picture_svg(comparison, *limit).empty(), "every trace can be drawn");
  return 0;
}
