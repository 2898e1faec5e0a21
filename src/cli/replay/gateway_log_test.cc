// What the gateway logs is what `sluice replay --rules` reads.

#include "cli/replay/access_log.h"
#include "frontend/access_log/access_record.h"
#include "support/property.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace sluice::cli {
namespace {

using frontend::AccessFormat;
using frontend::AccessRecord;
using frontend::LogForm;

std::string line(const AccessRecord& record, AccessFormat::Options options) {
  std::vector<char> room(frontend::kLogLineBytesMax);
  std::string written{AccessFormat{std::move(options)}.write(room, record)};
  EXPECT_EQ(written.find('\n'), written.size() - 1);
  written.pop_back();
  return written;
}

// Any bytes that an HTTP parser lets through.
std::string visible(std::size_t bytes_max) {
  return *rc::gen::resize(static_cast<int>(bytes_max),
                          rc::gen::container<std::string>(rc::gen::inRange<char>(0x21, 0x7f)));
}
std::string text(std::size_t bytes_max) {
  return *rc::gen::resize(static_cast<int>(bytes_max), rc::gen::string<std::string>());
}

IpAddress any_address() {
  return *rc::gen::arbitrary<bool>()
             ? IpAddress::v4(*rc::gen::arbitrary<std::uint32_t>())
             : IpAddress::v6(*rc::gen::container<std::array<std::uint8_t, 16>>(
                   rc::gen::arbitrary<std::uint8_t>()));
}

bool is_utf8_or(std::string_view read, std::string_view written) {
  // What is not UTF-8 comes back with a mark in its place.
  return read == written || read.find("\xef\xbf\xbd") != std::string_view::npos;
}

// Time, client, request and outcome come back as they were, whatever a client sent.
TEST(GatewayLog, IsReadBackFromJson) {
  testing::check_property(300, [] {
    const std::string method = *rc::gen::element<std::string>("GET", "POST", "M-SEARCH");
    const std::string target = "/" + visible(100);
    const std::string host = visible(30);
    const std::string user = text(30);
    const std::string tenant = text(30);
    const std::string plan = text(40);
    const std::string id = text(30);
    const std::vector<HeaderView> headers{{"X-Plan", plan}, {"x-plan", "other"}, {"Cookie", "c"}};
    const AccessRecord record{
        .at = WallTime{Nanos{*rc::gen::inRange<std::int64_t>(0, 8'000'000'000'000'000'000)}},
        .duration = Nanos{*rc::gen::inRange<std::int64_t>(0, 86'400'000'000'000)},
        .ip = any_address(),
        .method = method,
        .host = host,
        .target = target,
        .headers = headers,
        .user = user,
        .api_key = "acme",
        .tenant = tenant,
        .tier = "paid",
        .country = "NL",
        .asn = *rc::gen::arbitrary<std::uint32_t>(),
        .request_id = id,
        .status = *rc::gen::inRange<std::uint16_t>(100, 600),
    };
    AccessFormat::Options options{.form = LogForm::json,
                                  .headers = {"x-plan", "cookie"},
                                  .secrets = frontend::LogSecrets{{}, {"cookie"}}};
    const std::string written = line(record, std::move(options));
    RC_ASSERT(guess_format(written) == LogFormat::json);
    const Parsed<LoggedRequest> read = parse_json_line(written);
    RC_ASSERT(read.has_value());
    RC_ASSERT(read->at == record.at);
    RC_ASSERT(read->duration == record.duration);
    RC_ASSERT(read->ip == record.ip);
    RC_ASSERT(read->method == method);
    RC_ASSERT(read->target == target);
    RC_ASSERT(read->host == host);
    RC_ASSERT(read->status == record.status);
    RC_ASSERT(is_utf8_or(read->user, user));
    RC_ASSERT(is_utf8_or(read->tenant, tenant));
    RC_ASSERT(read->api_key == "acme");
    RC_ASSERT(read->tier == "paid");
    RC_ASSERT(read->country == "NL");
    RC_ASSERT(read->asn == record.asn);
    for (const auto& [name, value] : read->headers) {
      RC_ASSERT(name == "x-plan" || name == "cookie");
      RC_ASSERT((name == "x-plan" ? is_utf8_or(value, plan) : value == "***"));
    }
  });
}

TEST(GatewayLog, IsReadBackFromText) {
  testing::check_property(300, [] {
    const std::string target = "/" + visible(100);
    const std::string agent = *rc::gen::container<std::string>(rc::gen::inRange<char>(0x20, 0x7f));
    const std::vector<HeaderView> headers{{"User-Agent", agent}};
    const std::string id = text(30);
    const AccessRecord record{
        .at = WallTime{std::chrono::seconds{*rc::gen::inRange<std::int64_t>(0, 8'000'000'000)}},
        .duration = Nanos{*rc::gen::inRange<std::int64_t>(0, 86'400'000'000'000)},
        .ip = any_address(),
        .method = "GET",
        .host = "h.example",
        .target = target,
        .headers = headers,
        .user = "ann",
        .request_id = id,
        .status = *rc::gen::inRange<std::uint16_t>(100, 600),
    };
    const std::string written =
        line(record, {.form = LogForm::text, .secrets = frontend::LogSecrets{{}, {}}});
    RC_ASSERT(guess_format(written) == LogFormat::combined);
    const Parsed<LoggedRequest> read = parse_combined(written);
    RC_ASSERT(read.has_value());
    RC_ASSERT(read->at == record.at);
    RC_ASSERT(read->ip == record.ip);
    RC_ASSERT(read->method == "GET");
    RC_ASSERT(read->target == target);
    RC_ASSERT(read->user == "ann");
    RC_ASSERT(read->status == record.status);
    RC_ASSERT(read->duration == std::chrono::floor<std::chrono::microseconds>(record.duration));
    RC_ASSERT(read->host == "h.example");
    if (!agent.empty() && agent != "-") {
      RC_ASSERT(read->headers.size() == 1U);
      RC_ASSERT(read->headers[0].second == agent);
    }
  });
}

// nginx may add what it likes.
TEST(GatewayLog, OfOthersHasNoDuration) {
  const std::string line =
      "192.0.2.1 - - [01/Jan/2026:00:00:00 +0000] \"GET / HTTP/1.1\" 200 1 "
      "\"-\" \"agent\" ";
  for (const char* more :
       {"", "0.012", "12ms", "1.5ms", "host=a", "x.345ms", "99999999999.000ms"}) {
    const Parsed<LoggedRequest> read = parse_combined(line + more);
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(read->duration, Nanos{0}) << more;
    EXPECT_EQ(read->host, "") << more;
  }
}

// What a client sent instead of a request never comes back as one.
// A client without an address is the same to rules as it was when it was logged.
TEST(GatewayLog, NamesClientsOfUnixSockets) {
  const AccessRecord record{.at = WallTime{std::chrono::seconds{1'700'000'000}},
                            .is_local = true,
                            .method = "GET",
                            .target = "/",
                            .status = 200};
  const Parsed<LoggedRequest> json = parse_json_line(line(record, {.form = LogForm::json}));
  ASSERT_TRUE(json) << json.error().text();
  EXPECT_EQ(json->ip, IpAddress{});
  const Parsed<LoggedRequest> text = parse_combined(line(record, {.form = LogForm::text}));
  ASSERT_TRUE(text) << text.error().text();
  EXPECT_EQ(text->ip, IpAddress{});
}

TEST(GatewayLog, MarksWhatWasNoRequest) {
  const AccessRecord record{.at = WallTime{std::chrono::seconds{1}}, .status = 400};
  const Parsed<LoggedRequest> json = parse_json_line(line(record, {.form = LogForm::json}));
  ASSERT_TRUE(json) << json.error().text();
  EXPECT_FALSE(json->is_request);
  const Parsed<LoggedRequest> text = parse_combined(line(record, {.form = LogForm::text}));
  ASSERT_TRUE(text) << text.error().text();
  EXPECT_FALSE(text->is_request);
}

// A request that took days is one that took as long as can be read.
TEST(GatewayLog, KeepsWithinWhatCanBeRead) {
  const std::string endless(100'000, '"');
  const std::vector<HeaderView> headers{{"x-a", endless}, {"x-b", endless}};
  const AccessRecord record{.at = WallTime{std::chrono::seconds{1}},
                            .duration = std::chrono::hours{100},
                            .method = "GET",
                            .host = endless,
                            .target = endless,
                            .headers = headers,
                            .user = endless,
                            .tenant = endless,
                            .status = 101};
  const Parsed<LoggedRequest> read =
      parse_json_line(line(record, {.form = LogForm::json, .headers = {"x-a", "x-b"}}));
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->duration, std::chrono::hours{24});
  EXPECT_EQ(read->target.size(), 4096U);
}

}  // namespace
}  // namespace sluice::cli
