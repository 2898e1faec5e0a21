// What a reload means for requests that are on their way: all of one configuration, or all of the
// other.
#include "app/server/snapshot.h"

#include "app/server/worker_fixture.h"
#include "base/read_file.h"
#include "identity/api_keys.h"
#include "net/tls_client.h"
#include "support/certificates.h"
#include "support/temp_folder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::app {
namespace {

using namespace std::chrono_literals;
using net::testing::Talker;
using net::testing::turn_until;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kGet = "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n";

class SnapshotTest : public ::testing::Test {
 protected:
  // One configuration forbids every request, and routes it; the other allows all and has no route.
  // A mixture of the two would serve requests.
  [[nodiscard]] std::string forbidden() const {
    return fmt::format(
        "listen: {{gateway: '127.0.0.1:0'}}\nstate: {{memory: 4MiB}}\n"
        "upstreams: {{app: {{servers: ['127.0.0.1:{}']}}}}\n"
        "routes: [{{path: '/**', upstream: app}}]\n"
        "lists: {{deny: [ip=127.0.0.1]}}\n"
        "rules: [{{name: all, per: ip, limit: 100000/1s}}]\n{}",
        port_, gateway_);
  }
  [[nodiscard]] std::string unrouted() const {
    std::string text = forbidden();
    text.replace(text.find("'/**'"), 5, "/other");
    text.replace(text.find("lists: {deny: [ip=127.0.0.1]}"), 29, "");
    return text;
  }
  [[nodiscard]] std::string open() const {
    std::string text = forbidden();
    return text.replace(text.find("lists: {deny: [ip=127.0.0.1]}"), 29, "");
  }

  void begin(const std::string& text) {
    worker_ = std::make_unique<fixture::OneWorker>(text, clock_);
    app_ = std::make_unique<fixture::Upstream>(*worker_->loop, std::move(of_app_));
  }
  void publish(const std::string& text) { (void)worker_->publish(text, clock_); }
  std::unique_ptr<Talker> connect() {
    return fixture::connect_to(*worker_->loop, worker_->endpoint);
  }
  [[nodiscard]] bool comes(const Talker& client, std::string_view text) {
    return turn_until(*worker_->loop,
                      [&] { return client.received.find(text) != std::string::npos; });
  }

  const SystemClock clock_;
  net::Listener of_app_ = net::listen_on(net::testing::free_port()).value();
  std::uint16_t port_ = of_app_.endpoint().port;
  std::string gateway_;
  std::unique_ptr<fixture::OneWorker> worker_;
  std::unique_ptr<fixture::Upstream> app_;
};

TEST_F(SnapshotTest, IsTakenBetweenTwoTurns) {
  begin(forbidden());
  const auto client = connect();
  client->say(kGet);
  ASSERT_TRUE(comes(*client, "HTTP/1.1 403"));
  publish(unrouted());
  client->received.clear();
  client->say(kGet);
  ASSERT_TRUE(comes(*client, "HTTP/1.1 404"));
}

// Headers that come in two parts, with a reload in between: rules and routes are the new ones.
TEST_F(SnapshotTest, IsPinnedWhenTheHeadersAreComplete) {
  begin(forbidden());
  const auto client = connect();
  client->say(kGet.substr(0, 20));
  ASSERT_TRUE(turn_until(*worker_->loop, [&] { return worker_->report().connections == 1; }));
  for (int i = 0; i < 10; ++i) worker_->loop->turn(1ms);  // the half is read
  publish(unrouted());
  client->say(kGet.substr(20));
  ASSERT_TRUE(comes(*client, "\r\n\r\n"));
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 404"));
}

// The request has its rules and its route; the response comes after the reload.
TEST_F(SnapshotTest, KeepsItsRouteForRequestsInFlight) {
  begin(open());
  app_->end_of_request = "never";
  const auto client = connect();
  client->say(kGet);
  ASSERT_TRUE(turn_until(*worker_->loop, [&] { return !app_->heard().empty(); }));
  publish(unrouted());
  for (int i = 0; i < 10; ++i) worker_->loop->turn(1ms);
  app_->answer();
  ASSERT_TRUE(comes(*client, "hello"));
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 200"));
}

// A header that was no proxy's is not passed on, though the next configuration has no such header.
TEST_F(SnapshotTest, KeepsTheHeaderOfTheClientsAddressForRequestsInAQueue) {
  std::string before = open();
  before.replace(before.find("limit: 100000/1s"), 16,
                 "limit: {rate: 2/1s, algorithm: leaky_bucket}, action: {queue: {max_delay: 5s}}");
  begin(before + "clients: {trusted_proxies: [192.0.2.1], client_ip_header: x-edge-client}\n");
  const auto first = connect();
  first->say(kGet);
  ASSERT_TRUE(comes(*first, "hello"));
  app_->end_of_request = "never";
  const auto queued = connect();
  queued->say("GET /x HTTP/1.1\r\nHost: a.example\r\nX-Edge-Client: 198.51.100.7\r\n\r\n");
  ASSERT_TRUE(turn_until(*worker_->loop, [&] { return worker_->report().queued == 1; }));
  publish(before);
  ASSERT_TRUE(turn_until(*worker_->loop, [&] { return app_->heard().ends_with("\r\n\r\n"); }));
  EXPECT_THAT(std::string{app_->heard()}, Not(HasSubstr("198.51.100.7")));
}

// A key stays hidden where the configuration of its request had it, wherever the next one has it.
TEST_F(SnapshotTest, HidesSecretsOfRequestsInFlight) {
  const sluice::testing::TempFolder folder;
  const std::string log = folder.file("access.log");
  std::ofstream{folder.file("keys.yaml")} << "keys: [{name: ann, hash: '"
                                          << identity::hash_api_key("c0mes-by-query") << "'}]\n";
  const auto with_keys_in = [&](std::string_view place) {
    return open() + fmt::format(
                        "clients: {{api_keys: {{{}, file: {}}}}}\n"
                        "access_log: {{file: {}, format: text}}\n",
                        place, folder.file("keys.yaml"), log);
  };
  begin(with_keys_in("query: customer"));
  app_->end_of_request = "never";
  const auto client = connect();
  client->say("GET /x?customer=c0mes-by-query HTTP/1.1\r\nHost: a.example\r\n\r\n");
  ASSERT_TRUE(turn_until(*worker_->loop, [&] { return !app_->heard().empty(); }));
  publish(with_keys_in("header: x-customer"));
  for (int i = 0; i < 10; ++i) worker_->loop->turn(1ms);
  app_->answer();
  ASSERT_TRUE(comes(*client, "hello"));
  std::string lines;
  ASSERT_TRUE(turn_until(*worker_->loop, [&] {
    lines = read_file(log, 65536).value();
    return lines.ends_with('\n');
  }));
  EXPECT_THAT(lines, HasSubstr("/x?customer=***"));
  EXPECT_THAT(lines, Not(HasSubstr("c0mes-by-query")));
}

// ---- the CA of clients ------------------------------------------------------------------------

class TrustTest : public SnapshotTest {
 protected:
  TrustTest() { trust(authority_); }

  void trust(const sluice::testing::Authority& authority) {
    gateway_ = fmt::format(
        "gateway: {{tls: {{certificates: [{{cert_file: {}, key_file: {}}}], client_ca_file: "
        "{}}}}}\n",
        server_.chain, server_.key, authority.file());
  }
  [[nodiscard]] auto as_ann() const {
    return net::TlsClient::load({.ca_file = authority_.file(),
                                 .certificate = net::CertificateFiles{client_.chain, client_.key}})
        .value();
  }
  std::unique_ptr<Talker> connect_as_ann() {
    auto ann = connect();
    EXPECT_TRUE(ann->stream.start_tls(*as_ann(), "a.example"));
    return ann;
  }

  sluice::testing::TempFolder folder_;
  sluice::testing::Authority authority_{folder_, "authority"};
  sluice::testing::Authority other_{folder_, "other"};
  sluice::testing::IssuedCertificate server_ =
      authority_.issue("server", {.common_name = "a", .names = {"DNS:a.example"}});
  sluice::testing::IssuedCertificate client_ = authority_.issue("ann", {.common_name = "ann"});
};

TEST_F(TrustTest, AnIdleConnectionEndsWhenItsCaIsNoLongerTrusted) {
  begin(open());
  const auto ann = connect_as_ann();
  ann->say(kGet);
  ASSERT_TRUE(comes(*ann, "hello"));
  trust(other_);
  publish(open());
  EXPECT_TRUE(turn_until(*worker_->loop, [&] { return ann->is_over(); }));
}

// Its TLS context still verifies client certificates by the old CA.
TEST_F(TrustTest, AConnectionInItsHandshakeEndsAsWell) {
  begin(open());
  const auto ann = connect();
  ASSERT_TRUE(turn_until(*worker_->loop, [&] { return worker_->report().connections == 1; }));
  trust(other_);
  publish(open());
  EXPECT_TRUE(ann->stream.start_tls(*as_ann(), "a.example"));
  ann->say(kGet);
  ASSERT_TRUE(turn_until(*worker_->loop, [&] { return ann->is_over(); }));
  EXPECT_EQ(ann->received, "");
}

TEST_F(TrustTest, AConnectionInUseEndsAfterItsCurrentRequest) {
  begin(open());
  app_->end_of_request = "never";
  const auto ann = connect_as_ann();
  ann->say(kGet);
  ASSERT_TRUE(turn_until(*worker_->loop, [&] { return !app_->heard().empty(); }));
  trust(other_);
  publish(open());
  for (int i = 0; i < 10; ++i) worker_->loop->turn(1ms);
  app_->answer();
  ASSERT_TRUE(turn_until(*worker_->loop, [&] { return ann->is_over(); }));
  EXPECT_THAT(ann->received, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(ann->received, HasSubstr("Connection: close"));
}

// Half of its headers came under CAs that are not trusted when the other half comes.
TEST_F(TrustTest, ARequestOfTwoTrustsIsRejected) {
  begin(open());
  const auto ann = connect_as_ann();
  ann->say(kGet);
  ASSERT_TRUE(comes(*ann, "hello"));
  ann->received.clear();
  ann->say(kGet.substr(0, 20));
  for (int i = 0; i < 10; ++i) worker_->loop->turn(1ms);  // the half is read
  trust(other_);
  publish(open());
  for (int i = 0; i < 10; ++i) worker_->loop->turn(1ms);
  EXPECT_FALSE(ann->is_over());
  ann->say(kGet.substr(20));
  ASSERT_TRUE(turn_until(*worker_->loop, [&] { return ann->is_over(); }));
  EXPECT_THAT(ann->received, StartsWith("HTTP/1.1 403"));
  EXPECT_EQ(app_->requests, 1);
}

// Also where there is no TLS in between.
TEST_F(TrustTest, ConnectionsEndWhenTheirCaGoesAndAnotherComesLater) {
  begin(open());
  const auto idle = connect_as_ann();
  idle->say(kGet);
  ASSERT_TRUE(comes(*idle, "hello"));
  const auto busy = connect_as_ann();
  app_->end_of_request = "never";
  busy->say(kGet);
  ASSERT_TRUE(turn_until(*worker_->loop, [&] { return !app_->heard().empty(); }));
  gateway_.clear();
  publish(open());
  for (int i = 0; i < 10; ++i) worker_->loop->turn(1ms);
  trust(other_);
  publish(open());
  for (int i = 0; i < 10; ++i) worker_->loop->turn(1ms);
  app_->answer();
  EXPECT_TRUE(turn_until(*worker_->loop, [&] { return idle->is_over() && busy->is_over(); }));
  EXPECT_THAT(busy->received, HasSubstr("hello"));
}

TEST_F(TrustTest, AnotherCertificateOfOursEndsNothing) {
  begin(open());
  const auto ann = connect_as_ann();
  ann->say(kGet);
  ASSERT_TRUE(comes(*ann, "hello"));
  server_ = authority_.issue("renewed", {.common_name = "a", .names = {"DNS:a.example"}});
  trust(authority_);
  publish(open());
  ann->received.clear();
  ann->say(kGet);
  EXPECT_TRUE(comes(*ann, "hello"));
}

}  // namespace
}  // namespace sluice::app
