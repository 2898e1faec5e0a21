#include "metrics/exposition.h"

#include "base/text.h"
#include "metrics/exposition_fixture.h"
#include "metrics/process_metrics.h"
#include "metrics/registry.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <string>

namespace sluice::metrics {
namespace {

using namespace std::chrono_literals;
using fixture::Page;
using fixture::parse_page;

constexpr std::array kForms{Exposition::text, Exposition::open_metrics};

constexpr Metric kRequests{.name = "sluice_requests_total",
                           .help = "Requests \\ answers, \"all\" of them.\nSince the start.",
                           .labels = {"listener", "code"}};
constexpr Metric kOpen{
    .name = "sluice_open_connections", .kind = Kind::gauge, .help = "Connections."};
constexpr Metric kWaited{.name = "sluice_wait_seconds",
                         .kind = Kind::histogram,
                         .help = "How long.",
                         .labels = {"listener"}};

double value_of(const Page& page, const std::string& family, const std::string& sample,
                const std::map<std::string, std::string>& labels) {
  for (const fixture::Sample& one : page.at(family).samples) {
    if (one.name == sample && one.labels == labels) return one.value;
  }
  ADD_FAILURE() << "there is no " << sample;
  return NAN;
}

// ---- the two forms ----------------------------------------------------------------------------

TEST(Exposition, WritesAPageThatAStrictReaderReads) {
  Registry registry{2};
  registry.counter(kRequests, {"gateway", "2xx"}).add(0, 3);
  registry.counter(kRequests, {"gateway", "2xx"}).add(1, 4);
  registry.gauge(kOpen).set(0, 2.5);
  const DurationHistogram waited = registry.histogram(kWaited, {"gateway"});
  waited.record(0, 50us);
  waited.record(1, 51us);
  waited.record(1, 1h);
  collect_process(registry);
  show_build(registry, {.version = "0.1.0", .revision = "abc"});
  for (const Exposition form : kForms) {
    const std::string text = expose(registry.read(), form);
    const Page page = parse_page(text, form);
    const bool open = form == Exposition::open_metrics;
    const std::string requests = open ? "sluice_requests" : "sluice_requests_total";
    EXPECT_EQ(page.at(requests).help, kRequests.help);
    EXPECT_EQ(value_of(page, requests, "sluice_requests_total",
                       {{"listener", "gateway"}, {"code", "2xx"}}),
              7);
    EXPECT_EQ(value_of(page, "sluice_open_connections", "sluice_open_connections", {}), 2.5);
    const auto bucket = [&](const std::string& bound) {
      return value_of(page, "sluice_wait_seconds", "sluice_wait_seconds_bucket",
                      {{"listener", "gateway"}, {"le", bound}});
    };
    EXPECT_EQ(bucket("5e-05"), 1) << "a bound belongs to what is below it";
    EXPECT_EQ(bucket("0.0001"), 2);
    EXPECT_EQ(bucket(open ? "10.0" : "10"), 2);
    EXPECT_EQ(bucket("+Inf"), 3);
    EXPECT_EQ(value_of(page, "sluice_wait_seconds", "sluice_wait_seconds_count",
                       {{"listener", "gateway"}}),
              3);
    EXPECT_NEAR(
        value_of(page, "sluice_wait_seconds", "sluice_wait_seconds_sum", {{"listener", "gateway"}}),
        3600.000101, 1e-9);
    EXPECT_EQ(value_of(page, open ? "sluice_build" : "sluice_build_info", "sluice_build_info",
                       {{"version", "0.1.0"}, {"revision", "abc"}}),
              1);
    EXPECT_EQ(page.at("sluice_wait_seconds").unit, open ? "seconds" : "");
  }
}

// Values of labels come from configuration, which may hold anything.
RC_GTEST_PROP(Exposition, CarriesEveryLabelValueThrough, (const std::string& value)) {
  Registry registry{1};
  registry.counter(kRequests, {value, "2xx"}).add(0);
  for (const Exposition form : kForms) {
    const Page page = parse_page(expose(registry.read(), form), form);
    const auto& family =
        page.at(form == Exposition::text ? "sluice_requests_total" : "sluice_requests");
    RC_ASSERT(family.samples.size() == 1U);
    const bool is_utf8 = valid_utf8_prefix(value) == value.size();
    if (is_utf8) RC_ASSERT(family.samples[0].labels.at("listener") == value);
  }
}

TEST(Exposition, WritesNumbersThatMeanThemselves) {
  const auto shown = [](double value) {
    const std::array one{
        FamilyReading{.name = "x", .kind = Kind::gauge, .help = "h", .series = {{.value = value}}}};
    const std::string text = expose(one, Exposition::text);
    return text.substr(text.rfind("\nx ") + 3);
  };
  EXPECT_EQ(shown(0), "0\n");
  EXPECT_EQ(shown(1'000'000), "1000000\n");
  EXPECT_EQ(shown(-3), "-3\n");
  EXPECT_EQ(shown(0.1), "0.1\n");
  EXPECT_EQ(shown(INFINITY), "+Inf\n");
  EXPECT_EQ(shown(-INFINITY), "-Inf\n");
  EXPECT_EQ(shown(NAN), "NaN\n");
  EXPECT_EQ(std::stod(shown(1e300)), 1e300);
}

TEST(Exposition, SpellsEveryBoundOfDurationsAsItIs) {
  Nanos before{0};
  for (const DurationBound& bound : kDurationBounds) {
    EXPECT_NEAR(std::stod(std::string{bound.seconds}),
                std::chrono::duration<double>(bound.at_most).count(), 1e-12);
    EXPECT_GT(bound.at_most, before);
    before = bound.at_most;
  }
  EXPECT_EQ(kDurationBounds[0].at_most, 50us);
}

// ---- which of them ----------------------------------------------------------------------------

TEST(Exposition, IsChosenByWhatIsAccepted) {
  const auto open = [](std::string_view accept) {
    return choose_exposition(accept) == Exposition::open_metrics;
  };
  EXPECT_FALSE(open(""));
  EXPECT_FALSE(open("*/*"));
  EXPECT_FALSE(open("text/plain"));
  EXPECT_FALSE(open("text/html, application/json;q=0.9"));
  EXPECT_TRUE(open("application/openmetrics-text"));
  EXPECT_TRUE(open("application/openmetrics-text; version=1.0.0"));
  EXPECT_FALSE(open("application/openmetrics-text; version=9.0.0"));
  EXPECT_FALSE(open("application/openmetrics-text;q=0"));
  EXPECT_FALSE(open("application/openmetrics-text;q=0.1, text/plain;q=0.2"));
  EXPECT_TRUE(open("text/plain;q=0.5, Application/OpenMetrics-Text ; Q=0.501"));
  EXPECT_TRUE(
      open("application/openmetrics-text;version=1.0.0;q=0.5,"
           "application/openmetrics-text;version=0.0.1;q=0.4,"
           "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"))
      << "what Prometheus sends";
}

// ---- the process ------------------------------------------------------------------------------

TEST(ProcessMetrics, TellWhatTheSystemKnows) {
  Registry registry{1};
  collect_process(registry);
  const Page page = parse_page(expose(registry.read(), Exposition::text), Exposition::text);
  const auto value = [&](const std::string& name) { return value_of(page, name, name, {}); };
  const auto now = static_cast<double>(std::time(nullptr));
  EXPECT_GT(value("process_cpu_seconds_total"), 0);
  EXPECT_GT(value("process_resident_memory_bytes"), 1e5);
  EXPECT_GE(value("process_virtual_memory_bytes"), value("process_resident_memory_bytes"));
  EXPECT_GE(value("process_open_fds"), 3);
  EXPECT_GE(value("process_max_fds"), value("process_open_fds"));
  EXPECT_LE(value("process_start_time_seconds"), now + 1);
  EXPECT_GT(value("process_start_time_seconds"), now - 3600);
}

// ---- the reader itself ------------------------------------------------------------------------

TEST(StrictReader, RefusesWhatIsWrong) {
  const auto refuses = [](const std::string& text, Exposition form = Exposition::text) {
    try {
      (void)parse_page(text, form);
      return false;
    } catch (const std::runtime_error&) {
      return true;
    }
  };
  const std::string head = "# HELP a h\n# TYPE a gauge\n";
  EXPECT_FALSE(refuses(head + "a 1\n"));
  EXPECT_FALSE(refuses(head + "a{b=\"c\"} 1\na{b=\"d\"} 1\n"));
  EXPECT_TRUE(refuses(head + "a 1"));
  EXPECT_TRUE(refuses("a 1\n"));
  EXPECT_TRUE(refuses(head + "b 1\n"));
  EXPECT_TRUE(refuses(head + "a one\n"));
  EXPECT_TRUE(refuses(head + "a 1\na 1\n"));
  EXPECT_TRUE(refuses(head + "a{b=\"c} 1\n"));
  EXPECT_TRUE(refuses(head + "a{b=\"\\d\"} 1\n"));
  EXPECT_TRUE(refuses(head + "a{b=\"c\",b=\"c\"} 1\n"));
  EXPECT_TRUE(refuses(head + "a 1\n# HELP b h\n# TYPE b gauge\nb 1\n" + head));
  EXPECT_TRUE(refuses(head + "a 1\n", Exposition::open_metrics)) << "there is no end";
  EXPECT_TRUE(refuses("# TYPE a counter\na 1\n# EOF\n", Exposition::open_metrics));
}

}  // namespace
}  // namespace sluice::metrics
