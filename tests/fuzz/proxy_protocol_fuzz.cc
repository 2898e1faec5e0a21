// The answer on some bytes is the answer on all bytes that begin alike: a header that is complete
// stays so, one that is malformed stays so, and none is complete before its last byte.

#include "identity/proxy_protocol.h"

#include "fuzz.h"

#include <string>
#include <string_view>

namespace {

using sluice::fuzz::expect;
using sluice::identity::parse_proxy_header;
using sluice::identity::ProxyParse;
using State = ProxyParse::State;

void check_inside(std::string_view part, std::string_view whole) {
  if (part.empty()) return;
  expect(part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size(),
         "views stay inside the bytes");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes{data, data + size};
  const std::string_view view{bytes};
  const ProxyParse whole = parse_proxy_header(view);
  if (whole.state == State::malformed) expect(*whole.why != '\0', "a refusal comes with a reason");
  if (whole.state == State::done) {
    expect(whole.consumed > 0 && whole.consumed <= size, "a header is among the bytes");
    check_inside(whole.header.authority, view);
    check_inside(whole.header.alpn, view);
    check_inside(whole.header.unique_id, view);
  }
  bool refused = false;
  for (std::size_t length = 0; length <= size; length += 1 + length / 64) {
    const ProxyParse part = parse_proxy_header(view.substr(0, length));
    if (part.state == State::malformed) refused = true;
    if (refused) expect(part.state == State::malformed, "what is malformed stays so");
    if (whole.state == State::done) {
      expect(part.state == (length < whole.consumed ? State::need_more : State::done),
             "a header is complete at its last byte");
    }
  }
  if (refused) expect(whole.state == State::malformed, "what is malformed stays so");
  return 0;
}
