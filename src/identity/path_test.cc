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
                             "///./x//..///login///",
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
  EXPECT_EQ(normalise("/LOGIN", {.ignore_case = true}).route, "/login");
  EXPECT_EQ(normalise("/%4cOGIN", {.ignore_case = true}).route, "/login");
  EXPECT_EQ(normalise("/LOGIN").route, "/LOGIN");
}

// Servlet containers cut parameters off before they look for a handler.
TEST(Path, LosesItsParametersWhereTheyAreIgnored) {
  constexpr PathOptions kIgnore{.ignore_parameters = true};
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
  EXPECT_EQ(path("/Login;X", {.ignore_case = true, .ignore_parameters = true}), "/login");
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
  for (const char* target : {"/x/..;/login", "/x/..;a=b/login", "/.;/login", "/x/%2e%2e;/login"}) {
    EXPECT_EQ(normalise(target).fault, TargetFault::dot_parameter) << target;
  }
}

TEST(Path, KeepsWhatIsADifferentPath) {
  EXPECT_EQ(path("/login;a=b"), "/login;a=b");
  EXPECT_EQ(path("/login%3ba=b"), "/login%3Ba=b");
  EXPECT_EQ(path("/a%2fb"), "/a%2Fb");
  EXPECT_EQ(path("/a%2F..%2fb"), "/a%2F..%2Fb");
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
  EXPECT_EQ(path("/%C3%89X", {.ignore_case = true}), "/%C3%89x");
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
  EXPECT_EQ(path("/a//../b"), "/b");
}

TEST(Path, TreatsBackslashesAsTold) {
  EXPECT_EQ(normalise("/a\\b").fault, TargetFault::backslash);
  EXPECT_EQ(path("/a%5cb"), "/a%5Cb");
  EXPECT_EQ(path("/x\\..\\login", {.backslash = Backslash::slash}), "/login");
  EXPECT_EQ(path("/x%5c..%5Clogin", {.backslash = Backslash::slash}), "/login");
  EXPECT_EQ(path("/a\\b", {.backslash = Backslash::encode}), "/a%5Cb");
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
    const PathOptions options{
        .ignore_case = *rc::gen::arbitrary<bool>(),
        .ignore_parameters = *rc::gen::arbitrary<bool>(),
        .backslash = *rc::gen::element(Backslash::refuse, Backslash::slash, Backslash::encode)};
    const Normalised once = normalise(target, options);
    if (once.fault != TargetFault::none) return;
    const Normalised twice = normalise(once.path, options);
    RC_ASSERT(twice.fault == TargetFault::none);
    RC_ASSERT(twice.path == once.path);
    RC_ASSERT(once.path.find("//") == std::string::npos);
    RC_ASSERT((once.path + "/").find("/./") == std::string::npos);
    RC_ASSERT((once.path + "/").find("/../") == std::string::npos);
    RC_ASSERT(!options.ignore_parameters || once.path.find(';') == std::string::npos);
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
