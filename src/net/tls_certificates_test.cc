// Who believes whom: certificates of servers and clients, chosen by name, reloaded, and mistaken.
#include "net/tls_files.h"
#include "net/tls_fixture.h"
#include "support/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sluice::net {
namespace {

using sluice::testing::Authority;
using sluice::testing::CertificateWish;
using sluice::testing::IssuedCertificate;
using testing::ClientPtr;
using testing::connected_pair;
using testing::files;
using ::testing::HasSubstr;
using testing::Loop;
using testing::Pair;
using testing::ServerPtr;
using testing::Talker;
using Connection = testing::TlsConnection;

class TlsCertificates : public testing::TlsFixture {};

// ---- whom a client believes -------------------------------------------------------------------

TEST_F(TlsCertificates, ClientsRefuseCertificatesThatAreNotGood) {
  const Authority stranger{folder_, "stranger"};
  const CertificateWish wish{.common_name = "x", .names = {"DNS:example.com"}};
  CertificateWish expired = wish;
  expired.expired = true;
  const struct {
    IssuedCertificate presented;
    std::string host;
    std::string complaint;
  } cases[] = {
      {stranger.issue("strange", wish), "example.com", "unable to get local issuer certificate"},
      {authority_.issue("late", expired), "example.com", "certificate has expired"},
      {example_, "example.org", "hostname mismatch"},
      {example_, "127.0.0.1", "IP address mismatch"},
  };
  for (const auto& one : cases) {
    Connection c{server({.certificates = {files(one.presented)}}), client(), one.host};
    EXPECT_FALSE(c.client.established);
    EXPECT_EQ(c.client.failure.value_or(IoFailure{}).kind, IoFailure::Kind::certificate);
    EXPECT_THAT(c.client_failure(), HasSubstr(one.complaint));
    ASSERT_TRUE(c.loop.until([&] { return c.server.is_over(); }));
    EXPECT_THAT(c.server_failure(), HasSubstr("alert")) << "the server is told";
  }
}

TEST_F(TlsCertificates, ClientsCheckAddressesToo) {
  const IssuedCertificate by_address =
      authority_.issue("address", {.common_name = "x", .names = {"IP:127.0.0.1"}});
  const ServerPtr host = server({.certificates = {files(by_address)}});
  EXPECT_TRUE((Connection{host, client(), "127.0.0.1"}.stands()));
  EXPECT_FALSE((Connection{host, client(), "127.0.0.2"}.stands()));
}

TEST_F(TlsCertificates, ClientsTrustTheSystemsAuthoritiesByDefaultAndNobodyElse) {
  Connection c{server(), client({})};
  EXPECT_FALSE(c.client.established);
  EXPECT_TRUE((Connection{server(), client({.verify = false}), "any.name"}.stands()));
  const ClientPtr good = client();
  const Loop loop;
  Talker talker{*loop};
  talker.open(connected_pair().client);
  EXPECT_FALSE(talker.stream.start_tls(*good, "")) << "a check needs a name";
}

// ---- names ------------------------------------------------------------------------------------

TEST_F(TlsCertificates, PresentsTheCertificateOfTheNameThatIsAskedFor) {
  const auto issue = [&](const std::string& name, std::vector<std::string> names) {
    return files(authority_.issue(name, {.common_name = name, .names = std::move(names)}));
  };
  const ServerPtr host = server(
      {.certificates = {issue("first", {"DNS:first.com"}), issue("exact", {"DNS:a.wild.com"}),
                        issue("wild", {"DNS:*.wild.com", "DNS:Upper.COM"}),
                        issue("again", {"DNS:first.com"})}});
  const std::pair<const char*, const char*> cases[] = {
      {"first.com", "first"},    {"a.wild.com", "exact"},  {"b.wild.com", "wild"},
      {"B.WILD.com", "wild"},    {"upper.com", "wild"},    {"wild.com", "first"},
      {"x.b.wild.com", "first"}, {"unknown.org", "first"}, {"localhost", "first"},
  };
  for (const auto& [name, expected] : cases) {
    Connection c{host, client({.verify = false}), name};
    ASSERT_TRUE(c.stands()) << name;
    EXPECT_EQ(c.client.stream.tls()->peer_subject(), std::string{"CN="} + expected) << name;
    EXPECT_EQ(c.client.stream.tls()->verified_subject(), "") << "this client verifies nothing";
  }
  EXPECT_EQ(host->context_for(""), host->context_for(".wild.com"));
  EXPECT_EQ(host->context_for(""), host->context_for(std::string(1000, 'x')));
}

// ---- reloading --------------------------------------------------------------------------------

// New connections get the new certificate, those that exist go on as they began, and a bad file
// changes nothing.
TEST_F(TlsCertificates, ReloadsWithoutDisturbingConnections) {
  ServerPtr current = server();
  Connection before{current, client()};
  ASSERT_TRUE(before.stands());
  (void)authority_.issue("example", {.common_name = "renewed", .names = {"DNS:example.com"}});
  current = server();
  Connection after{current, client()};
  EXPECT_EQ(before.client.stream.tls()->peer_subject(), "CN=example");
  EXPECT_EQ(after.client.stream.tls()->peer_subject(), "CN=renewed");
  before.server.echoes = true;
  before.client.say("still here");
  EXPECT_TRUE(before.loop.until([&] { return before.client.received == "still here"; }));
  std::ofstream{example_.chain} << "rubbish";
  EXPECT_FALSE(TlsServer::load(server_options()));
  EXPECT_TRUE((Connection{current, client()}.stands()));
}

// A handshake that is under way when the configuration changes still finds its names.
TEST_F(TlsCertificates, AServerLivesAsLongAsItsConnections) {
  const Loop loop;
  Pair pair = connected_pair();
  Talker server_end{*loop};
  Talker client_end{*loop};
  server_end.open(std::move(pair.server));
  client_end.open(std::move(pair.client));
  ServerPtr current = server();
  ASSERT_TRUE(server_end.stream.start_tls(current));
  current.reset();
  ASSERT_TRUE(client_end.stream.start_tls(*client(), "example.com"));
  client_end.talk();
  EXPECT_TRUE(loop.until([&] { return server_end.established; }));
}

// ---- client certificates ----------------------------------------------------------------------

TEST_F(TlsCertificates, AsksClientsForCertificates) {
  const Authority stranger{folder_, "stranger"};
  TlsClientOptions known = client_options();
  known.certificate = files(authority_.issue("client", {.common_name = "alice, of acme"}));
  TlsClientOptions unknown = client_options();
  unknown.certificate = files(stranger.issue("mallory", {.common_name = "alice, of acme"}));
  TlsServerOptions options = server_options();
  options.client_ca_file = authority_.file();

  options.client_auth = ClientAuth::optional;
  const ServerPtr asking = server(options);
  Connection good{asking, client(known)};
  ASSERT_TRUE(good.stands()) << good.server_failure();
  EXPECT_EQ(good.server.stream.tls()->verified_subject(), "CN=alice\\, of acme");
  Connection none{asking, client()};
  ASSERT_TRUE(none.stands());
  EXPECT_EQ(none.server.stream.tls()->verified_subject(), "");
  EXPECT_THAT((Connection{asking, client(unknown)}.server_failure()), HasSubstr("rejected"));
  TlsClientOptions unnamed = client_options();
  unnamed.certificate = files(authority_.issue(
      "unnamed", {.names = {"IP:127.0.0.1", "URI:spiffe://acme/billing", "DNS:billing"}}));
  Connection service{asking, client(unnamed)};
  ASSERT_TRUE(service.stands()) << service.server_failure();
  EXPECT_EQ(service.server.stream.tls()->verified_subject(), "spiffe://acme/billing");

  // Whoever signs names of one kind must not smuggle in what reads as another.
  TlsClientOptions sly = client_options();
  sly.certificate = files(authority_.issue(
      "sly", {.names = {"DNS:CN=alice", "URI:CN=alice", "URI:CN=a://b", "DNS:billing"}}));
  Connection pretending{asking, client(sly)};
  ASSERT_TRUE(pretending.stands()) << pretending.server_failure();
  EXPECT_EQ(pretending.server.stream.tls()->verified_subject(), "billing");

  options.client_auth = ClientAuth::required;
  const ServerPtr demanding = server(options);
  EXPECT_TRUE((Connection{demanding, client(known)}.stands()));
  Connection missing{demanding, client()};
  EXPECT_FALSE(missing.server.established);
  EXPECT_THAT(missing.server_failure(), HasSubstr("did not return a certificate"));
}

// A file that is replaced while it is loaded is trusted as one of its versions, never as a mixture:
// the digest by which connections and sessions end is of the CAs that are trusted.
TEST_F(TlsCertificates, TrustsTheClientCasThatItsDigestIsOf) {
  const Authority one{folder_, "one"};
  const Authority other{folder_, "other"};
  TlsServerOptions options = server_options();
  options.client_auth = ClientAuth::required;
  const auto trust_of = [&](const Authority& authority) {
    options.client_ca_file = authority.file();
    return server(options)->client_trust();
  };
  const TlsServer::ClientTrust of_one = trust_of(one);
  const TlsServer::ClientTrust of_other = trust_of(other);
  ASSERT_NE(of_one, of_other);

  const std::string current = folder_.file("current.pem");
  std::filesystem::copy_file(one.file(), current);
  options.client_ca_file = current;
  std::jthread rotation{[&](const std::stop_token& stop) {
    const std::string next = folder_.file("next.pem");
    for (bool is_other = true; !stop.stop_requested(); is_other = !is_other) {
      std::filesystem::copy_file(is_other ? other.file() : one.file(), next);
      std::filesystem::rename(next, current);
    }
  }};
  for (int i = 0; i < 300; ++i) {
    const ServerPtr host = server(options);
    SSL_CTX* const context = host->context_for("");
    const bool is_one = host->client_trust() == of_one;
    ASSERT_TRUE(is_one || host->client_trust() == of_other);
    const std::string name = is_one ? "/CN=one" : "/CN=other";
    const auto text_of = [](const X509_NAME* subject) {
      std::array<char, 64> text{};
      return std::string{X509_NAME_oneline(subject, text.data(), text.size())};
    };
    const auto* const named = SSL_CTX_get_client_CA_list(context);
    ASSERT_EQ(sk_X509_NAME_num(named), 1);
    ASSERT_EQ(text_of(sk_X509_NAME_value(named, 0)), name);
    const auto* const trusted = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));
    ASSERT_EQ(sk_X509_OBJECT_num(trusted), 1);
    const X509* const ca = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(trusted, 0));
    ASSERT_EQ(text_of(X509_get_subject_name(ca)), name);
  }
}

// ---- files ------------------------------------------------------------------------------------

TEST_F(TlsCertificates, SaysWhichFileIsWrongAndHow) {
  const std::string rubbish = folder_.file("rubbish.pem");
  std::ofstream{rubbish} << "rubbish";
  const std::string broken = folder_.file("broken.pem");
  std::ofstream{broken} << "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  const std::string locked = folder_.file("locked.key");
  std::ofstream{locked} << "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIC\n"
                           "-----END ENCRYPTED PRIVATE KEY-----\n";
  const IssuedCertificate other = authority_.issue("other", {.common_name = "other"});
  const auto complaint = [](const std::string& chain, const std::string& key) {
    const auto result = TlsServer::load({.certificates = {{chain, key}}});
    return result ? "loaded" : result.error().text();
  };
  EXPECT_THAT(complaint(folder_.file("missing.pem"), example_.key),
              HasSubstr("missing.pem': No such"));
  EXPECT_THAT(complaint(example_.chain, folder_.file("missing.key")),
              HasSubstr("missing.key': No such"));
  EXPECT_THAT(complaint(rubbish, example_.key), HasSubstr("rubbish.pem' holds no certificate"));
  EXPECT_THAT(complaint(broken, example_.key), HasSubstr("certificate number 1 in"));
  EXPECT_THAT(complaint(example_.key, example_.key), HasSubstr("holds no certificate"));
  EXPECT_THAT(complaint(example_.chain, rubbish), HasSubstr("rubbish.pem' holds no private key"));
  EXPECT_THAT(complaint(example_.chain, locked), HasSubstr("needs a password"));
  EXPECT_THAT(complaint(example_.chain, other.key), HasSubstr("does not belong to"));
  EXPECT_THAT(TlsServer::load({}).error().text(), HasSubstr("without a certificate"));
  TlsServerOptions nobody = server_options();
  nobody.client_auth = ClientAuth::required;
  EXPECT_THAT(TlsServer::load(nobody).error().text(), HasSubstr("no CA is trusted"));
  EXPECT_THAT(TlsClient::load({.ca_file = rubbish}).error().text(), HasSubstr("rubbish.pem"));
}

}  // namespace
}  // namespace sluice::net
