// What is guessed about a request changes how long a decision takes, and nothing else.
#include "engine/key_prefetch.h"

#include "engine/engine_fixture.h"
#include "support/property.h"
#include "support/store_behind.h"

#include <rapidcheck.h>

#include <map>
#include <string>
#include <vector>

namespace sluice::engine {
namespace {

namespace testing = sluice::testing;
using rules::Per;

// A store that hears what the engine expects to ask.
class Listening final : public testing::StoreBehind {
 public:
  using StoreBehind::StoreBehind;

  void expect(const Digest& key) noexcept override { expected.push_back(key.low); }
  store::Completion decide_all(store::Call& call, Now now) noexcept override {
    asked = call.checks[0].key.low;
    return StoreBehind::decide_all(call, now);
  }

  std::vector<std::uint64_t> expected;
  std::uint64_t asked = 0;
};

class KeyPrefetchTest : public EngineFixture {
 protected:
  void SetUp() override {
    worker_ = new_worker(listening_);
    std::vector<rules::Rule> all{rule("a", {limit("3/1h")}, {per(Per::Kind::ip)}),
                                 rule("b", {limit("3/1h")}, {per(Per::Kind::header, "x-user")}),
                                 rule("c", {limit("3/1h")}, {per(Per::Kind::path, "id")}),
                                 rule("early", {limit("1000/1h")}, {per(Per::Kind::ip)})};
    all[0].match.paths = {"/a"};
    all[1].match.paths = {"/b"};
    all[2].match.paths = {"/c/{id}"};
    all[3].before_auth = true;
    use(std::move(all));
  }
  // What was fetched for the request is what was asked for.
  bool was_foreseen(const Sent& sent) {
    listening_.expected.clear();
    (void)ask(sent);
    return listening_.expected == std::vector{listening_.asked};
  }

  Listening listening_{*local_};
};

TEST_F(KeyPrefetchTest, ComesWithTheSameRuleForWhomeverItIs) {
  EXPECT_FALSE(was_foreseen({.target = "/a", .ip = "192.0.2.1"}));
  EXPECT_FALSE(was_foreseen({.target = "/a", .ip = "192.0.2.2"}));
  EXPECT_FALSE(was_foreseen({.target = "/a", .ip = "192.0.2.3"}));
  EXPECT_TRUE(was_foreseen({.target = "/a", .ip = "192.0.2.4"}));
  EXPECT_TRUE(was_foreseen({.target = "/a", .ip = "192.0.2.5"}));
}

TEST_F(KeyPrefetchTest, GoesWithOtherRules) {
  for (int i = 0; i < 4; ++i) (void)ask({.target = "/a"});
  for (int i = 0; i < 4; ++i) {
    (void)ask({.target = "/b"});
    (void)ask({.target = "/c/1"});
  }
  listening_.expected.clear();
  (void)ask({.target = "/b"});
  EXPECT_TRUE(listening_.expected.empty());
}

TEST_F(KeyPrefetchTest, DoesNotOutliveItsRules) {
  for (int i = 0; i < 4; ++i) (void)ask({.target = "/a"});
  use({rule("other", {limit("3/1h")}, {per(Per::Kind::ip)})});
  EXPECT_EQ(passed(5, {.target = "/a", .ip = "192.0.2.9"}), 3);
}

// Rules by name and rules before the proof are not guessed, and are not mistaken for what was.
TEST_F(KeyPrefetchTest, IsOfOneRequestOnly) {
  for (int i = 0; i < 4; ++i) (void)ask({.target = "/a", .ip = "192.0.2.1"});
  const RequestView nothing{};
  for (int i = 0; i < 5; ++i) {
    const identity::Identity other{.address = *IpAddress::parse("192.0.2.7")};
    EXPECT_EQ(worker_->decide_by(0, op_, nothing, other, now_), store::Completion::now);
    EXPECT_EQ(op_.action, i < 3 ? Action::pass : Action::reject);
    worker_->settle(op_, nullptr, now_);
  }
}

// Whoever asks for whatever in whatever order: each rule counts each of its clients for itself.
TEST_F(KeyPrefetchTest, ChangesNoDecision) {
  testing::check_property(100, [this] {
    static int round = 0;
    const std::string salt = std::to_string(++round);
    std::map<std::string, int> counts;
    for (int i = *rc::gen::inRange(10, 60); i > 0; --i) {
      const int who = *rc::gen::inRange(1, 4);
      const int what = *rc::gen::weightedElement<int>({{8, 0}, {2, 1}, {1, 2}});
      const std::string ip = "2001:db8:" + salt + ":" + std::to_string(who) + "::1";
      const std::string user = salt + "-" + std::to_string(who);
      const std::string target = what == 0 ? "/a" : what == 1 ? "/b" : "/c/" + user;
      const Sent sent{.target = target, .headers = {{"X-User", user}}, .ip = ip};
      const int before = counts[std::to_string(what) + user]++;
      RC_ASSERT(ask(sent) == (before < 3 ? Action::pass : Action::reject));
    }
  });
}

}  // namespace
}  // namespace sluice::engine
