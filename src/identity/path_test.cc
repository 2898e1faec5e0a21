#include "identity/path.h"

#include "identity/host.h"
#include "support/property.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::identity {
namespace {

struct Normalised {
  TargetFault fault;
  std::string path;
  std::string route;
  std::string query;
  std::string authority;
};

Normalised normalise(std::string_view target, const PathOptions& options = {}) {
  std::array<char, kPathScratchBytes> scratch{};
  const Target result = normalise_target(target, options, scratch);
  return {result.fault, std::string{result.path}, std::string{result.route()},
          std::string{result.query}, std::string{result.authority}};
}

std::string path(std::string_view target, const PathOptions& options = {}) {
  const Normalised result = normalise(target, options);
  return result.fault == TargetFault::none ? result.path : std::string{to_string(result.fault)};
}

std::optional<std::string> host(std::string_view text) {
  std::array<char, kHostScratchBytes> scratch{};
  const auto result = normalise_host(text, scratch);
  return result ? std::optional{std::string{*result}} : std::nullopt;
}

TEST(Path, LeavesNoOtherSpellingOfOneRoute) {
  for (const char* target : {"/login",
                             "/login/.",
                             "/login/",
                             "/%6cogin",
                             "/%6Cogin",
                             "//login",
                             "/login/../login",
                             "/./login",
                             "/login/%2e",
                             "/login/%2E/",
                             "/x/%2e%2e/login",
                             "/x/.%2e/login",
                             "/x/%2E./login",
                             "/../../login",
                             "///./x/..///login///",
                             "http://h/login",
                             "HTTPS://h:8443//login?x",
                             "/login?a=/b/../c",
                             "/log%69n",
                             "/a/b/../../login",
                             "http://user@h/x/../login"}) {
    const Normalised result = normalise(target);
    EXPECT_EQ(result.fault, TargetFault::none) << target;
    EXPECT_EQ(result.route, "/login") << target;
  }
  EXPECT_EQ(normalise("/LOGIN", {.case_insensitive_paths = true}).route, "/login");
  EXPECT_EQ(normalise("/%4cOGIN", {.case_insensitive_paths = true}).route, "/login");
  EXPECT_EQ(normalise("/LOGIN").route, "/LOGIN");
}

// Servlet containers cut parameters off before they look for a handler.
TEST(Path, LosesItsParametersWhereTheyAreIgnored) {
  constexpr PathOptions kIgnore{.ignore_path_parameters = true};
  for (const char* target :
       {"/login;x=1", "/login;", "/login;a=b;c=d?q=;", "/login/;x", "/;x/login", "/login;x/",
        "/x;y/../login;z", "/%6cogin;%2e%2e", "http://h/login;x"}) {
    EXPECT_EQ(normalise(target, kIgnore).route, "/login") << target;
  }
  EXPECT_EQ(normalise("/x/..;/login", kIgnore).fault, TargetFault::dot_parameter);
  EXPECT_EQ(path("/a;b/c;d/e", kIgnore), "/a/c/e");
  EXPECT_EQ(path("/;x", kIgnore), "/");
  EXPECT_EQ(path("/login%3Bx", kIgnore), "/login%3Bx") << "an encoded one is part of the name";
  EXPECT_EQ(path("/login;x=1"), "/login;x=1") << "unless told otherwise";
  EXPECT_EQ(path("/Login;X", {.case_insensitive_paths = true, .ignore_path_parameters = true}),
            "/login");
}

TEST(Path, RefusesWhatNobodySendsInGoodFaith) {
  EXPECT_EQ(normalise("/login%00").fault, TargetFault::nul);
  EXPECT_EQ(normalise("/login%00.html").fault, TargetFault::nul);
  for (const char* target : {"/%", "/%4", "/%g0", "/%0g", "/a%%41", "/login%"}) {
    EXPECT_EQ(normalise(target).fault, TargetFault::bad_percent) << target;
  }
  for (const char* target :
       {"/a b", "/a\tb", "/login#x", "/login\x7f", "/a?b c", "/a?b#c", "/a\r\n", "http://a b/c"}) {
    EXPECT_EQ(normalise(target).fault, TargetFault::bad_character) << target;
  }
  EXPECT_EQ(normalise(std::string_view{"/a\0b", 4}).fault, TargetFault::bad_character);
  for (const char* target : {"", "login", "h:443", "http:/login", "://h/", "1http://h/", "http://",
                             "http:///login", "**", "?a"}) {
    EXPECT_EQ(normalise(target).fault, TargetFault::not_a_target) << target;
  }
  EXPECT_EQ(normalise("/a\\b").fault, TargetFault::backslash);
  for (const char* target : {"/x/..;/login", "/x/..;a=b/login", "/.;/login", "/x/%2e%2e;/login"}) {
    EXPECT_EQ(normalise(target).fault, TargetFault::dot_parameter) << target;
  }
}

TEST(Path, KeepsWhatIsADifferentPath) {
  EXPECT_EQ(path("/login;a=b"), "/login;a=b");
  EXPECT_EQ(path("/login%3ba=b"), "/login%3Ba=b");
  EXPECT_EQ(path("/a%2fb"), "/a%2Fb");
  EXPECT_EQ(path("/a%2F..%2fb"), "/a%2F..%2Fb");
  EXPECT_EQ(path("/a%5cb"), "/a%5Cb");
  EXPECT_EQ(path("/%252e%252e/x"), "/%252e%252e/x");
  EXPECT_EQ(path("/..."), "/...");
  EXPECT_EQ(path("/.well-known"), "/.well-known");
  EXPECT_EQ(path("/a..b/c."), "/a..b/c.");
  EXPECT_EQ(path("/a%3fb"), "/a%3Fb");
  EXPECT_EQ(path("/%0a"), "/%0A");
}

// A character that may stand as it is has two spellings as well.
TEST(Path, WritesEveryCharacterInOneWay) {
  EXPECT_EQ(path("/users/%40me"), "/users/@me");
  EXPECT_EQ(path("/a%3ab%21%24%27%28%29%2a%2c%2b%26%3d"), "/a:b!$'()*,+&=");
  EXPECT_EQ(path("/caf\xc3\xa9"), "/caf%C3%A9");
  EXPECT_EQ(path("/caf%c3%a9"), "/caf%C3%A9");
  EXPECT_EQ(path("/{a}|^`\"<>"), "/%7Ba%7D%7C%5E%60%22%3C%3E");
  EXPECT_EQ(path("/%7ea"), "/~a");
  EXPECT_EQ(path("/%C3%89X", {.case_insensitive_paths = true}), "/%C3%89x");
}

// Targets are looked at eight bytes at a time, so each byte at each place.
TEST(Path, TreatsACharacterAlikeWhereverItStands) {
  for (unsigned value = 1; value < 256; ++value) {
    const char c = static_cast<char>(value);
    if (std::string_view{"/.?%"}.find(c) != std::string_view::npos) continue;
    const Normalised alone = normalise(std::string{"/"} + c);
    const bool refused = value <= ' ' || value == 0x7f || c == '#';
    EXPECT_EQ(alone.fault == TargetFault::bad_character, refused) << value;
    for (std::size_t place = 1; place < 20; ++place) {
      std::string target = "/aaaaaaaaaaaaaaaaaaaaaa";
      target[place] = c;
      const Normalised among = normalise(target);
      EXPECT_EQ(among.fault, alone.fault) << value << " at " << place;
      if (alone.fault == TargetFault::none) {
        EXPECT_EQ(among.path,
                  target.substr(0, place) + alone.path.substr(1) + target.substr(place + 1));
      }
      const Normalised in_query = normalise("/a?" + target);
      EXPECT_EQ(in_query.fault == TargetFault::none, !refused) << value << " at " << place;
    }
  }
}

// The slash and what follows it may stand in different words.
TEST(Path, LeavesNoSpecialSegmentWhereverItStands) {
  for (std::size_t before = 0; before < 20; ++before) {
    for (const std::string special : {"/", "/.", "/..", "//", "/./."}) {
      for (const std::string after : {"", "/", "/b", "?q"}) {
        const std::string target = "/" + std::string(before, 'a') + special + after;
        const Normalised result = normalise(target);
        ASSERT_EQ(result.fault, TargetFault::none) << target;
        const std::string closed = result.path + "/";
        EXPECT_EQ(result.path.find("//"), std::string::npos) << target;
        EXPECT_EQ(closed.find("/./"), std::string::npos) << target;
        EXPECT_EQ(closed.find("/../"), std::string::npos) << target;
      }
    }
  }
}

TEST(Path, RemovesDotSegmentsAsRfc3986Does) {
  EXPECT_EQ(path("/a/b/c/./../../g"), "/a/g");
  EXPECT_EQ(path("/a/."), "/a/");
  EXPECT_EQ(path("/a/.."), "/");
  EXPECT_EQ(path("/a/b/.."), "/a/");
  EXPECT_EQ(path("/.."), "/");
  EXPECT_EQ(path("/"), "/");
  EXPECT_EQ(path("//"), "/");
}

// RFC 3986 takes the empty segment away, servers that merge slashes take /a.
TEST(Path, RefusesDotsThatServersDisagreeAbout) {
  for (const char* target :
       {"/a//../b", "/a//./../b", "/a//b/../../c", "/a/b//c/../..", "/a//.."}) {
    EXPECT_EQ(normalise(target).fault, TargetFault::dots_over_empty) << target;
  }
  EXPECT_EQ(normalise("/a/;x/../b", {.ignore_path_parameters = true}).fault,
            TargetFault::dots_over_empty);
  EXPECT_EQ(path("//../b"), "/b") << "at the root there is nothing to take away";
  EXPECT_EQ(path("/a//b/../c"), "/a/c");
  EXPECT_EQ(path("//a/..//b/../c"), "/c");
}

// ---- escaped slashes --------------------------------------------------------------------------

// "path", or "path decoded", or what is wrong.
std::string readings(std::string_view target, EscapedSlashes slashes = EscapedSlashes::decode,
                     const PathOptions& options = {}) {
  std::array<char, kPathScratchBytes> scratch{};
  std::array<char, kPathScratchBytes> decoded{};
  const Target result = read_target(target, options, slashes, scratch, decoded);
  if (!result.ok()) return std::string{to_string(result.fault)};
  std::string both{result.route()};
  return result.decoded.empty() ? both : both + " " + std::string{result.decoded_route()};
}

TEST(EscapedSlash, HasTwoReadings) {
  EXPECT_EQ(readings("/v1%2flogin"), "/v1%2Flogin /v1/login");
  EXPECT_EQ(readings("/v1%2Flogin"), "/v1%2Flogin /v1/login");
  EXPECT_EQ(readings("/v1%5clogin"), "/v1%5Clogin /v1/login");
  EXPECT_EQ(readings("/v1/%2flogin"), "/v1/%2Flogin /v1/login");
  EXPECT_EQ(readings("/v1%2f/login"), "/v1%2F/login /v1/login");
  EXPECT_EQ(readings("/v1%2f%2f%2Flogin"), "/v1%2F%2F%2Flogin /v1/login");
  EXPECT_EQ(readings("/v1/login%2f"), "/v1/login%2F /v1/login");
  EXPECT_EQ(readings("/v1/login/%2f"), "/v1/login/%2F /v1/login");
  EXPECT_EQ(readings("/%2f"), "/%2F /");
  EXPECT_EQ(readings("%2fv1"), "neither a path nor an absolute address");
  EXPECT_EQ(readings("http://h/v1%2flogin?a%2Fb"), "/v1%2Flogin /v1/login");
  EXPECT_EQ(readings("/v1%2flogin;a"), "/v1%2Flogin;a /v1/login;a");
  EXPECT_EQ(readings("/V1%2fLogin", EscapedSlashes::decode, {.case_insensitive_paths = true}),
            "/v1%2Flogin /v1/login");
  // It is gone from one of the readings.
  EXPECT_EQ(readings("/v1%2fx/../login"), "/login /v1/login");
}

TEST(EscapedSlash, IsDecodedOnceAndOnlyInThePath) {
  EXPECT_EQ(readings("/v1%252flogin"), "/v1%252flogin");
  EXPECT_EQ(readings("/v1%255clogin"), "/v1%255clogin");
  EXPECT_EQ(readings("/v1/login?next=%2Fhome%5c"), "/v1/login");
  EXPECT_EQ(readings("*"), "*");
  EXPECT_EQ(readings("/%2fx/../login"), "/login") << "both readings are the same";
}

TEST(EscapedSlash, MakesNoDotSegment) {
  for (const char* target :
       {"/x/..%2fv1/login", "/x/%2e%2e%2fv1/login", "/x/..%5cv1", "/v1/.%2flogin",
        "/v1/%2e%2flogin", "/v1%2f./login", "/x%2f../v1/login", "/x%2f..", "/x%2F%2e%2E", "/..%2f",
        "/%2f..%2flogin", "/x%5C../login"}) {
    EXPECT_EQ(readings(target), "a dot segment beside an escaped slash") << target;
  }
  EXPECT_EQ(readings("/x/..;%2flogin"), "a dot segment with a parameter");
  EXPECT_EQ(readings("/x%2f..;/login"), "a dot segment with a parameter");
  EXPECT_EQ(readings("/x%2f/../login"), "a .. segment behind an empty one");
  EXPECT_EQ(readings("/x%2f...%2fy"), "/x%2F...%2Fy /x/.../y");
}

// Some servers take only one of the two for a slash, and containers that ignore parameters differ
// in where those end: there would be more than two readings.
TEST(EscapedSlash, NeverHasMoreThanTwoReadings) {
  EXPECT_EQ(readings("/a%2fb%5cc"), "both %2F and %5C in the path");
  EXPECT_EQ(readings("/a%5cb/c%2F"), "both %2F and %5C in the path");
  constexpr PathOptions kIgnore{.ignore_path_parameters = true};
  EXPECT_EQ(readings("/v1;x%2fy/login", EscapedSlashes::decode, kIgnore),
            "an escaped slash in a parameter");
  EXPECT_EQ(readings("/v1%2flogin;x", EscapedSlashes::decode, kIgnore), "/v1%2Flogin /v1/login");
  EXPECT_EQ(readings("/v1%2f;x/login", EscapedSlashes::decode, kIgnore), "/v1%2F/login /v1/login");
  EXPECT_EQ(readings("/v1;x%2fy/login"), "/v1;x%2Fy/login /v1;x/y/login");
}

TEST(EscapedSlash, IsKeptOrRefusedOnRequest) {
  EXPECT_EQ(readings("/a%2fb%5cc", EscapedSlashes::keep), "/a%2Fb%5Cc");
  EXPECT_EQ(readings("/x/..%2fb", EscapedSlashes::keep), "/x/..%2Fb");
  for (const char* target : {"/a%2fb", "/a%5Cb", "/%2F", "/a%2fb/../c", "http://h/a%2f?x"}) {
    EXPECT_EQ(readings(target, EscapedSlashes::reject),
              "an escaped slash, which escaped_slashes rejects")
        << target;
  }
  EXPECT_EQ(readings("/a%252f?b=%2f", EscapedSlashes::reject), "/a%252f");
}

TEST(EscapedSlash, IsFoundInTemplates) {
  EXPECT_TRUE(has_escaped_slash("/a%2Fb"));
  EXPECT_TRUE(has_escaped_slash("/a/%25%5c"));
  EXPECT_FALSE(has_escaped_slash("/a%252F"));
  EXPECT_FALSE(has_escaped_slash("/a%2"));
}

TEST(Path, KnowsEveryFormOfTarget) {
  const Normalised absolute = normalise("http://User@Host:80/a/../b?q=1/../2");
  EXPECT_EQ(absolute.path, "/b");
  EXPECT_EQ(absolute.query, "q=1/../2");
  EXPECT_EQ(absolute.authority, "User@Host:80");
  EXPECT_EQ(path("http://h"), "/");
  EXPECT_EQ(path("http://h?x=1"), "/");
  EXPECT_EQ(normalise("http://h?x=1").query, "x=1");
  EXPECT_EQ(path("*"), "*");
  EXPECT_EQ(normalise("/a?").query, "");
  EXPECT_EQ(normalise("/a?b?c=%zz").query, "b?c=%zz");
}

TEST(Path, FitsItsScratchOrIsRefused) {
  std::array<char, 8> scratch{};
  EXPECT_EQ(normalise_target("/1234567", {}, scratch).path, "/1234567");
  EXPECT_EQ(normalise_target("/12345678", {}, scratch).fault, TargetFault::too_long);
  EXPECT_EQ(normalise_target("/12345\xff", {}, scratch).fault, TargetFault::too_long);
  EXPECT_EQ(normalise_target("/", {}, std::span<char>{}).fault, TargetFault::too_long);
  EXPECT_EQ(normalise_target("/a/../b/../c/../d/../e", {}, scratch).path, "/e");
}

// Whatever the client sends: a second look finds nothing more to do, and no trick survives.
TEST(Path, IsTheSameWhenNormalisedAgain) {
  testing::check_property(2000, [] {
    const auto piece = rc::gen::element<std::string>(
        "/", "//", ".", "..", "%2e", "%2E", "%2f", "%25", "a", "B", ";", "%3b", "\\", "%5c", "%41",
        "\xc3\xa9", "%c3", "{", "=", "?", "%7e");
    std::string target = "/";
    for (const std::string& one : *rc::gen::container<std::vector<std::string>>(piece)) {
      target += one;
    }
    const PathOptions options{.case_insensitive_paths = *rc::gen::arbitrary<bool>(),
                              .ignore_path_parameters = *rc::gen::arbitrary<bool>(),
                              .decode_slashes = *rc::gen::arbitrary<bool>()};
    const Normalised once = normalise(target, options);
    if (once.fault != TargetFault::none) return;
    const Normalised twice = normalise(once.path, options);
    RC_ASSERT(twice.fault == TargetFault::none);
    RC_ASSERT(twice.path == once.path);
    RC_ASSERT(once.path.find("//") == std::string::npos);
    RC_ASSERT((once.path + "/").find("/./") == std::string::npos);
    RC_ASSERT((once.path + "/").find("/../") == std::string::npos);
    RC_ASSERT(!options.ignore_path_parameters || once.path.find(';') == std::string::npos);
  });
}

TEST(Host, IsLowerCaseWithoutPortAndDot) {
  EXPECT_EQ(host("API.Example.COM"), "api.example.com");
  EXPECT_EQ(host("api.example.com:8080"), "api.example.com");
  EXPECT_EQ(host("api.example.com."), "api.example.com");
  EXPECT_EQ(host("api.example.com.:443"), "api.example.com");
  EXPECT_EQ(host("api.example.com:"), "api.example.com");
  EXPECT_EQ(host("[2001:DB8::1]:80"), "[2001:db8::1]");
  EXPECT_EQ(host("[::1]"), "[::1]");
  EXPECT_EQ(host("user:pass@h:1"), "h");
  EXPECT_EQ(host(""), "");
}

TEST(Host, RefusesWhatIsNone) {
  for (const char* text : {"a b", "a:x", "a:123456", "[::1", "[1.2.3.4]", "[::1]x", "::1", "a/b",
                           "a%41", "a,b", "[::1]:y", "a..", "a..b", ".a", ".."}) {
    EXPECT_EQ(host(text), std::nullopt) << text;
  }
  EXPECT_EQ(host(std::string(300, 'a')), std::nullopt);
}

}  // namespace
}  // namespace sluice::identity
