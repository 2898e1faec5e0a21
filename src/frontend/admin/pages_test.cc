#include "frontend/admin/pages.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::admin {
namespace {

using namespace std::chrono_literals;
using frontend::Check;
using frontend::ReloadStatus;
using frontend::RulesFileStatus;
using frontend::ServerView;
using frontend::StatusReport;

class FixedView final : public ServerView {
 public:
  std::vector<Check> checks{{.name = "first", .holds = true}, {.name = "second", .holds = true}};
  StatusReport report;

  std::vector<Check> readiness() const override { return checks; }
  std::string metrics(metrics::Exposition form) override {
    return form == metrics::Exposition::text ? "as text\n" : "as OpenMetrics\n";
  }
  StatusReport status() override { return report; }
};

class Pages : public ::testing::Test {
 protected:
  Pages() { add_pages(routes_, view_); }

  Reply ask(std::string_view method, std::string_view path, std::vector<HeaderView> headers = {},
            std::string_view query = {}) {
    return routes_.answer({.method = method,
                           .path = path,
                           .query = query,
                           .host = "localhost",
                           .headers = headers,
                           .body = {},
                           .is_local = false},
                          guard_);
  }

  FixedView view_;
  Routes routes_;
  Guard guard_;
};

TEST_F(Pages, AreListedAtTheRoot) {
  const Reply reply = ask("GET", "/");
  EXPECT_EQ(reply.status, 200);
  for (const char* path : {"/livez", "/readyz", "/healthz", "/metrics", "/v1/status"}) {
    EXPECT_NE(reply.body.find(path), std::string::npos) << path;
    EXPECT_EQ(ask("GET", path).status, 200) << path;
    EXPECT_EQ(ask("HEAD", path).status, 200) << path;
  }
}

TEST_F(Pages, ThatAreNoneAreProblems) {
  const Reply none = ask("GET", "/v1/nothing");
  EXPECT_EQ(none.status, 404);
  EXPECT_EQ(none.header("content-type"), "application/problem+json");
  EXPECT_NE(none.body.find("\"status\":404"), std::string::npos) << none.body;
  const Reply wrong = ask("POST", "/metrics");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.header("allow"), "GET, HEAD");
}

// A server that drains is alive, and should get nothing more.
TEST_F(Pages, TellLifeFromReadiness) {
  EXPECT_EQ(ask("GET", "/readyz").body, "ok\n");
  view_.checks[1].holds = false;
  EXPECT_EQ(ask("GET", "/livez").status, 200);
  EXPECT_EQ(ask("GET", "/readyz").status, 503);
  EXPECT_EQ(ask("GET", "/healthz").status, 503);
  EXPECT_EQ(ask("GET", "/readyz").body, "not ready\n");
  EXPECT_EQ(ask("GET", "/readyz", {}, "a=b&verbose").body, "[+] first\n[-] second\nnot ready\n");
  EXPECT_EQ(ask("GET", "/readyz", {}, "verbosely").body, "not ready\n");
}

TEST_F(Pages, ShowMetricsAsTheyWereAskedFor) {
  EXPECT_EQ(ask("GET", "/metrics").body, "as text\n");
  EXPECT_EQ(
      ask("GET", "/metrics", {{"Accept", "application/openmetrics-text; version=1.0.0"}}).body,
      "as OpenMetrics\n");
}

// Who may not ask does not learn what there is; probes need no token.
TEST_F(Pages, AreGuardedButForProbes) {
  guard_ = Guard{"a token of sufficient length"};
  for (const char* path : {"/", "/metrics", "/v1/status", "/v1/nothing"}) {
    EXPECT_EQ(ask("GET", path).status, 401) << path;
    EXPECT_EQ(ask("POST", path).status, 401) << path;
  }
  for (const char* path : {"/livez", "/readyz", "/healthz"}) {
    EXPECT_EQ(ask("GET", path).status, 200) << path;
    EXPECT_EQ(ask("POST", path).status, 405) << path;
  }
}

TEST_F(Pages, ShowTheStatusAsJson) {
  view_.report = {.version = "1.2.3",
                  .state = "serving",
                  .started_at = WallTime{1'700'000'000s + 5ns},
                  .uptime = 90s,
                  .workers = 2,
                  .file = "a \"quoted\" name",
                  .read_at = WallTime{1'700'000'000s},
                  .rules = 3,
                  .last_reload = ReloadStatus{.at = WallTime{1'700'000'060s}, .succeeded = false},
                  .listeners = {{.name = "gateway", .endpoint = "127.0.0.1:8080"}},
                  .connections = 4,
                  .connections_evicted = 12,
                  .connections_rejected = 13,
                  .requests_in_flight = 1,
                  .requests_queued = 0,
                  .requests = {{"2xx", 7}},
                  .decisions = {{"allowed", 6}, {"rejected", 1}},
                  .rejections = {},
                  .upstreams = {{.name = "app",
                                 .servers = {{.address = "127.0.0.1:3000",
                                              .ejected_by = 1,
                                              .in_use = 1,
                                              .idle = 2,
                                              .failures = 3},
                                             {.address = "app.internal:3001",
                                              .ejected_by = 2,
                                              .addresses = 3,
                                              .addresses_ejected = 3}}}},
                  .keys = 10,
                  .keys_max = 100,
                  .evictions = 0,
                  .table_full = {.now = true,
                                 .approximated = 5,
                                 .allowed = 6,
                                 .rejected = 7,
                                 .refunds_lost = 3,
                                 .blocks_dropped = 9,
                                 .block_rejections_lost = 11,
                                 .cells = 8,
                                 .cells_max = 40},
                  .blocks = 2};
  EXPECT_EQ(ask("GET", "/v1/status").body,
            R"({"version":"1.2.3","state":"serving","started_at":"2023-11-14T22:13:20Z",)"
            R"("uptime_seconds":90,"workers":2,"configuration":{"file":"a \"quoted\" name",)"
            R"("read_at":"2023-11-14T22:13:20Z","rules":3,)"
            R"("last_reload":{"at":"2023-11-14T22:14:20Z","result":"error"},)"
            R"("rules_from":null},)"
            R"("listeners":[{"name":"gateway","endpoint":"127.0.0.1:8080"}],)"
            R"("connections":4,"connections_evicted":12,"connections_rejected":13,)"
            R"("requests_in_flight":1,"requests_queued":0,)"
            R"("requests":{"2xx":7},"decisions":{"allowed":6,"rejected":1},"rejections":{},)"
            R"("upstreams":[{"name":"app","servers":[)"
            R"({"address":"127.0.0.1:3000","healthy":true,"in_use":1,"idle":2,"failures":3,)"
            R"("addresses":1,"addresses_ejected":0},)"
            R"({"address":"app.internal:3001","healthy":false,"in_use":0,"idle":0,"failures":0,)"
            R"("addresses":3,"addresses_ejected":3}]}],)"
            R"("keys":{"used":10,"capacity":100,"evictions":0,"full":true,"approximated":5,)"
            R"("allowed_untracked":6,"rejected":7,"refund_units_lost":3,"blocks_dropped":9,)"
            R"("block_rejections_lost":11,"cells_used":8,"cells":40},"blocks":2})"
            "\n");
}

TEST_F(Pages, ShowWhereRulesAreFromAndWhatIsWrongThere) {
  view_.report.rules_file = RulesFileStatus{.source = "file /etc/rules.yaml",
                                            .version = "abc",
                                            .loaded_at = WallTime{1'700'000'000s},
                                            .of_last_run = true,
                                            .error = "/etc/rules.yaml:1:1: no",
                                            .last_good_error = {},
                                            .watch_problem = {}};
  EXPECT_NE(ask("GET", "/v1/status")
                .body.find(R"("rules_from":{"source":"file /etc/rules.yaml","version":"abc",)"
                           R"("loaded_at":"2023-11-14T22:13:20Z","in_sync":false,)"
                           R"("of_last_run":true,"error":"/etc/rules.yaml:1:1: no",)"
                           R"("last_good_error":null,"watch_problem":null})"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice::admin
