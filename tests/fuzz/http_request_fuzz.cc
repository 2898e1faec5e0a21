// Whatever bytes a client sends: the answer does not depend on the pieces in which they come, what
// is accepted means the same after it was written and read, and http_parser reads it as we do.

#include "fuzz.h"
#include "net/http/http_parser_fixture.h"

#include <array>
#include <string>
#include <string_view>

namespace {

using namespace sluice::net;
using sluice::fuzz::expect;

// Less than the parser that reads it again has: a head may grow by a line when it is written.
constexpr HeadLimits kLimits{.start_line_bytes = 4096, .header_bytes = 16384, .headers = 100};

void check_written(const RequestHead& head) {
  std::array<char, 65536> room;
  HeadWriter writer{room};
  write_request(writer, head, {.upgrade = true, .expect_continue = true});
  if (head.host.empty()) writer.header("Host", "a");
  const auto text = writer.finish();
  expect(text.has_value(), "what was accepted can be written");
  fixture::HeaderRoom headers;
  RequestParser parser{headers};
  expect(parser.parse(*text).state == HeadParse::State::complete, "what was written is accepted");
  RequestHead again = parser.head();
  if (head.host.empty()) again.host = {};
  expect(fixture::describe_meaning(again) == fixture::describe_meaning(head), "and means the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes{data, data + size};
  expect(fixture::first_dependence_on_pieces<RequestParser>(bytes, kLimits, 1 + size / 64) ==
             std::string::npos,
         "the answer does not depend on the pieces");
  fixture::HeaderRoom headers;
  RequestParser parser{headers, kLimits};
  const HeadParse parse = parser.parse(bytes);
  if (parse.state == HeadParse::State::fault) {
    expect(parse.fault.status >= 400 && parse.fault.status < 600, "a refusal has a status");
    expect(*parse.fault.why != '\0', "and a reason");
  }
  if (parse.state != HeadParse::State::complete) return 0;
  expect(parse.head_bytes <= size, "a head is among the bytes");
  check_written(parser.head());
  // The fixture wants the method first, which an empty line may precede.
  std::string_view head{bytes.data(), parse.head_bytes};
  if (head.starts_with("\r\n")) head.remove_prefix(2);
  expect(fixture::request_by_http_parser(head) ==
             fixture::as_http_parser_says_it(parser.head(), head.size()),
         "http_parser reads the same");
  return 0;
}
