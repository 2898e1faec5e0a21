// Blocks that need no more than address and request: they come before all that costs something.
#include "engine/engine_fixture.h"
#include "rules/rule.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::engine {
namespace {

using namespace std::chrono_literals;
using Kind = rules::Per::Kind;
using rules::OnMissing;

class EarlyBlocks : public EngineFixture {
 protected:
  static rules::Rule blocking(std::vector<rules::Per> of = {per(Kind::ip)}) {
    rules::Rule made = rule("login", {limit("1/1s")}, std::move(of));
    made.block = rules::Block{.duration = 15min, .threshold = 1};
    return made;
  }
  // With the key, once more than is allowed.
  void get_blocked(const Sent& sent) {
    EXPECT_EQ(ask(sent), Action::pass);
    EXPECT_EQ(ask(sent), Action::reject);
    EXPECT_EQ(reason_, Reason::limited);
    now_ = at(1min);
  }

  const Sent known_{.headers = {{"x-api-key", "free-key"}, {"x-device", "d1"}}};
  const Sent unknown_{.headers = {{"x-device", "d1"}}};
};

TEST_F(EarlyBlocks, AnswerBeforeAProofIsAskedFor) {
  use({blocking()});
  worker_->use(identifier_, {.require_auth = true});
  get_blocked(known_);
  EXPECT_EQ(ask(unknown_), Action::reject);
  EXPECT_EQ(reason_, Reason::blocked);
  EXPECT_EQ(status_, 429);
  EXPECT_EQ(rule_, "login");
  EXPECT_EQ(decision_.retry_after, 14min);
  EXPECT_EQ(ask({.ip = "192.0.2.9"}), Action::reject);
  EXPECT_EQ(status_, 401) << "somebody else";
}

TEST_F(EarlyBlocks, LeaveKeysAndTokensAlone) {
  use({blocking()});
  get_blocked(known_);
  EXPECT_EQ(ask(known_), Action::reject);
  EXPECT_EQ(reason_, Reason::blocked);
  EXPECT_EQ(proof_, identity::Proof::none) << "the key was looked at";
  EXPECT_EQ(ask({.headers = known_.headers, .ip = "192.0.2.9"}), Action::pass);
  EXPECT_EQ(proof_, identity::Proof::good);
}

TEST_F(EarlyBlocks, UseUpNothing) {
  rules::Rule early = rule("early", {limit("10/1h")}, {per(Kind::ip)});
  early.before_auth = true;
  use({early, blocking()});
  get_blocked({});
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(ask({}), Action::reject);
    EXPECT_EQ(reason_, Reason::blocked);
  }
  now_ = at(15min);
  ASSERT_EQ(decide(op_, {}), store::Completion::now);
  EXPECT_EQ(op_.action, Action::pass);
  EXPECT_EQ(op_.limits()[0].rule->name, "early");
  EXPECT_EQ(op_.limits()[0].decision.remaining, 9U) << "two of them are long back";
}

TEST_F(EarlyBlocks, HoldWhereTheRuleMatches) {
  rules::Rule made = blocking();
  made.match.paths = {"/login"};
  made.match.methods = {"POST"};
  use({made}, rules::Unmatched::reject);
  get_blocked({.method = "POST", .target = "/login"});
  EXPECT_EQ(ask({.method = "POST", .target = "/%6cogin"}), Action::reject);
  EXPECT_EQ(reason_, Reason::blocked);
  EXPECT_EQ(ask({.method = "GET", .target = "/login"}), Action::reject);
  EXPECT_EQ(reason_, Reason::no_rule);
}

TEST_F(EarlyBlocks, ComeAfterTheListsByAddress) {
  use({blocking()});
  get_blocked({});
  const auto entry = [](const char* subject) {
    return ListEntry{.subject = Subject::parse(subject).value(), .expires = {}, .note = {}};
  };
  worker_->use(
      std::make_shared<const Lists>(std::vector{entry("ip=192.0.2.1")}, std::vector<ListEntry>{}));
  EXPECT_EQ(ask({}), Action::pass);
  EXPECT_EQ(reason_, Reason::allow_listed);
}

// Who is asking decides what these are about: their blocks wait until that is known.
TEST_F(EarlyBlocks, AreNotThoseThatNeedAProof) {
  rules::Rule by_key = blocking({per(Kind::api_key)});
  rules::Rule of_tier = blocking();
  of_tier.match.tiers = {"free"};
  rules::Rule of_tenant = blocking();
  of_tenant.match.tenants = {"acme"};
  rules::Rule of_proven = blocking();
  of_proven.match.authenticated = true;
  rules::Rule in_a_group = blocking();
  in_a_group.group = "g";
  rules::Rule before = blocking();
  before.before_auth = true;
  rules::Rule none = blocking();
  none.block.reset();
  for (const rules::Rule& one : {by_key, of_tier, of_tenant, of_proven, in_a_group, before, none}) {
    EXPECT_FALSE(rules::blocks_early(one));
  }
  for (const Kind kind : {Kind::user, Kind::api_key, Kind::tenant, Kind::claim, Kind::attribute}) {
    EXPECT_FALSE(rules::blocks_early(blocking({per(Kind::ip), per(kind)})));
  }
  for (const Kind kind : {Kind::ip, Kind::country, Kind::asn, Kind::method, Kind::route, Kind::path,
                          Kind::header, Kind::query, Kind::descriptor}) {
    EXPECT_TRUE(rules::blocks_early(blocking({per(kind)})));
  }
  for (const rules::Rule& one : {by_key, of_tier, of_proven, in_a_group}) {
    now_ = at(1h + (now_.mono - at(Nanos{0}).mono));
    use({one});
    worker_->use(identifier_, {.require_auth = true});
    EXPECT_EQ(passed(2, known_), 1);
    EXPECT_EQ(ask(known_), Action::reject);
    EXPECT_EQ(reason_, Reason::blocked) << "as ever, once it is known who it is";
    EXPECT_EQ(ask(unknown_), Action::reject);
    EXPECT_EQ(status_, 401);
  }
}

// A rule of a group blocks where it wins, which another one may keep it from.
TEST_F(EarlyBlocks, OfAGroupHoldWhereTheRuleWins) {
  rules::Rule made = blocking();
  made.group = "g";
  rules::Rule paid = rule("paid", {limit("100/1s")}, {per(Kind::ip)});
  paid.group = "g";
  paid.match.tiers = {"paid"};
  use({made, paid});
  get_blocked({});
  EXPECT_EQ(ask({.headers = {{"x-api-key", "paid-key"}}}), Action::pass);
  EXPECT_EQ(ask({}), Action::reject);
  EXPECT_EQ(reason_, Reason::blocked);
}

TEST_F(EarlyBlocks, TreatMissingValuesAsTheRuleDoes) {
  for (const OnMissing on_missing :
       {OnMissing::ip, OnMissing::shared, OnMissing::skip, OnMissing::reject}) {
    now_ = at(1h + (now_.mono - at(Nanos{0}).mono));
    rules::Rule made = blocking({per(Kind::header, "x-device")});
    made.name += std::to_string(static_cast<int>(on_missing));
    made.on_missing = on_missing;
    use({made});
    EXPECT_EQ(passed(2, unknown_), 1);
    EXPECT_EQ(ask(unknown_), Action::reject);
    EXPECT_EQ(reason_, Reason::blocked);
    const Action action = ask({});
    const bool is_refused = on_missing == OnMissing::reject;
    EXPECT_EQ(action, is_refused ? Action::reject : Action::pass);
    EXPECT_EQ(reason_, is_refused ? Reason::missing_value : Reason::allowed);
  }
}

// Nobody has looked before: it is by the name of the rule.
TEST_F(EarlyBlocks, HoldForQuestionsByName) {
  use({blocking()});
  const identity::Identity client{.address = *IpAddress::parse("192.0.2.1")};
  const RequestView nothing{};
  for (const Reason expected : {Reason::allowed, Reason::limited, Reason::blocked}) {
    ASSERT_EQ(worker_->decide_by(0, op_, nothing, client, now_), store::Completion::now);
    EXPECT_EQ(op_.reason, expected);
    worker_->settle(op_, nullptr, now_);
  }
}

}  // namespace
}  // namespace sluice::engine
