// What the command line says about requests, and what goes out.

#include "cli/load/http/request_template.h"
#include "net/http/request_parser.h"
#include "support/temp_folder.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <string>

namespace sluice::cli {
namespace {

std::string rendered(const RequestTemplate& request, std::uint64_t client) {
  std::string text = "what was here before";
  request.render(client, text);
  return text;
}

TEST(RequestTemplate, PutsTheNumberOfTheClientInItsPlaces) {
  const RequestTemplate request =
      RequestTemplate::make({.host = "a:1",
                             .path_and_query = "/u/{n}/x",
                             .headers = {"x-api-key:  key-{n}-{n} ", "accept: */*"}})
          .value();
  EXPECT_TRUE(request.depends_on_client());
  EXPECT_EQ(rendered(request, 41),
            "GET /u/42/x HTTP/1.1\r\nHost: a:1\r\nx-api-key: key-42-42\r\naccept: */*\r\n\r\n");
}

TEST(RequestTemplate, PutsTheKeyOfTheClientInItsPlace) {
  const RequestTemplate request =
      RequestTemplate::make(
          {.host = "a", .path_and_query = "/", .headers = {"k: {key}"}, .keys = {"one", "two"}})
          .value();
  EXPECT_TRUE(request.uses_keys());
  EXPECT_NE(rendered(request, 1).find("k: two\r\n"), std::string::npos);
}

// The body is sent as it is, braces and all: its length has been stated.
TEST(RequestTemplate, SendsABodyAsItIs) {
  const RequestTemplate request = RequestTemplate::make({.method = "POST",
                                                         .host = "a",
                                                         .path_and_query = "/",
                                                         .headers = {"Host: b"},
                                                         .body = "{n}",
                                                         .has_body = true})
                                      .value();
  EXPECT_FALSE(request.depends_on_client());
  EXPECT_EQ(rendered(request, 7), "POST / HTTP/1.1\r\nHost: b\r\nContent-Length: 3\r\n\r\n{n}");
}

// Whatever the command line allows is one request to a strict parser.
TEST(RequestTemplate, RendersWhatParses) {
  const RequestTemplate request =
      RequestTemplate::make({.host = "a", .path_and_query = "/{n}?{n}", .headers = {"x: \"{n}\""}})
          .value();
  std::array<HeaderView, 8> headers;
  net::RequestParser parser{headers};
  const std::string text = rendered(request, 9'999'999);
  const net::HeadParse parsed = parser.parse(text);
  ASSERT_EQ(parsed.state, net::HeadParse::State::complete);
  EXPECT_EQ(parsed.head_bytes, text.size());
  EXPECT_EQ(parser.head().path_and_query, "/10000000?10000000");
}

TEST(RequestTemplate, NamesTheOptionThatIsWrong) {
  const auto message = [](RequestParts parts) {
    const auto made = RequestTemplate::make(std::move(parts));
    return made ? std::string{"none"} : made.error().text();
  };
  EXPECT_NE(message({.method = "G T"}).find("--method"), std::string::npos);
  EXPECT_NE(message({.method = "CONNECT"}).find("--method"), std::string::npos);
  EXPECT_NE(message({.headers = {"novalue"}}).find("--header"), std::string::npos);
  EXPECT_NE(message({.headers = {"a b: c"}}).find("--header"), std::string::npos);
  EXPECT_NE(message({.headers = {"a: b\r\nc: d"}}).find("--header"), std::string::npos);
  EXPECT_NE(message({.headers = {"Content-Length: 3"}}).find("--header"), std::string::npos);
  EXPECT_NE(message({.headers = {"a: {key}"}}).find("--keys-file"), std::string::npos);
  EXPECT_NE(message({.keys = {"k"}}).find("--keys-file"), std::string::npos);
}

TEST(KeysFile, LeavesOutEmptyLinesAndComments) {
  const testing::TempFolder folder;
  std::ofstream{folder.file("keys")} << "# mine\none\r\n\n  two  \nthree";
  const auto keys = read_keys(folder.file("keys")).value();
  EXPECT_EQ(keys, (std::vector<std::string>{"one", "two", "three"}));
}

TEST(KeysFile, HasAtLeastOneKeyThatCanBeSent) {
  const testing::TempFolder folder;
  std::ofstream{folder.file("empty")} << "# none\n";
  std::ofstream{folder.file("broken")} << "a\x01z\n";
  EXPECT_FALSE(read_keys(folder.file("empty")));
  EXPECT_FALSE(read_keys(folder.file("broken")));
  EXPECT_FALSE(read_keys(folder.file("missing")));
}

}  // namespace
}  // namespace sluice::cli
