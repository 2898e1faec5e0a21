// The same as of requests, of what servers send. The first byte says what was asked.

#include "fuzz.h"
#include "net/http/http_parser_fixture.h"

#include <array>
#include <string>
#include <string_view>

namespace {

using namespace sluice::net;
using sluice::fuzz::expect;

// Less than the parser that reads it again has: a head may grow when it is written.
constexpr HeadLimits kLimits{.start_line_bytes = 4096, .header_bytes = 16384, .headers = 100};

void check_written(const ResponseHead& head, std::string_view method) {
  std::array<char, 65536> room;
  HeadWriter writer{room};
  write_response(writer, head, head.body, {.upgrade = true});
  const auto text = writer.finish();
  expect(text.has_value(), "what was accepted can be written");
  fixture::HeaderRoom headers;
  ResponseParser parser{headers};
  parser.expect_answer_to(method);
  expect(parser.parse(*text).state == HeadParse::State::complete, "what was written is accepted");
  expect(fixture::describe_meaning(parser.head()) == fixture::describe_meaning(head),
         "and means the same");
}

// Where there is no body, whatever the lines say, http_parser has to be told so.
bool has_framing_of_its_own(const ResponseHead& head, std::string_view method) {
  const bool never_has_body = head.status < 200 || head.status == 204 || head.status == 304;
  return method != "HEAD" && !never_has_body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view method = data[0] % 4 == 0 ? "HEAD" : "GET";
  const std::string bytes{data + 1, data + size};
  expect(fixture::first_dependence_on_pieces<ResponseParser>(bytes, kLimits, 1 + size / 64) ==
             std::string::npos,
         "the answer does not depend on the pieces");
  fixture::HeaderRoom headers;
  ResponseParser parser{headers, kLimits};
  parser.expect_answer_to(method);
  const HeadParse parse = parser.parse(bytes);
  if (parse.state == HeadParse::State::fault) {
    expect(parse.fault.status == 502, "a refusal has its status");
    expect(*parse.fault.why != '\0', "and a reason");
  }
  if (parse.state != HeadParse::State::complete) return 0;
  expect(parse.head_bytes <= bytes.size(), "a head is among the bytes");
  check_written(parser.head(), method);
  const std::string_view head{bytes.data(), parse.head_bytes};
  if (!has_framing_of_its_own(parser.head(), method)) return 0;
  expect(fixture::response_by_http_parser(head) ==
             fixture::as_http_parser_says_it(parser.head(), head.size()),
         "http_parser reads the same");
  return 0;
}
