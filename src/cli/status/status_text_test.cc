#include "cli/status/status_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace sluice::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Parsed<StatusText> read(std::string_view json) { return status_text(json, Output{}); }

std::string shown(std::string_view json) {
  const Parsed<StatusText> status = read(json);
  return status ? status->text : "refused: " + status.error().message;
}

bool is_refused(std::string_view json) { return !read(json).has_value(); }

TEST(StatusText, ShowsWhatTheServerSays) {
  const Parsed<StatusText> status = read(
      R"({"state":"serving","version":"1.2.3","uptime_seconds":90,"started_at":"then","workers":2,
          "configuration":{"file":"a.yaml","rules":1,"read_at":"later"},
          "listeners":[{"name":"gateway","endpoint":":8080"},{"name":"admin","endpoint":":9090"}],
          "connections":9,"connections_evicted":8,"connections_rejected":7,
          "requests":{"2xx":120,"3xx":0,"4xx":3},
          "upstreams":[{"name":"app","servers":[{"address":"10.0.0.1:80","healthy":true,
                                                 "in_use":4,"idle":5,"failures":6}]}]})");
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->is_serving);
  EXPECT_THAT(status->text, HasSubstr("serving  sluice 1.2.3, up 1m30s since then, 2 workers"));
  EXPECT_THAT(status->text, HasSubstr("a.yaml, 1 rule, read later\n"));
  EXPECT_THAT(status->text, HasSubstr("gateway :8080, admin :9090\n"));
  EXPECT_THAT(status->text, HasSubstr("9, 8 evicted, 7 rejected\n"));
  EXPECT_THAT(status->text, HasSubstr("2xx 120, 4xx 3\n"));
  EXPECT_THAT(status->text, HasSubstr("app       10.0.0.1:80  healthy       4     5         6\n"));
  EXPECT_FALSE(read(R"({"state":"draining"})")->is_serving);
}

// Whoever reads that a file is wrong reads what to do about it.
TEST(StatusText, SaysWhatToDoAboutAFileThatIsNotInForce) {
  const std::string of_file = shown(
      R"({"state":"serving","configuration":{"file":"a.yaml",
          "last_reload":{"at":"then","result":"error"},"rules_from":null}})");
  EXPECT_THAT(of_file, HasSubstr("\nwarning        the newer a.yaml is not in force; 'sluice check "
                                 "a.yaml' says what is wrong with it"));
  const std::string of_rules = shown(
      R"({"state":"serving","configuration":{"file":"a.yaml","last_reload":null,
          "rules_from":{"source":"/etc/rules.yaml","error":"rules.yaml:2:1: first\nsecond"}}})");
  EXPECT_THAT(of_rules, HasSubstr("\nwarning        the rules of /etc/rules.yaml are not in force: "
                                  "rules.yaml:2:1: first; 'sluice check'"));
  EXPECT_THAT(of_rules, Not(HasSubstr("second")));
  const std::string good = shown(
      R"({"state":"serving","configuration":{"file":"a.yaml",
          "last_reload":{"at":"then","result":"success"},
          "rules_from":{"source":"r.yaml","error":null}}})");
  EXPECT_THAT(good, Not(HasSubstr("warning")));
}

// Members of another type than expected count as absent.
TEST(StatusText, PassesOverWhatItDoesNotUnderstand) {
  EXPECT_EQ(shown(R"({"state":1,"workers":"two","requests":[1],"listeners":{"a":1},"keys":null,
                      "connections":-1,"blocks":1.5,"upstreams":[1,"a",{"servers":[{},2]}]})"),
            shown(R"({"state":"","upstreams":[{"servers":[{}]}]})"));
}

TEST(StatusText, RefusesWhatIsNoObjectWithAState) {
  for (const char* text : {"", " ", "[]", "1", "\"state\"", "null", "{}", R"({"State":"serving"})",
                           "HTTP/1.1 200 OK"}) {
    EXPECT_TRUE(is_refused(text)) << text;
  }
  EXPECT_TRUE(is_refused({}));
}

TEST(StatusText, RefusesWhatIsNotStrictlyJson) {
  for (const char* text : {R"({"state":"serving"}})",
                           R"({"state":"serving"} x)",
                           R"({"state":"serving"}{})",
                           R"({"state":"serving")",
                           R"({"state":"serving",})",
                           R"({"state":"serving" "a":1})",
                           R"({state:"serving"})",
                           R"({'state':'serving'})",
                           R"({"state":"serving"} // yes)",
                           R"({"state":"serving","a":01})",
                           R"({"state":"serving","a":+1})",
                           R"({"state":"serving","a":.5})",
                           R"({"state":"serving","a":1.})",
                           R"({"state":"serving","a":0x10})",
                           R"({"state":"serving","a":NaN})",
                           R"({"state":"serving","a":Infinity})",
                           R"({"state":"serving","a":tru})",
                           R"({"state":"serving","a":"\x41"})",
                           R"({"state":"serving","a":"\ud800"})",
                           R"({"state":"serving","a":"\udc00\ud800"})",
                           "{\"state\":\"a\nb\"}",
                           "\xef\xbb\xbf{\"state\":\"serving\"}"}) {
    EXPECT_TRUE(is_refused(text)) << text;
  }
  EXPECT_TRUE(is_refused(std::string_view{"{\"state\":\"serving\"}\0", 20}));
  EXPECT_FALSE(is_refused(" \t\r\n{\"state\":\"serving\"} \t\r\n"));
}

TEST(StatusText, RefusesTextThatIsNotUtf8) {
  for (const char* bytes :
       {"\xff", "\x80", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc3"}) {
    EXPECT_TRUE(is_refused(std::string{"{\"state\":\""} + bytes + "\"}")) << bytes;
    EXPECT_TRUE(is_refused(std::string{"{\"state\":1,\""} + bytes + "\":1}")) << bytes;
  }
  EXPECT_THAT(shown("{\"state\":\"\xc3\xa9\\u00e9\"}"), HasSubstr("\xc3\xa9\xc3\xa9"));
}

// A proxy that reads the first and a tool that reads the last would disagree; here it is the last.
TEST(StatusText, TakesTheLastOfFieldsWithOneName) {
  const std::string text = shown(
      R"({"state":"draining","state":"serving","requests":{"2xx":1,"4xx":2,"2xx":3,"4xx":0}})");
  EXPECT_TRUE(text.starts_with("serving"));
  EXPECT_THAT(text, HasSubstr("requests       2xx 3\n"));
}

TEST(StatusText, ReadsNumbersOfSixtyFourBitsAndRefusesLargerOnes) {
  const auto with = [](const std::string& number) {
    return shown(R"({"state":"serving","connections":)" + number + "}");
  };
  EXPECT_THAT(with("9223372036854775807"), HasSubstr("connections    9223372036854775807, "));
  EXPECT_THAT(with("18446744073709551615"), HasSubstr("connections    18446744073709551615, "));
  EXPECT_THAT(with("18446744073709551616"), HasSubstr("refused: "));
  EXPECT_THAT(with(std::string(400, '9')), HasSubstr("refused: "));
  EXPECT_THAT(with("1e400"), HasSubstr("refused: "));
  EXPECT_THAT(with("-9223372036854775808"), HasSubstr("connections    0, "));
  EXPECT_THAT(with("-0"), HasSubstr("connections    0, "));
  EXPECT_THAT(with("12.0"), HasSubstr("connections    0, "));
  // Longer than nanoseconds can count.
  EXPECT_THAT(shown(R"({"state":"serving","uptime_seconds":18446744073709551615})"),
              HasSubstr("up 106751d23h47m16s "));
}

TEST(StatusText, BoundsDepthAndSize) {
  const auto nested = [](std::size_t levels) {
    return R"({"state":"serving","a":)" + std::string(levels, '[') + std::string(levels, ']') + "}";
  };
  EXPECT_FALSE(is_refused(nested(31)));
  EXPECT_TRUE(is_refused(nested(32)));
  EXPECT_TRUE(is_refused(nested(1'000'000)));
  EXPECT_TRUE(is_refused(R"({"state":"serving","a":)" + std::string(1'000'000, '[')));
  const auto long_as = [](std::size_t bytes) {
    return R"({"state":"serving","a":")" + std::string(bytes, 'a') + "\"}";
  };
  EXPECT_FALSE(is_refused(long_as(std::size_t{15} << 20U)));
  EXPECT_TRUE(is_refused(long_as(std::size_t{17} << 20U)));
}

// Names and texts of a server do not steer the terminal.
TEST(StatusText, WritesNoControlCharacters) {
  const std::string text =
      shown(R"({"state":"\u001b[2J","version":"\u0000\u007f","requests":{"\u001b":1}})");
  EXPECT_THAT(text, HasSubstr("?[2J  sluice ??,"));
  EXPECT_THAT(text, HasSubstr("requests       ? 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace sluice::cli
