#include "frontend/access_log/access_log.h"

#include "identity/flat_json.h"
#include "support/frontend_fixture.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace sluice::frontend {
namespace {

using namespace std::chrono_literals;
using engine::limit;
using engine::rule;

class AccessLogTest : public fixture::FrontendFixture {
 protected:
  static AccessRecord record() {
    return {.at = WallTime{1'700'000'000s + 250ms},
            .duration = 12'345'678ns,
            .ip = *IpAddress::parse("192.0.2.1"),
            .method = "GET",
            .host = "api.example.com",
            .target = "/v1/x?a=1",
            .user = "ann",
            .request_id = "r-1",
            .status = 200,
            .bytes_in = 10,
            .bytes_out = 512};
  }
  static std::string line(const AccessRecord& record, AccessFormat::Options options,
                          std::uint64_t suppressed = 0) {
    std::vector<char> room(kLogLineBytesMax);
    const AccessFormat format{std::move(options)};
    return std::string{format.write(room, record, suppressed)};
  }
  static std::string json(const AccessRecord& record, std::uint64_t suppressed = 0) {
    return line(record, {.form = LogForm::json}, suppressed);
  }
  static std::string text(const AccessRecord& record, std::uint64_t suppressed = 0) {
    return line(record, {.form = LogForm::text}, suppressed);
  }
  static std::string member(const std::string& line, std::string_view name) {
    identity::FlatJson parsed;
    const identity::JsonFault fault = parsed.parse(line.substr(0, line.size() - 1));
    EXPECT_TRUE(fault.ok()) << fault.what << "\n" << line;
    return std::string{parsed.find(name)};
  }
};

// ---- lines ------------------------------------------------------------------------------------

TEST_F(AccessLogTest, WritesJson) {
  use({rule("api", {limit("5/1m")})});
  AccessRecord one = record();
  one.op = &decided();
  one.upstream = {.name = "app", .address = "127.0.0.1:3000", .status = 200, .first_byte = 9ms};
  EXPECT_EQ(json(one, 3),
            R"({"time":"2023-11-14T22:13:20.25Z","ip":"192.0.2.1","method":"GET",)"
            R"("host":"api.example.com","target":"/v1/x?a=1","protocol":"HTTP/1.1","status":200,)"
            R"("duration_ns":12345678,"user":"ann","request_id":"r-1","bytes_in":10,)"
            R"("bytes_out":512,"decision":"allowed","reason":"allowed","rule":"api","limit":5,)"
            R"("remaining":4,"upstream":"app","upstream_address":"127.0.0.1:3000",)"
            R"("upstream_status":200,"upstream_first_byte_ns":9000000,"suppressed":3})"
            "\n");
}

TEST_F(AccessLogTest, WritesText) {
  use({rule("api", {limit("1/1m")})});
  AccessRecord one = record();
  one.status = 429;
  one.op = &decided_after(1);
  const std::vector<HeaderView> headers{{"Referer", "https://a/?token=s"}, {"User-Agent", "curl"}};
  one.headers = headers;
  EXPECT_EQ(text(one, 2),
            "192.0.2.1 - ann [14/Nov/2023:22:13:20 +0000] \"GET /v1/x?a=1 HTTP/1.1\" 429 512 "
            "\"https://a/?token=***\" \"curl\" 12.345ms rejected rule=api reason=limited left=0/1 "
            "host=api.example.com id=r-1 suppressed=2\n");
}

// 0.0.0.0 would be an address that no client has.
TEST_F(AccessLogTest, CallsAClientOfAUnixSocketUnix) {
  AccessRecord one = record();
  one.ip = {};
  one.is_local = true;
  EXPECT_EQ(member(json(one), "ip"), "unix");
  EXPECT_TRUE(text(one).starts_with("unix - ann ["));
}

TEST_F(AccessLogTest, NamesTheShadowRulesThatWouldRefuse) {
  const auto shadow = [](const char* name, const char* most) {
    rules::Rule made = rule(name, {limit(most), limit("1/1h")});
    made.action.kind = rules::Action::Kind::shadow;
    return made;
  };
  rules::Rule wide = rule("wide", {limit("9/1h")});
  wide.action.kind = rules::Action::Kind::shadow;
  use({shadow("first", "1/1m"), wide, shadow("second", "1/1s"), rule("api", {limit("9/1m")})});
  AccessRecord one = record();
  one.op = &decided();
  EXPECT_EQ(member(json(one), "shadow"), "");
  one.op = &decided();
  EXPECT_EQ(member(json(one), "shadow"), "first,second");
  EXPECT_NE(text(one).find(" shadow_rejected rule=api reason=allowed shadow=first,second left=7/9"),
            std::string::npos)
      << text(one);
}

TEST_F(AccessLogTest, TellsWhatWasNoRequest) {
  const AccessRecord one{.at = WallTime{1s}, .status = 400};
  EXPECT_EQ(text(one),
            "0.0.0.0 - - [01/Jan/1970:00:00:01 +0000] \"-\" 400 0 \"-\" \"-\" 0.000ms\n");
  EXPECT_EQ(member(json(one), "malformed"), "true");
  EXPECT_EQ(json(one).find("target"), std::string::npos);
  EXPECT_EQ(member(json(record()), "malformed"), "");
}

TEST_F(AccessLogTest, TellsWhatWentWrongAndWhy) {
  AccessRecord one = record();
  one.fault = "the server cannot be trusted";
  EXPECT_TRUE(text(one).ends_with(" fault=\"the server cannot be trusted\"\n")) << text(one);
  one.fault_reason = "certificate has expired";
  EXPECT_TRUE(text(one).ends_with("trusted: certificate has expired\"\n")) << text(one);
  EXPECT_EQ(member(json(one), "fault"), "the server cannot be trusted");
  EXPECT_EQ(member(json(one), "fault_reason"), "certificate has expired");
}

// The trace that the server behind sees: the client's, or one that began here.
TEST_F(AccessLogTest, NamesTheTrace) {
  AccessRecord one = record();
  const std::vector<HeaderView> headers{
      {"Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}};
  one.headers = headers;
  EXPECT_EQ(member(json(one), "trace_id"), "4bf92f3577b34da6a3ce929d0e0e4736");
  one.trace_id = "0123456789abcdef0123456789abcdef";
  EXPECT_EQ(member(json(one), "trace_id"), one.trace_id);
  EXPECT_NE(text(one).find(" trace=0123456789abcdef0123456789abcdef"), std::string::npos);
}

TEST_F(AccessLogTest, WritesHeadersThatWereAskedForOnceEach) {
  AccessRecord one = record();
  const std::vector<HeaderView> headers{{"X-Plan", "free"},
                                        {"x-plan", "paid"},
                                        {"Authorization", "Bearer s3cret"},
                                        {"Accept", "*/*"}};
  one.headers = headers;
  const std::string written = line(
      one, {.form = LogForm::json, .headers = {"X-PLAN", "x-plan", "authorization", "x-none"}});
  EXPECT_EQ(member(written, "headers.x-plan"), "free");
  EXPECT_EQ(member(written, "headers.authorization"), "***");
  EXPECT_EQ(written.find("s3cret"), std::string::npos);
  EXPECT_EQ(written.find("accept"), std::string::npos);
}

TEST_F(AccessLogTest, WritesCookiesThatWereAskedFor) {
  AccessRecord one = record();
  const std::vector<HeaderView> headers{{"Cookie", "plan=free; theme=dark; Session=s3cret"},
                                        {"cookie", "key=s3cret; flag=s3cret"}};
  one.headers = headers;
  const std::string written = line(one, {.form = LogForm::json,
                                         .cookies = {"plan", "Session", "key", "none"},
                                         .cookie_names = {"flag", "other"},
                                         .secrets = LogSecrets{{}, {}, {"session", "key"}}});
  EXPECT_EQ(member(written, "cookies.plan"), "free");
  EXPECT_EQ(member(written, "cookies.Session"), "***");
  EXPECT_EQ(member(written, "cookies.key"), "***");
  EXPECT_EQ(member(written, "cookies.flag"), "***") << "that it is there is enough";
  for (const char* absent : {"s3cret", "theme", "none", "other"}) {
    EXPECT_EQ(written.find(absent), std::string::npos) << absent;
  }
  EXPECT_EQ(json(one).find("cookies"), std::string::npos);
}

// A name that is shown to one rule is not hidden by another that only asks whether it is there.
TEST_F(AccessLogTest, HidesHeadersThatOnlyHaveToBeThere) {
  AccessRecord one = record();
  const std::vector<HeaderView> headers{{"X-Both", "b"}, {"X-There", "t"}};
  one.headers = headers;
  const std::string written = line(
      one, {.form = LogForm::json, .headers = {"x-both"}, .header_names = {"X-There", "x-both"}});
  EXPECT_EQ(member(written, "headers.x-both"), "b");
  EXPECT_EQ(member(written, "headers.x-there"), "***");
}

TEST_F(AccessLogTest, TellsOfTrustWhereItWasAskedFor) {
  AccessRecord one = record();
  one.through_trusted = true;
  EXPECT_EQ(member(line(one, {.form = LogForm::json, .trust = true}), "through_trusted"), "true");
  EXPECT_EQ(json(one).find("trusted"), std::string::npos);
}

// However many headers rules name, and clients send, a line has room for the rest.
TEST_F(AccessLogTest, LeavesOutHeadersThatDoNotFit) {
  AccessRecord one = record();
  std::vector<std::string> names;
  for (int i = 0; i < 1000; ++i) names.push_back("x-" + std::to_string(i));
  const std::string quotes(500, '"');
  std::vector<HeaderView> headers;
  for (const std::string& name : names) headers.push_back({name, quotes});
  one.headers = headers;
  const std::string written = line(one, {.form = LogForm::json, .headers = names});
  EXPECT_EQ(member(written, "headers.x-0"), quotes);
  EXPECT_EQ(member(written, "headers.x-999"), "");
  EXPECT_EQ(member(written, "cut"), "true");
  EXPECT_EQ(member(written, "request_id"), "r-1");
}

TEST_F(AccessLogTest, HidesSecretsOfTheTarget) {
  AccessRecord one = record();
  one.target = "/a?api_key=s3cret&x=1";
  EXPECT_EQ(member(json(one), "target"), "/a?api_key=***&x=1");
  EXPECT_EQ(text(one).find("s3cret"), std::string::npos);
}

// A line is one line, whatever is in it, and a field cannot pretend to be another.
TEST_F(AccessLogTest, EscapesWhatCouldForgeALine) {
  AccessRecord one = record();
  one.user = "x\n192.0.2.9 - \"y\\";
  one.request_id = "a b=\"c\"";
  const std::vector<HeaderView> headers{{"User-Agent", "a\" 200 \x01\xff"}};
  one.headers = headers;
  const std::string plain = text(one);
  EXPECT_EQ(plain.find('\n'), plain.size() - 1);
  EXPECT_NE(plain.find(" - x\\x0A192.0.2.9\\x20-\\x20\\x22y\\x5C ["), std::string::npos) << plain;
  EXPECT_NE(plain.find("\"a\\\" 200 \\x01\\xFF\""), std::string::npos) << plain;
  EXPECT_NE(plain.find("id=a\\x20b=\\x22c\\x22"), std::string::npos) << plain;
  const std::string object = json(one);
  EXPECT_EQ(object.find('\n'), object.size() - 1);
  EXPECT_EQ(member(object, "user"), one.user);
}

TEST_F(AccessLogTest, CutsWhatIsTooLongAndSaysSo) {
  AccessRecord one = record();
  const std::string endless(100'000, 'a');
  one.target = endless;
  one.user = endless;
  one.request_id = endless;
  const std::string object = json(one);
  ASSERT_FALSE(object.empty());
  EXPECT_EQ(member(object, "target").size(), 4096U);
  EXPECT_EQ(member(object, "user").size(), 512U);
  EXPECT_EQ(member(object, "cut"), "true");
  EXPECT_FALSE(text(one).empty());
}

// Readers of JSON that are strict refuse such a text.
TEST_F(AccessLogTest, EndsTextsAtAZero) {
  using namespace std::string_view_literals;
  AccessRecord one = record();
  one.user = "ann\0bob"sv;
  EXPECT_EQ(member(json(one), "user"), "ann");
  EXPECT_EQ(member(json(one), "cut"), "true");
}

TEST_F(AccessLogTest, IsEmptyWithoutRoom) {
  std::array<char, 50> little;
  EXPECT_EQ(AccessFormat({}).write(little, record()), "");
}

// ---- sampling ---------------------------------------------------------------------------------

TEST(RefusalSampler, WritesSoManyASecondAndTellsOfTheRest) {
  RefusalSampler sampler{2};
  const MonoTime start{10s};
  EXPECT_EQ(sampler.ask(start), 0U);
  EXPECT_EQ(sampler.ask(start + 1ms), 0U);
  EXPECT_EQ(sampler.ask(start + 2ms), std::nullopt);
  EXPECT_EQ(sampler.ask(start + 999ms), std::nullopt);
  EXPECT_EQ(sampler.ask(start + 1s), 2U);
  EXPECT_EQ(sampler.ask(start + 1s), 0U) << "each is told of once";
  EXPECT_EQ(sampler.suppressed(), 2U);
}

TEST(RefusalSampler, DoesNotStartAfreshWhenTimeGoesBack) {
  RefusalSampler sampler{1};
  EXPECT_TRUE(sampler.ask(MonoTime{5s}));
  EXPECT_FALSE(sampler.ask(MonoTime{4s}));
  EXPECT_FALSE(sampler.ask(MonoTime{5s}));
}

TEST_F(AccessLogTest, SamplesRefusalsAndNothingElse) {
  use({rule("api", {limit("1/1h")})});
  AccessLog log{std::make_shared<const AccessFormat>(AccessFormat::Options{}),
                {.max_rejected_per_second = 3}};
  AccessRecord passed = record();
  passed.op = &decided();
  for (int i = 0; i < 10; ++i) log.log(passed, now_.mono);
  AccessRecord refused = record();
  refused.status = 429;
  refused.op = &decided();
  ASSERT_TRUE(is_refusal(refused));
  for (int i = 0; i < 10; ++i) log.log(refused, now_.mono);
  EXPECT_EQ(log.written(), 13U);
  EXPECT_EQ(log.suppressed(), 7U);
  log.log(refused, now_.mono + 1s);
  EXPECT_NE(std::string{log.flush()}.find("suppressed=7\n"), std::string::npos);
}

// ---- the buffer -------------------------------------------------------------------------------

TEST(AccessLogBuffer, HoldsWhatFitsAndCountsTheRest) {
  AccessLogBuffer buffer{10};
  EXPECT_TRUE(buffer.append("12345\n"));
  EXPECT_TRUE(buffer.is_half_full());
  EXPECT_FALSE(buffer.append("12345\n"));
  EXPECT_TRUE(buffer.append("123\n"));
  EXPECT_EQ(buffer.dropped(), 1U);
  EXPECT_EQ(buffer.flush(), "12345\n123\n");
  EXPECT_EQ(buffer.flush(), "");
}

// While what was flushed is being written, new lines go elsewhere.
TEST(AccessLogBuffer, LeavesWhatIsBeingWrittenAlone) {
  AccessLogBuffer buffer{4};
  buffer.append("one\n");
  const std::string_view writing = buffer.flush();
  EXPECT_TRUE(buffer.empty());
  buffer.append("two\n");
  EXPECT_EQ(writing, "one\n");
  EXPECT_EQ(buffer.flush(), "two\n");
}

}  // namespace
}  // namespace sluice::frontend
