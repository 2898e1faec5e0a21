#include "frontend/responses/answers.h"

#include "base/base64.h"
#include "frontend/responses/grpc_details.h"
#include "frontend/responses/grpc_status.h"
#include "frontend/responses/problem.h"
#include "identity/flat_json.h"
#include "support/frontend_fixture.h"
#include "support/property.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace sluice::frontend {
namespace {

using namespace std::chrono_literals;
using engine::limit;
using engine::per;
using engine::Reason;
using engine::rule;
using fixture::Head;
using PerKind = rules::Per::Kind;

// An answer as a client sees it.
struct Seen {
  Head head;
  std::string body;

  // A member of the problem document; strict JSON, in which no name stands twice.
  [[nodiscard]] std::string member(std::string_view name) const {
    identity::FlatJson json;
    const identity::JsonFault fault = json.parse(body);
    EXPECT_TRUE(fault.ok()) << fault.what << "\n" << body;
    return std::string{json.find(name)};
  }
};

class AnswersTest : public fixture::FrontendFixture {
 protected:
  template <class Write>
  static Seen seen(Write&& write, bool body_is_sent = true) {
    Seen answer;
    std::array<char, kProblemBytesMax> room;
    answer.head = fixture::written_head(
        [&](net::HeadWriter& head) { answer.body = std::string{write(head, std::span{room})}; });
    if (body_is_sent) {
      EXPECT_EQ(answer.head.get("Content-Length"), std::to_string(answer.body.size()));
    }
    return answer;
  }
  [[nodiscard]] Seen refused(const engine::Op& op, Asking asking = {}) const {
    asking.now = now_.wall();
    return seen([&](net::HeadWriter& head,
                    std::span<char> room) { return answers_.refuse(head, room, op, asking); },
                !asking.is_head);
  }
  [[nodiscard]] Seen failed(const Failure& failure, const Asking& asking = {}) const {
    return seen([&](net::HeadWriter& head, std::span<char> room) {
      return answers_.fail(head, room, failure, asking);
    });
  }

  Answers answers_{RateHeaders::create({}).value(), "Bearer realm=\"api\""};
};

// ---- over the limit ---------------------------------------------------------------------------

TEST_F(AnswersTest, TellWhichLimitIsReachedAndWhenToComeBack) {
  use({rule("api", {limit("2/1m")}, {per(PerKind::ip)}), rule("wide", {limit("100/1s")})});
  const Seen answer = refused(decided_after(2), {.request_id = "req-1"});
  EXPECT_EQ(answer.head.status, 429);
  EXPECT_EQ(answer.head.get("Retry-After"), "30");
  EXPECT_EQ(answer.head.get("Cache-Control"), "no-store");
  EXPECT_EQ(answer.head.get("Content-Type"), "application/problem+json");
  EXPECT_EQ(answer.head.get("RateLimit").substr(0, 14), "\"api\";r=0;t=30");
  EXPECT_EQ(
      answer.body,
      R"({"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",)"
      R"("title":"Too Many Requests","status":429,)"
      R"("detail":"The limit of 2 requests in 60 seconds is reached. Try again in 30 seconds.",)"
      R"("retry_after":30,"request_id":"req-1","violated-policies":["api"]})");
}

TEST_F(AnswersTest, NameEveryLimitThatIsViolated) {
  use({rule("two", {limit("1/1m"), limit("1/1h")})});
  const Seen answer = refused(decided_after(1));
  EXPECT_EQ(answer.member("violated-policies.0"), "two.1");
  EXPECT_EQ(answer.member("violated-policies.1"), "two.2");
  EXPECT_EQ(answer.head.get("Retry-After"), "3600") << "the longest of them";
}

TEST_F(AnswersTest, SayThatWaitingDoesNotHelp) {
  rules::Rule costly = rule("c", {limit("2/1s")});
  costly.cost.constant = 3;
  use({costly});
  const Seen answer = refused(decided());
  EXPECT_EQ(answer.head.status, 429);
  EXPECT_FALSE(answer.head.has("Retry-After"));
  EXPECT_EQ(answer.member("retry_after"), "");
  EXPECT_NE(answer.member("detail").find("Waiting does not help"), std::string::npos);
}

TEST_F(AnswersTest, CallABlockWhatItIs) {
  rules::Rule blocking = rule("login", {limit("1/1h")}, {per(PerKind::ip)});
  blocking.block = rules::Block{.duration = 15min, .threshold = 1};
  use({blocking});
  const engine::Op& op = decided_after(2);
  ASSERT_EQ(op.reason, Reason::blocked);
  const Seen answer = refused(op);
  EXPECT_EQ(answer.member("type"),
            "https://iana.org/assignments/http-problem-types#abnormal-usage-detected");
  EXPECT_EQ(answer.head.get("Retry-After"), "900");
  EXPECT_EQ(answer.member("violated-policies.0"), "login");
}

// ---- the rule's own words ---------------------------------------------------------------------

TEST_F(AnswersTest, AreTheRulesOwnWhereItHasSome) {
  rules::Rule own = rule("own", {limit("1/1h")});
  own.action.status = 420;
  own.action.body = "{\"error\":\"calm down\"}";
  own.action.headers = {{"x-docs", "https://example.com"}, {"retry-after", "5"}};
  use({own});
  const Seen answer = refused(decided_after(1));
  EXPECT_EQ(answer.head.status, 420);
  EXPECT_EQ(answer.body, own.action.body);
  EXPECT_EQ(answer.head.get("Content-Type"), "application/json");
  EXPECT_EQ(answer.head.get("X-Docs"), "https://example.com");
  EXPECT_EQ(answer.head.get("Retry-After"), "5") << "the operator's word, once";
}

// A rule cannot make the answer end elsewhere than it does, nor decide over the connection.
TEST_F(AnswersTest, LetNoRuleFrameThem) {
  rules::Rule own = rule("own", {limit("1/1h")});
  own.action.body = "slow down";
  own.action.headers = {{"content-length", "3"},
                        {"transfer-encoding", "chunked"},
                        {"connection", "close"},
                        {"content-type", "text/x-mine"}};
  use({own});
  const Seen answer = refused(decided_after(1));
  EXPECT_EQ(answer.head.get("Content-Length"), "9");
  EXPECT_FALSE(answer.head.has("Transfer-Encoding"));
  EXPECT_FALSE(answer.head.has("Connection"));
  EXPECT_EQ(answer.head.get("Content-Type"), "text/x-mine");
}

// ---- other reasons ----------------------------------------------------------------------------

TEST_F(AnswersTest, AskForProofWhereItIsRequired) {
  use({rule("r", {limit("1/1h")})});
  worker_->use(identifier_, {.require_auth = true});
  const engine::Op& op = decided();
  ASSERT_EQ(op.reason, Reason::unauthenticated);
  const Seen answer = refused(op);
  EXPECT_EQ(answer.head.status, 401);
  EXPECT_EQ(answer.head.get("WWW-Authenticate"), "Bearer realm=\"api\"");
  EXPECT_EQ(answer.member("type"), "about:blank");
}

TEST_F(AnswersTest, RefuseWhereAValueIsMissing) {
  rules::Rule strict = rule("r", {limit("1/1h")}, {per(PerKind::header, "x-tenant")});
  strict.on_missing = rules::OnMissing::reject;
  use({strict});
  const Seen answer = refused(decided());
  EXPECT_EQ(answer.head.status, 403);
  EXPECT_FALSE(answer.head.has("Retry-After"));
  EXPECT_FALSE(answer.head.has("WWW-Authenticate"));
}

TEST_F(AnswersTest, RefuseATargetThatCannotBeRead) {
  use({});
  const engine::Op& op = decided({.target = "/%zz"});
  ASSERT_EQ(op.reason, Reason::bad_target);
  EXPECT_EQ(refused(op).head.status, 400);
}

TEST_F(AnswersTest, RefuseCredentialsAndValuesThatAreAmbiguous) {
  use({rule("r", {limit("1/1h")}, {per(PerKind::header, "x-tenant")})});
  const engine::Op& keys = decided({.headers = {{"x-api-key", "a"}, {"x-api-key", "b"}}});
  ASSERT_EQ(keys.reason, Reason::ambiguous_credentials);
  const Seen answer = refused(keys);
  EXPECT_EQ(answer.head.status, 400);
  EXPECT_EQ(answer.member("type"), "about:blank");
  EXPECT_EQ(answer.member("reason"), "ambiguous_credentials");
  EXPECT_EQ(answer.member("detail"),
            "The credentials are ambiguous. Send one Authorization header, and one API key.");
  EXPECT_FALSE(answer.head.has("WWW-Authenticate"));
  settle();
  const Seen value = refused(decided({.headers = {{"x-tenant", "a"}, {"x-tenant", "b"}}}));
  EXPECT_EQ(value.head.status, 400);
  EXPECT_EQ(value.member("reason"), "ambiguous_value");
}

// A client tells its own quota from our trouble by the type.
TEST_F(AnswersTest, AreOfAnotherTypeWhenTheTroubleIsOurs) {
  use({}, rules::Unmatched::reject);
  const engine::Op& op = decided();
  ASSERT_EQ(op.reason, Reason::no_rule);
  EXPECT_EQ(refused(op).head.status, 503);
  EXPECT_EQ(refused(op).member("type"), "about:blank");
  EXPECT_EQ(problem_type(Reason::store_failed),
            "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity");
  EXPECT_EQ(problem_type(Reason::too_many_rules), problem_type(Reason::store_failed));
  EXPECT_NE(problem_type(Reason::limited), problem_type(Reason::store_failed));
}

TEST_F(AnswersTest, HaveNoBodyForHead) {
  use({rule("api", {limit("1/1m")})});
  const engine::Op& op = decided_after(1);
  const std::string body = refused(op).body;
  const Seen answer = refused(op, {.is_head = true});
  EXPECT_EQ(answer.body, "");
  EXPECT_EQ(answer.head.get("Content-Length"), std::to_string(body.size()));
}

// Who was asking, and with what, is nowhere in what anybody may see.
TEST_F(AnswersTest, NeverShowKeys) {
  use({rule("api", {limit("1/1m")}, {per(PerKind::api_key), per(PerKind::header, "x-tenant")})});
  const Sent sent{.headers = {{"x-api-key", "paid-key"}, {"x-tenant", "acme-secret"}},
                  .ip = "198.51.100.77"};
  const engine::Op& op = decided_after(1, sent);
  ASSERT_EQ(op.action, engine::Action::reject);
  const Seen answer = refused(op, {.client = "paid-key"});
  std::string all = answer.body;
  for (const auto& [name, value] : answer.head.headers) all += name + value;
  for (const char* secret : {"paid-key", "acme-secret", "198.51.100.77"}) {
    EXPECT_EQ(all.find(secret), std::string::npos) << secret;
  }
}

// However many rules with whatever names refuse, the document is JSON and fits.
TEST_F(AnswersTest, FitWhateverRulesAreCalled) {
  testing::check_property(40, [this] {
    const auto names = *rc::gen::resize(
        80, rc::gen::container<std::vector<std::string>>(rc::gen::string<std::string>()));
    std::vector<rules::Rule> all;
    for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 30); ++i) {
      all.push_back(rule(std::to_string(i) + names[i], {limit("1/1h")}));
    }
    all.push_back(rule("last", {limit("1/1h")}));
    use(all);
    const engine::Op& op = decided_after(1);
    const Seen answer = refused(op, {.request_id = names.empty() ? "" : names[0]});
    RC_ASSERT(answer.member("status") == "429");
    RC_ASSERT(!answer.member("violated-policies.0").empty());
  });
}

TEST_F(AnswersTest, HaveNoBodyWithoutRoom) {
  use({rule("api", {limit("1/1m")})});
  const engine::Op& op = decided_after(1);
  std::array<char, 20> little;
  const Head head = fixture::written_head(
      [&](net::HeadWriter& writer) { EXPECT_EQ(answers_.refuse(writer, little, op, {}), ""); });
  EXPECT_EQ(head.status, 429);
  EXPECT_EQ(head.get("Content-Length"), "0");
}

// ---- gRPC -------------------------------------------------------------------------------------

TEST_F(AnswersTest, SpeakGrpcToGrpcClients) {
  use({rule("api", {limit("1/1m")})});
  const engine::Op& op = decided_after(1);
  const Seen answer = refused(op, {.content_type = "application/grpc+proto"});
  EXPECT_EQ(answer.head.status, 200);
  EXPECT_EQ(answer.head.get("Content-Type"), "application/grpc+proto");
  EXPECT_EQ(answer.head.get("grpc-status"), "8");
  EXPECT_EQ(answer.head.get("grpc-retry-pushback-ms"), "60000");
  EXPECT_EQ(answer.head.get("grpc-message"),
            "The limit of 1 request in 60 seconds is reached. Try again in 60 seconds.");
  EXPECT_EQ(answer.body, "");
  EXPECT_TRUE(answer.head.has("RateLimit"));
  // As protoc encodes it: code 8, the message, RetryInfo of 60 s, QuotaFailure of "api".
  EXPECT_EQ(answer.head.get("grpc-status-details-bin"),
            "CAgSSVRoZSBsaW1pdCBvZiAxIHJlcXVlc3QgaW4gNjAgc2Vjb25kcyBpcyByZWFjaGVkLiBU"
            "cnkgYWdhaW4gaW4gNjAgc2Vjb25kcy4aMAoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUu"
            "cnBjLlJldHJ5SW5mbxIECgIIPBpBCit0eXBlLmdvb2dsZWFwaXMuY29tL2dvb2dsZS5ycGMu"
            "UXVvdGFGYWlsdXJlEhIKEAoDYXBpEgkxIGluIDYwIHM");
}

// Of more limits than have room as many are named as fit, and the rest of the status stays whole.
TEST_F(AnswersTest, GiveGrpcClientsNoDetailsThatAreCut) {
  std::vector<rules::Rule> many;
  for (int i = 0; i < 20; ++i) {
    many.push_back(rule(std::string(100, 'a') + std::to_string(i), {limit("1/1m")}));
  }
  use(many);
  const Seen answer = refused(decided_after(1), {.content_type = "application/grpc"});
  std::array<char, kStatusDetailsBytesMax> room;
  std::string padded = answer.head.get("grpc-status-details-bin");
  EXPECT_GT(padded.size(), 1000U);
  padded.append((4 - padded.size() % 4) % 4, '=');
  const auto decoded = decode_base64(padded, room);
  ASSERT_TRUE(decoded);
  EXPECT_TRUE(decoded->ends_with("1 in 60 s"));
}

TEST_F(AnswersTest, SayNothingOfQuotasWhereNoneIsReached) {
  use({}, rules::Unmatched::reject);
  const Seen answer = refused(decided(), {.content_type = "application/grpc"});
  EXPECT_EQ(answer.head.get("grpc-status"), "14");
  EXPECT_FALSE(answer.head.has("grpc-status-details-bin"));
}

TEST_F(AnswersTest, TellGrpcClientsNotToTryAgainWhereItDoesNotHelp) {
  rules::Rule costly = rule("c", {limit("2/1s")});
  costly.cost.constant = 3;
  use({costly});
  const Seen answer = refused(decided(), {.content_type = "application/grpc"});
  EXPECT_EQ(answer.head.get("grpc-status"), "8");
  EXPECT_EQ(answer.head.get("grpc-retry-pushback-ms"), "-1");
}

TEST(GrpcStatus, IsWhatClientsExpectOfEachReason) {
  EXPECT_EQ(grpc_status(Reason::blocked), GrpcStatus::resource_exhausted);
  EXPECT_EQ(grpc_status(Reason::store_failed), GrpcStatus::unavailable);
  EXPECT_EQ(grpc_status(Reason::unauthenticated), GrpcStatus::unauthenticated);
  EXPECT_EQ(grpc_status(Reason::deny_listed), GrpcStatus::permission_denied);
  EXPECT_EQ(grpc_status(Reason::bad_target), GrpcStatus::invalid_argument);
  EXPECT_EQ(grpc_status(Reason::ambiguous_value), GrpcStatus::invalid_argument);
  EXPECT_EQ(grpc_status(Reason::ambiguous_credentials), GrpcStatus::invalid_argument);
  EXPECT_EQ(static_cast<int>(grpc_status(std::uint16_t{404})), 12);
  EXPECT_EQ(static_cast<int>(grpc_status(std::uint16_t{502})), 14);
  EXPECT_EQ(static_cast<int>(grpc_status(std::uint16_t{504})), 4);
  EXPECT_EQ(static_cast<int>(grpc_status(std::uint16_t{500})), 13);
}

TEST(GrpcStatus, IsForGrpcOnly) {
  for (const char* type : {"application/grpc", "application/grpc+proto", "Application/gRPC; a=b",
                           "application/grpc-web+proto"}) {
    EXPECT_TRUE(is_grpc(type)) << type;
  }
  for (const char* type : {"", "application/grpcs", "application/json", "application/grp"}) {
    EXPECT_FALSE(is_grpc(type)) << type;
  }
}

TEST(GrpcStatus, EncodesItsMessage) {
  std::array<char, 64> room;
  EXPECT_EQ(percent_encode("a b% \xc3\xa4\n", room), "a b%25 %C3%A4%0A");
  std::array<char, 4> little;
  EXPECT_EQ(percent_encode("ab%%", little), "ab") << "never half a character";
}

// ---- failures of the gateway ------------------------------------------------------------------

TEST_F(AnswersTest, DescribeEveryFailure) {
  constexpr std::array<std::uint16_t, 15> kStatuses{400, 404, 405, 408, 413, 414, 417, 421,
                                                    431, 501, 502, 503, 504, 505, 508};
  for (const std::uint16_t status : kStatuses) {
    const Seen answer = failed({.status = status}, {.request_id = "r"});
    EXPECT_EQ(answer.head.status, status);
    EXPECT_EQ(answer.head.get("Content-Type"), "application/problem+json");
    EXPECT_EQ(answer.head.get("Cache-Control"), "no-store");
    EXPECT_EQ(answer.member("status"), std::to_string(status));
    EXPECT_EQ(answer.member("request_id"), "r");
    EXPECT_NE(answer.member("title"), "Refused") << status;
    EXPECT_NE(answer.member("detail"), "The request failed.") << status;
  }
}

TEST_F(AnswersTest, SayWhatAFailureNeeds) {
  EXPECT_EQ(failed({.status = 405, .allow = "GET, HEAD"}).head.get("Allow"), "GET, HEAD");
  EXPECT_EQ(failed({.status = 503, .retry_after_s = 7}).head.get("Retry-After"), "7");
  EXPECT_EQ(failed({.status = 503}).member("type"),
            "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity");
  EXPECT_EQ(failed({.status = 400, .detail = "two \"hosts\""}).member("detail"), "two \"hosts\"");
  EXPECT_TRUE(failed({.status = 401}).head.has("WWW-Authenticate"));
  const Seen grpc =
      failed({.status = 503, .retry_after_s = 2}, {.content_type = "application/grpc"});
  EXPECT_EQ(grpc.head.status, 200);
  EXPECT_EQ(grpc.head.get("grpc-status"), "14");
  EXPECT_EQ(grpc.head.get("grpc-retry-pushback-ms"), "2000");
}

// A request that was counted costs its client something, whatever came of it.
TEST_F(AnswersTest, TellWhereTheClientStandsAfterACharge) {
  use({rule("api", {limit("5/1m")})});
  const engine::Op& op = decided();
  EXPECT_EQ(failed({.status = 404, .charged = &op}).head.get("RateLimit"), "\"api\";r=4;t=12");
  EXPECT_FALSE(failed({.status = 404}).head.has("RateLimit"));
  EXPECT_FALSE(failed({.status = 502, .charged = &op}).head.has("RateLimit")) << "of trouble";
  const Asking grpc{.content_type = "application/grpc"};
  EXPECT_EQ(failed({.status = 404, .charged = &op}, grpc).head.get("RateLimit"),
            "\"api\";r=4;t=12");
}

}  // namespace
}  // namespace sluice::frontend
