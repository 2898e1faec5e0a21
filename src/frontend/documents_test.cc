// The pages about headers and metrics, held against what is really sent and counted.

#include "base/read_file.h"
#include "frontend/metrics/server_metrics.h"
#include "frontend/responses/answers.h"
#include "metrics/process_metrics.h"
#include "support/frontend_fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace sluice::frontend {
namespace {

using namespace std::chrono_literals;
using engine::limit;
using engine::rule;
using fixture::Head;

std::string document(const std::string& name) {
  return sluice::read_file(std::string{SLUICE_SOURCE_DIR} + "/docs/" + name, 1U << 20U).value();
}

// ---- docs/metrics.md --------------------------------------------------------------------------

std::string row_of(const metrics::Metric& metric) {
  std::string labels;
  for (const std::string_view label : metric.labels) {
    if (!label.empty()) labels += fmt::format("{}`{}`", labels.empty() ? "" : ", ", label);
  }
  return fmt::format("| `{}` | {} | {} | {} |\n", metric.name, to_string(metric.kind), labels,
                     metric.help);
}

// Every metric there is has a row, and every row is of a metric there is.
TEST(MetricsDocument, ListsWhatIsRegistered) {
  metrics::Registry registry{1};
  declare_server_metrics(registry);
  metrics::collect_process(registry);
  metrics::show_build(registry, {.version = "0", .revision = "0"});
  std::string rows;
  for (const metrics::Metric& metric : registry.metrics()) rows += row_of(metric);
  const std::string page = document("metrics.md");
  const std::size_t begin = page.find("|---|---|---|---|\n");
  ASSERT_NE(begin, std::string::npos);
  const std::size_t first = page.find('\n', begin) + 1;
  EXPECT_EQ(page.substr(first, page.find("\n\n", first) + 1 - first), rows)
      << "the table of docs/metrics.md should be:\n"
      << rows;
}

// As Prometheus wants them to be called.
TEST(ServerMetrics, AreNamedByTheRules) {
  for (const Metric* metric : server_metrics()) {
    EXPECT_TRUE(metric->name.starts_with("sluice_")) << metric->name;
    EXPECT_EQ(metric->name.ends_with("_total"), metric->kind == Kind::counter) << metric->name;
    EXPECT_TRUE(metric->help.ends_with('.')) << metric->name;
    EXPECT_TRUE(metric->kind != Kind::histogram || metric->name.ends_with("_seconds"));
    for (const std::string_view label : metric->labels) {
      EXPECT_TRUE(label != "key" && label != "ip" && label != "user") << "without a bound";
    }
  }
}

// ---- docs/headers.md --------------------------------------------------------------------------

class HeadersDocument : public fixture::FrontendFixture {
 protected:
  static std::string shown(const Head& head) {
    std::string text;
    for (const auto& [name, value] : head.headers) {
      // A page has no room for what only programs read.
      const bool is_binary = name.ends_with("-bin");
      text += fmt::format("    {}: {}\n", name, is_binary ? value.substr(0, 24) + "..." : value);
    }
    return text;
  }
  static void expect_in_page(const std::string& example) {
    static const std::string kPage = document("headers.md");
    EXPECT_NE(kPage.find("\n\n" + example + "\n"), std::string::npos)
        << "docs/headers.md should show:\n"
        << example;
  }
};

// The example of the page: 5 a minute and 1000 a day, on the first request of somebody.
TEST_F(HeadersDocument, ShowsWhatEveryFamilyWrites) {
  use({rule("api", {limit("5/1m")}), rule("daily", {limit("1000/day")})});
  const engine::Op& op = decided();
  for (const char* name : {"ietf-11", "ietf-next", "ietf-07", "ietf-03", "x-ratelimit-delta",
                           "x-ratelimit-epoch", "x-rate-limit-epoch"}) {
    const RateHeaders headers = RateHeaders::create({.families = {*family_named(name)}}).value();
    const Head head = fixture::written_head([&](net::HeadWriter& writer) {
      writer.status_line(200, "");
      headers.write(writer, op, {.now = now_.wall()});
    });
    expect_in_page(shown(head));
    EXPECT_NE(document("headers.md").find(fmt::format("## `{}`", name)), std::string::npos);
  }
}

TEST_F(HeadersDocument, ShowsARefusal) {
  use({rule("api", {limit("5/1m")}), rule("daily", {limit("1000/day")})});
  const engine::Op& op = decided_after(5);
  const Answers answers{RateHeaders::create({}).value()};
  std::array<char, kProblemBytesMax> room;
  std::string body;
  const Asking asking{.now = now_.wall(), .client = {}, .request_id = "4f1d", .content_type = {}};
  const Head head = fixture::written_head([&](net::HeadWriter& writer) {
    body = std::string{answers.refuse(writer, room, op, asking)};
  });
  expect_in_page(fmt::format("    HTTP/1.1 {} Too Many Requests\n{}\n    {}\n", head.status,
                             shown(head), body));
  const Head grpc = fixture::written_head([&](net::HeadWriter& writer) {
    const Asking by_grpc{
        .now = now_.wall(), .client = {}, .request_id = {}, .content_type = "application/grpc"};
    (void)answers.refuse(writer, room, op, by_grpc);
  });
  expect_in_page(fmt::format("    HTTP/1.1 {} OK\n{}", grpc.status, shown(grpc)));
}

}  // namespace
}  // namespace sluice::frontend
