#include "frontend/responses/rate_headers.h"

#include "support/frontend_fixture.h"
#include "support/property.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace sluice::frontend {
namespace {

using namespace std::chrono_literals;
using engine::limit;
using engine::rule;
using fixture::Head;
using fixture::SfItem;

class RateHeadersTest : public fixture::FrontendFixture {
 protected:
  static RateHeaders headers(const RateHeaderOptions& options) {
    return RateHeaders::create(options).value();
  }
  static RateHeaders family(Family one) { return headers({.families = {one}}); }

  Head written(const RateHeaders& headers, const engine::Op& op,
               RateHeaders::Context context = {}) const {
    context.now = now_.wall();
    return fixture::written_head([&](net::HeadWriter& writer) {
      writer.status_line(op.status, "");
      headers.write(writer, op, context);
    });
  }
  void use_two_limits() { use({rule("api", {limit("5/1m")}), rule("daily", {limit("1000/1d")})}); }
};

// ---- families ---------------------------------------------------------------------------------

TEST_F(RateHeadersTest, OfDraftElevenShowEveryLimit) {
  use_two_limits();
  const Head head = written(family(Family::ietf_11), decided());
  EXPECT_EQ(head.get("RateLimit-Policy"), "\"api\";q=5;w=60, \"daily\";q=1000;w=86400");
  EXPECT_EQ(head.get("RateLimit"), "\"api\";r=4;t=12, \"daily\";r=999;t=87");
}

// A list goes on in the next line of the same name, with every item once and whole.
TEST_F(RateHeadersTest, OfManyLimitsGoOnInMoreLines) {
  constexpr std::size_t kRules = 24;
  std::vector<rules::Rule> many;
  for (std::size_t i = 0; i < kRules; ++i) {
    many.push_back(rule(std::string(60, 'n') + std::to_string(10 + i), {limit("5/1m")}));
  }
  use(std::move(many));
  const Head head = written(family(Family::ietf_11), decided());
  const auto lines = std::ranges::count_if(
      head.headers, [](const auto& one) { return equals_ignoring_case(one.first, "RateLimit"); });
  EXPECT_EQ(lines, 2);
  const std::vector<SfItem> items = head.list("RateLimit");
  ASSERT_EQ(items.size(), kRules);
  for (std::size_t i = 0; i < kRules; ++i) {
    EXPECT_EQ(std::get<std::string>(items[i].value), std::string(60, 'n') + std::to_string(10 + i));
  }
}

TEST_F(RateHeadersTest, OfTheNextDraftUseItsNames) {
  use_two_limits();
  const Head head = written(family(Family::ietf_next), decided());
  EXPECT_EQ(head.get("RateLimit"), "\"api\";a=4;w=12, \"daily\";a=999;w=87");
}

TEST_F(RateHeadersTest, OfDraftSevenAreADictionaryOfTheTightest) {
  use_two_limits();
  const Head head = written(family(Family::ietf_07), decided());
  EXPECT_EQ(head.get("RateLimit-Policy"), "5;w=60, 1000;w=86400");
  auto members = fixture::SfParser{head.get("RateLimit")}.dictionary();
  EXPECT_EQ(std::get<std::int64_t>(members.at("limit").value), 5);
  EXPECT_EQ(std::get<std::int64_t>(members.at("remaining").value), 4);
  EXPECT_EQ(std::get<std::int64_t>(members.at("reset").value), 12);
}

TEST_F(RateHeadersTest, OfPlainNumbersShowTheTightest) {
  use_two_limits();
  const engine::Op& op = decided();
  for (const auto& [one, prefix] : {std::pair{Family::ietf_03, "RateLimit"},
                                    std::pair{Family::x_ratelimit_delta, "X-RateLimit"}}) {
    const Head head = written(family(one), op);
    EXPECT_EQ(head.get(std::string{prefix} + "-Limit"), "5");
    EXPECT_EQ(head.get(std::string{prefix} + "-Remaining"), "4");
    EXPECT_EQ(head.get(std::string{prefix} + "-Reset"), "12");
  }
}

// The wall clock of the fixture stands at a whole second; twelve later all is back.
TEST_F(RateHeadersTest, OfEpochsTellTheSecondItself) {
  use_two_limits();
  const engine::Op& op = decided();
  const auto now_s =
      std::chrono::duration_cast<std::chrono::seconds>(now_.wall().time_since_epoch());
  const std::string reset = std::to_string(now_s.count() + 12);
  EXPECT_EQ(written(family(Family::x_rate_limit_epoch), op).get("X-Rate-Limit-Reset"), reset);
  EXPECT_EQ(written(family(Family::x_rate_limit_epoch), op).get("X-Rate-Limit-Remaining"), "4");
  const Head head = written(family(Family::x_ratelimit_epoch), op);
  EXPECT_EQ(head.get("X-RateLimit-Reset"), reset);
  EXPECT_EQ(head.get("X-RateLimit-Used"), "1");
  EXPECT_EQ(head.get("X-RateLimit-Resource"), "api");
}

TEST_F(RateHeadersTest, RoundEpochsUp) {
  use_two_limits();
  now_.mono += 1ns;
  const engine::Op& op = decided();
  const auto now_s =
      std::chrono::duration_cast<std::chrono::seconds>(now_.wall().time_since_epoch());
  EXPECT_EQ(written(family(Family::x_rate_limit_epoch), op).get("X-Rate-Limit-Reset"),
            std::to_string(now_s.count() + 13));
}

TEST_F(RateHeadersTest, HaveNoWindowForRequestsInFlight) {
  rules::RuleLimit few;
  few.limit = {.algorithm = Algorithm::concurrency, .amount = 3};
  use({rule("uploads", {few})});
  const Head head = written(family(Family::ietf_11), decided());
  EXPECT_EQ(head.get("RateLimit-Policy"), "\"uploads\";q=3;qu=\"concurrent-requests\"");
  EXPECT_EQ(head.get("RateLimit"), "\"uploads\";r=2");
}

TEST_F(RateHeadersTest, OfSeveralFamiliesStandTogether) {
  use_two_limits();
  const Head head =
      written(headers({.families = {Family::ietf_11, Family::x_rate_limit_epoch}}), decided());
  EXPECT_TRUE(head.has("RateLimit"));
  EXPECT_TRUE(head.has("X-Rate-Limit-Limit"));
}

TEST_F(RateHeadersTest, AreKnownByTheirNames) {
  for (const char* name : {"ietf-11", "ietf-next", "ietf-07", "ietf-03", "x-ratelimit-delta",
                           "x-ratelimit-epoch", "x-rate-limit-epoch"}) {
    ASSERT_TRUE(family_named(name)) << name;
    EXPECT_EQ(to_string(*family_named(name)), name);
  }
  EXPECT_FALSE(family_named("ietf-12"));
}

// ---- when and which ---------------------------------------------------------------------------

TEST_F(RateHeadersTest, CanBeOff) {
  use_two_limits();
  EXPECT_TRUE(written(headers({.families = {}}), decided()).headers.empty());
}

TEST_F(RateHeadersTest, CanComeWithRefusalsOnly) {
  use({rule("api", {limit("1/1m")})});
  const RateHeaders rare = headers({.when = Emission::on_rejection});
  EXPECT_FALSE(written(rare, decided()).has("RateLimit"));
  EXPECT_TRUE(written(rare, decided(), {.status = 429}).has("RateLimit"));
}

TEST_F(RateHeadersTest, CanComeOnceLittleIsLeft) {
  use({rule("api", {limit("4/1h")})});
  const RateHeaders late = headers({.when = Emission::below_threshold, .threshold_percent = 50});
  EXPECT_FALSE(written(late, decided()).has("RateLimit")) << "3 of 4 are left";
  EXPECT_FALSE(written(late, decided()).has("RateLimit")) << "2 of 4 are not below half";
  EXPECT_TRUE(written(late, decided()).has("RateLimit"));
}

TEST_F(RateHeadersTest, CanShowTheTightestAlone) {
  use_two_limits();
  const Head head = written(headers({.most_restrictive_only = true}), decided());
  EXPECT_EQ(head.get("RateLimit-Policy"), "\"api\";q=5;w=60");
  EXPECT_EQ(head.get("RateLimit"), "\"api\";r=4;t=12");
}

TEST_F(RateHeadersTest, DoNotGoWithRedirectionsAndTrouble) {
  use_two_limits();
  const engine::Op& op = decided();
  constexpr std::array<std::uint16_t, 5> kWithout{103, 301, 304, 500, 504};
  for (const std::uint16_t status : kWithout) {
    EXPECT_FALSE(written(family(Family::ietf_11), op, {.status = status}).has("RateLimit"));
  }
  EXPECT_TRUE(written(family(Family::ietf_11), op, {.status = 404}).has("RateLimit"));
}

// A rule may answer by any status: what it refuses is still about its limit.
TEST_F(RateHeadersTest, GoWithEveryRefusal) {
  use_two_limits();
  const engine::Op& op = decided_after(5);
  constexpr std::array<std::uint16_t, 3> kWith{403, 429, 503};
  for (const std::uint16_t status : kWith) {
    EXPECT_TRUE(written(family(Family::ietf_11), op, {.status = status}).has("RateLimit"));
  }
}

TEST_F(RateHeadersTest, KeepQuietAboutRequestsThatNoRuleConcerns) {
  use({});
  EXPECT_TRUE(written(family(Family::ietf_11), decided()).headers.empty());
}

TEST_F(RateHeadersTest, ShowABlock) {
  rules::Rule blocking = rule("login", {limit("1/1h")});
  blocking.block = rules::Block{.duration = 15min, .threshold = 1};
  use({blocking});
  const engine::Op& op = decided_after(2);
  ASSERT_EQ(op.reason, engine::Reason::blocked);
  const Head head = written(family(Family::ietf_11), op, {.status = 429});
  EXPECT_FALSE(head.has("RateLimit-Policy"));
  EXPECT_EQ(head.get("RateLimit"), "\"login\";r=0;t=900");
  EXPECT_FALSE(written(family(Family::ietf_03), op, {.status = 429}).has("RateLimit-Limit"));
}

TEST_F(RateHeadersTest, AreShownToScriptsOfOtherSites) {
  use_two_limits();
  const Head head = written(family(Family::ietf_11), decided(), {.is_cors = true});
  EXPECT_EQ(head.get("Access-Control-Expose-Headers"), "RateLimit-Policy, RateLimit, Retry-After");
}

// ---- partitions -------------------------------------------------------------------------------

// Two clients can be told apart, and neither can be guessed.
TEST_F(RateHeadersTest, TellPartitionsApartByHashes) {
  use_two_limits();
  const engine::Op& op = decided();
  const RateHeaders secret = headers({.partition_secret = "s"});
  const auto partition = [&](const RateHeaders& by, std::string_view client) {
    const SfItem item = written(by, op, {.client = client}).list("RateLimit").at(0);
    return std::get<std::string>(item.parameters.at("pk"));
  };
  EXPECT_EQ(partition(secret, "ann").size(), 16U);
  EXPECT_NE(partition(secret, "ann"), partition(secret, "bob"));
  EXPECT_EQ(partition(secret, "ann"), partition(secret, "ann"));
  EXPECT_NE(partition(secret, "ann"), partition(headers({.partition_secret = "t"}), "ann"));
  EXPECT_EQ(written(secret, op).get("RateLimit").find("pk"), std::string::npos) << "nobody known";
  EXPECT_EQ(written(family(Family::ietf_11), op, {.client = "ann"}).get("RateLimit").find("pk"),
            std::string::npos);
}

// ---- names ------------------------------------------------------------------------------------

TEST_F(RateHeadersTest, CanBeRenamedOneByOne) {
  use_two_limits();
  const Head head =
      written(headers({.families = {Family::ietf_03},
                       .renamed = {{"ratelimit-limit", "X-Max"}, {"RateLimit-Reset", ""}}}),
              decided());
  EXPECT_EQ(head.get("X-Max"), "5");
  EXPECT_FALSE(head.has("RateLimit-Limit"));
  EXPECT_TRUE(head.has("RateLimit-Remaining"));
  EXPECT_FALSE(head.has("RateLimit-Reset"));
}

TEST_F(RateHeadersTest, MustNotClash) {
  const auto wrong = [](const RateHeaderOptions& options) {
    const auto made = RateHeaders::create(options);
    return made ? std::string{} : made.error().text();
  };
  const std::string clash = wrong({.families = {Family::ietf_11, Family::ietf_07}});
  EXPECT_NE(clash.find("ietf-11 and ietf-07 both write RateLimit-Policy"), std::string::npos);
  EXPECT_NE(wrong({.families = {Family::x_ratelimit_delta, Family::x_ratelimit_epoch}}), "");
  EXPECT_NE(wrong({.families = {Family::ietf_03}, .renamed = {{"RateLimit-Limit", "a b"}}}), "");
  EXPECT_NE(wrong({.families = {Family::ietf_03}, .renamed = {{"X-Other", "X-Mine"}}}), "");
  EXPECT_NE(
      wrong({.families = {Family::ietf_03}, .renamed = {{"RateLimit-Limit", "RateLimit-Reset"}}}),
      "");
  EXPECT_EQ(wrong({.families = {Family::ietf_11, Family::ietf_03, Family::x_ratelimit_delta,
                                Family::x_rate_limit_epoch}}),
            "");
}

// ---- beside the origin's ----------------------------------------------------------------------

TEST_F(RateHeadersTest, NeverReplaceAStricterWordOfTheOrigin) {
  use_two_limits();
  const engine::Op& op = decided();  // 4 are left
  const RateHeaders ours = family(Family::ietf_03);
  const auto merged = [&](std::vector<HeaderView> origin, std::uint16_t status = 200) {
    net::HeaderSet left_out;
    const RateHeaders::Context context{.status = status, .now = {}, .client = {}};
    const bool is_written = ours.merge(op, origin, context, left_out).contains(Family::ietf_03);
    std::string result = is_written ? "ours" : "theirs";
    for (std::size_t i = 0; i < origin.size(); ++i) result += left_out.contains(i) ? " -" : " +";
    return result;
  };
  EXPECT_EQ(merged({}), "ours");
  EXPECT_EQ(merged({{"Content-Type", "text/html"}}), "ours +");
  EXPECT_EQ(merged({{"ratelimit-remaining", "3"}, {"RateLimit-Limit", "10"}}), "theirs + +");
  EXPECT_EQ(merged({{"ratelimit-remaining", "4"}}), "theirs +");
  EXPECT_EQ(merged({{"ratelimit-remaining", "5"}, {"Via", "x"}, {"RateLimit-Limit", "10"}}),
            "ours - + -");
  EXPECT_EQ(merged({{"RateLimit-Remaining", "9"}, {"RateLimit-Remaining", "2"}}), "theirs + +");
  EXPECT_EQ(merged({{"RateLimit-Remaining", "many"}}), "theirs +") << "it cannot be read";
  EXPECT_EQ(merged({{"RateLimit-Limit", "10"}}), "theirs +") << "what is left is not said";
  EXPECT_EQ(merged({{"RateLimit-Remaining", "5"}}, 302), "theirs +") << "ours is not said there";
}

TEST_F(RateHeadersTest, JoinListsOfTheOrigin) {
  use_two_limits();
  const engine::Op& op = decided();
  net::HeaderSet left_out;
  const RateHeaders lists = family(Family::ietf_11);
  const std::vector<HeaderView> same{{"RateLimit", "\"origin\";r=1;t=5"}};
  EXPECT_TRUE(lists.merge(op, same, {.now = {}, .client = {}}, left_out).contains(Family::ietf_11));
  EXPECT_FALSE(left_out.contains(0));
  const std::vector<HeaderView> older{{"RateLimit", "limit=10, remaining=9, reset=5"}};
  EXPECT_FALSE(
      lists.merge(op, older, {.now = {}, .client = {}}, left_out).contains(Family::ietf_11))
      << "a list and a dictionary cannot be joined";
  const RateHeaders dictionary = family(Family::ietf_07);
  EXPECT_TRUE(
      dictionary.merge(op, older, {.now = {}, .client = {}}, left_out).contains(Family::ietf_07))
      << "4 are stricter";
  EXPECT_TRUE(left_out.contains(0));
}

// ---- whatever the rules are called --------------------------------------------------------------

// Names from other sources than our grammar, many limits: every structured field parses back, with
// the numbers that were meant.
TEST_F(RateHeadersTest, ParseBackWhateverRulesAreCalled) {
  testing::check_property(60, [this] {
    const auto names = *rc::gen::resize(
        30, rc::gen::container<std::vector<std::string>>(rc::gen::string<std::string>()));
    std::vector<rules::Rule> all;
    for (std::size_t i = 0; i < names.size(); ++i) {
      all.push_back(rule(std::to_string(i) + names[i], {limit("100/1m")}));
    }
    now_.mono += 1h;  // what an earlier case used is forgotten
    use(all);
    const engine::Op& op = decided();
    for (const Family one : {Family::ietf_11, Family::x_ratelimit_epoch, Family::ietf_07}) {
      const Head head = written(family(one), op);
      if (one != Family::ietf_11) continue;
      const std::vector<SfItem> policies = head.list("RateLimit-Policy");
      const std::vector<SfItem> rates = head.list("RateLimit");
      RC_ASSERT(policies.size() == all.size());
      RC_ASSERT(rates.size() == all.size());
      for (std::size_t i = 0; i < all.size(); ++i) {
        RC_ASSERT(policies[i].name() == rates[i].name());
        RC_ASSERT(policies[i].name().starts_with(std::to_string(i)));
        RC_ASSERT(policies[i].number("q") == 100);
        RC_ASSERT(policies[i].number("w") == 60);
        RC_ASSERT(rates[i].number("r") == 99);
        RC_ASSERT(rates[i].number("t") == 1);
      }
    }
  });
}

}  // namespace
}  // namespace sluice::frontend
