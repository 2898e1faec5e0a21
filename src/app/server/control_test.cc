// The control thread, with the loop that a test turns: what it takes of files that change, and what
// it does not need.
#include "app/server/control.h"

#include "app/config/frontends.h"
#include "frontend/gateway/gateway_config.h"
#include "frontend/metrics/server_metrics.h"
#include "net/net_fixture.h"
#include "support/certificates.h"
#include "support/temp_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace sluice::app {
namespace {

constexpr std::string_view kServing =
    "listen: {gateway: '127.0.0.1:0'}\nstate: {memory: 4MiB}\n"
    "routes: [{path: '/**', upstream: app}]\n";
constexpr std::string_view kUpstream = "upstreams: {app: {servers: ['127.0.0.1:1']}}\n";

class ControlTest : public ::testing::Test {
 protected:
  ControlTest() {
    frontend::declare_server_metrics(registry_);
    for (const frontend::FrontendKind* kind : frontends()) frontends_.push_back(kind->open());
  }
  ~ControlTest() override {
    if (control_ != nullptr) control_->stop();
  }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_.file(name); }
  void write(const std::string& name, std::string_view text) const {
    std::ofstream{path("new")} << text;
    std::filesystem::rename(path("new"), path(name));
  }
  // A configuration, as the server opens it.
  void open(const std::string& text) {
    write("sluice.yaml", text);
    const auto say = [this](LogLevel, std::string line) {
      const std::lock_guard guard{mutex_};
      said_.push_back(std::move(line));
    };
    control_ = std::make_unique<Control>(Control::Parts{
        .file = path("sluice.yaml"),
        .text = text,
        .say = say,
        .say_later = say,
        .clock = *clock_,
        .loop = *loop_,
        .manager = manager_,
        .frontends = frontends_,
        .wake = [this] { on_publication_(); },
        .upstreams_replaced =
            [this](auto names) { replaced_.emplace_back(names.begin(), names.end()); }});
    config::Diagnostics diagnostics;
    ASSERT_TRUE(control_->read(diagnostics)) << diagnostics.text();
    ASSERT_TRUE(control_->open(registry_, facts_, diagnostics)) << diagnostics.text();
    facts_.enter(Phase::serving);
  }
  [[nodiscard]] const gateway::GatewayOptions& gateway() const {
    return *gateway::config_in(control_->published().get()->frontends).options;
  }
  // Whether metrics have ever been registered for this upstream.
  [[nodiscard]] bool counts_requests_to(std::string_view upstream) const {
    const metrics::FamilyReading family = registry_.read(frontend::kUpstreamRequests);
    return std::ranges::any_of(family.series, [upstream](const metrics::SeriesReading& series) {
      return series.values.at(0) == upstream;
    });
  }
  [[nodiscard]] std::size_t rules() const { return control_->configuration().rules.rules.size(); }
  [[nodiscard]] std::vector<std::string> said() {
    const std::lock_guard guard{mutex_};
    return said_;
  }
  [[nodiscard]] bool says(std::string_view text) {
    const std::vector<std::string> lines = said();
    return std::ranges::any_of(
        lines, [text](const std::string& line) { return line.find(text) != line.npos; });
  }
  template <class Condition>
  [[nodiscard]] bool until(Condition&& condition) {
    return net::testing::turn_until(*loop_, std::forward<Condition>(condition));
  }

  const std::unique_ptr<const Clock> clock_ = std::make_unique<SystemClock>();
  const sluice::testing::TempFolder folder_;
  std::unique_ptr<net::EventLoop> loop_ = net::EventLoop::create(*clock_).value();
  net::ServiceManager manager_;
  metrics::Registry registry_{2};
  ServerFacts facts_{{.version = "0", .file = {}}, registry_, 1};
  std::vector<std::unique_ptr<frontend::Frontend>> frontends_;
  std::function<void()> on_publication_ = [] {};
  std::vector<std::vector<std::string>> replaced_;  // upstreams, by every call
  std::mutex mutex_;
  std::vector<std::string> said_;
  std::unique_ptr<Control> control_;
};

constexpr std::string_view kOneRule = "rules: [{name: a, per: ip, limit: 1/1s}]\n";
constexpr std::string_view kTwoRules =
    "rules: [{name: a, per: ip, limit: 1/1s}, {name: b, per: ip, limit: 2/1s}]\n";

// ---- the file, and files that it names --------------------------------------------------------

// The text names a new file, so that another watch begins; meanwhile the text is replaced. A pipe
// hands the text out, and so knows that it is being read.
TEST_F(ControlTest, AChangeWhileTheWatchIsReplacedIsNotMissed) {
  const std::string serving = std::string{kServing} + std::string{kUpstream};
  open(serving + std::string{kOneRule});
  write("keys.yaml", "keys: []\n");
  const std::string first =
      serving + std::string{kOneRule} + "clients: {api_keys: {file: keys.yaml}}\n";
  const std::string second =
      serving + std::string{kTwoRules} + "clients: {api_keys: {file: keys.yaml}}\n";
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::filesystem::rename(path("pipe"), path("sluice.yaml"));
  const std::jthread writer{[&] {
    const FileDescriptor pipe{::open(path("sluice.yaml").c_str(), O_WRONLY | O_CLOEXEC)};
    EXPECT_EQ(::write(pipe.get(), first.data(), first.size()), static_cast<ssize_t>(first.size()));
    write("sluice.yaml", second);
  }};
  control_->reload();
  EXPECT_TRUE(until([&] { return rules() == 2; }));
}

// The workers that there are share the descriptors, however many the next start has.
TEST_F(ControlTest, TheDefaultCapOfConnectionsIsForTheWorkersInForce) {
  const std::string serving =
      std::string{kServing} + std::string{kUpstream} + std::string{kOneRule};
  open(serving + "workers: 1\n");
  const auto cap = [this] { return gateway().max_connections_per_worker; };
  const std::uint32_t before = cap();
  write("sluice.yaml", serving + "workers: 1000\n");
  control_->reload();
  EXPECT_TRUE(says("needs a restart, and is as before until then: workers"));
  EXPECT_EQ(cap(), before);
  write("sluice.yaml", serving + "workers: 1000\ngateway: {max_connections_per_worker: 7}\n");
  control_->reload();
  EXPECT_EQ(cap(), 7U) << "as written";
}

// Series cannot be removed again: a mistyped name would stay in /metrics until the next restart.
TEST_F(ControlTest, ARejectedFileLeavesNothingInMetrics) {
  open(std::string{kServing} + std::string{kUpstream} + std::string{kOneRule});
  EXPECT_TRUE(counts_requests_to("app"));
  const std::string mistyped = R"(
listen: {gateway: '127.0.0.1:0'}
state: {memory: 4MiB}
upstreams: {ap: {servers: ['127.0.0.1:1']}}
routes: [{path: '/**', upstream: ap}]
rules: []
)";
  write("sluice.yaml", mistyped + "clients: {api_keys: {file: missing.yaml}}\n");
  control_->reload();
  ASSERT_TRUE(says("missing.yaml"));
  EXPECT_FALSE(counts_requests_to("ap"));
  write("sluice.yaml", mistyped);
  control_->reload();
  EXPECT_TRUE(counts_requests_to("ap"));
}

// They are read with the text, before others are opened: that they are missing is no reason not to
// watch them.
TEST_F(ControlTest, AMissingFileThatIsReadWithTheTextIsWatched) {
  const std::string serving = std::string{kServing} + std::string{kUpstream};
  open(serving + std::string{kOneRule});
  write("sluice.yaml",
        std::string{kServing} + std::string{kTwoRules} +
            "upstreams: {app: {servers: ['127.0.0.1:1'], tls: {ca_file: ca.pem}}}\n");
  ASSERT_TRUE(until([&] { return says("ca.pem"); }));  // no event is left that would reload
  ASSERT_EQ(rules(), 1U);
  const sluice::testing::Authority authority{folder_, "ca"};
  EXPECT_TRUE(until([&] { return rules() == 2; }));

  write("sluice.yaml", serving + std::string{kOneRule} +
                           "gateway: {ratelimit_headers: {partition_secret_file: secret}}\n");
  ASSERT_TRUE(until([&] { return says("/secret"); }));
  ASSERT_EQ(rules(), 2U);
  std::ofstream{path("new")} << "a secret of more than 32 bytes, for partitions";
  std::filesystem::permissions(path("new"), std::filesystem::perms::owner_read);
  std::filesystem::rename(path("new"), path("secret"));
  EXPECT_TRUE(until([&] { return rules() == 1; }));
}

// A front end with upstreams of its own, in place of the admin listener.
class HasUpstreams final : public frontend::Frontend {
 public:
  [[nodiscard]] std::vector<std::string> replaced_upstreams(
      const frontend::FrontendConfig& /*before*/,
      const frontend::FrontendConfig& /*now*/) const override {
    return names;
  }
  std::vector<std::string> names;
};

// What one front end keeps does not decide over the servers of another.
TEST_F(ControlTest, EachFrontEndNamesTheUpstreamsThatItReplaces) {
  auto other = std::make_unique<HasUpstreams>();
  HasUpstreams& of_other = *other;
  frontends_.back() = std::move(other);
  const std::string rest = std::string{kServing} + std::string{kOneRule};
  open(rest + std::string{kUpstream});
  write("sluice.yaml", rest + "upstreams: {app: {servers: ['127.0.0.1:2']}}\n");
  control_->reload();
  EXPECT_EQ(replaced_, (std::vector<std::vector<std::string>>{{"app"}}));
  of_other.names = {"search"};
  control_->reload();
  EXPECT_EQ(replaced_.size(), 2U) << "the gateway keeps its own";
  EXPECT_EQ(replaced_.back(), std::vector<std::string>{"search"});
}

// ---- the rules' own file ----------------------------------------------------------------------

class RulesOfAFile : public ControlTest {
 protected:
  // A warning of the file that is not about rules.
  [[nodiscard]] std::string text(std::string_view upstream = kUpstream) const {
    return std::string{kServing} + std::string{upstream} +
           "rules_from: {file: rules.yaml}\nlists: {allow: [user=ann]}\n";
  }
};

// They come into force whatever has become of other files, and nothing is warned of twice.
TEST_F(RulesOfAFile, NeedNoOtherFile) {
  write("rules.yaml", kOneRule);
  const sluice::testing::Authority authority{folder_, "ca"};
  open(text("upstreams: {app: {servers: ['127.0.0.1:1'], tls: {ca_file: ca.pem}}}\n"));
  ASSERT_EQ(rules(), 1U);
  std::filesystem::remove(authority.file());
  write("rules.yaml", kTwoRules);
  ASSERT_TRUE(until([&] { return says("rules reloaded"); }));
  EXPECT_EQ(rules(), 2U);
  EXPECT_EQ(control_->published().get()->engine.snapshot->rules().rules().size(), 2U);
  for (const std::string& line : said()) {
    if (line.starts_with("kept the old configuration")) continue;  // for want of ca.pem
    EXPECT_EQ(line.find("has no effect"), std::string::npos) << line;
  }
}

// What is about the rules themselves is warned of.
TEST_F(RulesOfAFile, AreWarnedOf) {
  write("rules.yaml", kOneRule);
  open(text());
  write("rules.yaml", "rules: [{name: a, per: user, limit: 1/1s}]\n");
  ASSERT_TRUE(until([&] { return says("rules reloaded"); }));
  EXPECT_TRUE(says("rule 'a'")) << fmt::format("{}", fmt::join(said(), "\n"));
  EXPECT_FALSE(says("lists.allow"));
}

// Routes read paths as the rules do, so these are read again.
TEST_F(RulesOfAFile, ChangeHowRoutesReadPaths) {
  write("rules.yaml", kOneRule);
  open(text());
  const auto before = control_->published().get();
  write("rules.yaml", std::string{kOneRule} + "case_insensitive_paths: true\n");
  ASSERT_TRUE(until([&] { return says("rules reloaded"); }));
  EXPECT_NE(&gateway(), gateway::config_in(before->frontends).options.get());
  EXPECT_EQ(gateway().upstreams.size(), 1U);
}

TEST_F(RulesOfAFile, ThatCannotBeTakenEndNothing) {
  write("rules.yaml", kOneRule);
  open(text());
  on_publication_ = [] { throw std::runtime_error{"no memory left"}; };
  write("rules.yaml", kTwoRules);
  ASSERT_TRUE(until([&] { return says("are not used"); }));
  EXPECT_TRUE(says("no memory left"));
  EXPECT_EQ(rules(), 1U);
  on_publication_ = [] {};
  write("rules.yaml", "rules: []\n");
  ASSERT_TRUE(until([&] { return says("rules reloaded"); }));
  EXPECT_EQ(rules(), 0U);
}

}  // namespace
}  // namespace sluice::app
