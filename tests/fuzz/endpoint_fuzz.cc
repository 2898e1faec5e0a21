// What is accepted is written as text that is accepted again and means the same; what is refused
// comes with a reason.

#include "net/endpoint.h"

#include "fuzz.h"

#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using sluice::fuzz::expect;
  using sluice::net::Endpoint;
  const std::string text{data, data + size};
  const auto endpoint = Endpoint::parse(text);
  if (!endpoint) {
    expect(!endpoint.error().message.empty() && !endpoint.error().remedy.empty(), "a reason");
    return 0;
  }
  const auto again = Endpoint::parse(endpoint->text());
  expect(again.has_value(), "its own text is accepted");
  expect(*again == *endpoint, "its own text means the same");
  expect(again->text() == endpoint->text(), "there is one text");
  return 0;
}
