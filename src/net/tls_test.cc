// TLS between two streams on real sockets, with certificates of our own.
#include "net/lingering.h"
#include "net/net_fixture.h"
#include "net/tls_client.h"
#include "net/tls_server.h"
#include "support/certificates.h"
#include "support/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace sluice::net {
namespace {

using namespace std::chrono_literals;
using sluice::testing::Authority;
using sluice::testing::CertificateWish;
using sluice::testing::IssuedCertificate;
using sluice::testing::TempFolder;
using testing::connected_pair;
using ::testing::HasSubstr;
using testing::Loop;
using testing::Pair;
using testing::Talker;
using ServerPtr = std::shared_ptr<const TlsServer>;
using ClientPtr = std::shared_ptr<const TlsClient>;

CertificateFiles files(const IssuedCertificate& issued) { return {issued.chain, issued.key}; }

std::string some_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * 31 + i / 251);
  return bytes;
}

class Tls : public ::testing::Test {
 protected:
  TempFolder folder_;
  Authority authority_{folder_, "authority"};
  IssuedCertificate example_ =
      authority_.issue("example", {.common_name = "example", .names = {"DNS:example.com"}});

  [[nodiscard]] TlsServerOptions server_options() const {
    return {.certificates = {files(example_)}};
  }
  [[nodiscard]] TlsClientOptions client_options() const { return {.ca_file = authority_.file()}; }
  static ServerPtr server(const TlsServerOptions& options) {
    return TlsServer::load(options).value();
  }
  static ClientPtr client(const TlsClientOptions& options) {
    return TlsClient::load(options).value();
  }
  [[nodiscard]] ServerPtr server() const { return server(server_options()); }
  [[nodiscard]] ClientPtr client() const { return client(client_options()); }
};

// Both ends of a connection under TLS, and the handshake gone as far as it goes.
struct Connection {
  Loop loop;
  Talker client{*loop};
  Talker server{*loop};

  Connection(ServerPtr with, const ClientPtr& as, const std::string& host = "example.com",
             Pair pair = connected_pair()) {
    server.open(std::move(pair.server));
    client.open(std::move(pair.client));
    if (!server.stream.start_tls(std::move(with))) std::abort();
    if (!client.stream.start_tls(*as, host)) std::abort();
    client.talk();
    (void)loop.until([&] {
      return (client.established || client.is_over()) && (server.established || server.is_over());
    });
  }
  [[nodiscard]] bool stands() const {
    return client.established && server.established && !client.failure && !server.failure;
  }
  [[nodiscard]] std::string client_failure() const {
    return client.failure ? client.failure->text() : "none";
  }
  [[nodiscard]] std::string server_failure() const {
    return server.failure ? server.failure->text() : "none";
  }
};

TEST_F(Tls, CarriesBytesBothWays) {
  Connection c{server(), client()};
  ASSERT_TRUE(c.stands()) << c.client_failure() << c.server_failure();
  c.server.echoes = true;
  c.client.say("hello");
  ASSERT_TRUE(c.loop.until([&] { return c.client.received == "hello"; }));
  EXPECT_EQ(c.server.stream.tls()->version(), "TLSv1.3");
  EXPECT_EQ(c.server.stream.tls()->protocol(), "http/1.1");
  EXPECT_EQ(c.client.stream.tls()->protocol(), "http/1.1");
  EXPECT_EQ(c.server.stream.tls()->server_name(), "example.com");
  EXPECT_EQ(c.server.stream.tls()->peer_subject(), "");
  EXPECT_EQ(c.client.stream.tls()->peer_subject(), "CN=example");
}

// Records are cut at every place and writes block half way: what is offered again fits.
TEST_F(Tls, CarriesMuchThroughLittle) {
  Connection c{server(), client(), "example.com", connected_pair(4096, 4096)};
  ASSERT_TRUE(c.stands());
  const std::string message = some_bytes(2'000'000);
  c.server.echoes = true;
  c.server.read_size = 1000;
  c.client.say(message);
  EXPECT_FALSE(c.client.to_send.empty());
  ASSERT_TRUE(c.loop.until([&] {
    return c.client.received.size() == message.size() || c.client.failure || c.server.failure;
  }));
  EXPECT_EQ(c.client_failure(), "none");
  EXPECT_TRUE(c.client.received == message);
}

// Bytes that OpenSSL holds make no event: whoever stopped reading has to be able to ask.
TEST_F(Tls, KnowsOfBytesThatWereReceivedAndNotRead) {
  Connection c{server(), client()};
  c.server.listens = false;
  c.client.say("12345678");
  ASSERT_TRUE(c.loop.until([&] { return c.server.stream.can_read(); }));
  std::array<char, 4> room{};
  ASSERT_EQ(c.server.stream.read(room).bytes, 4U);
  EXPECT_TRUE(c.server.stream.can_read());
  ASSERT_EQ(c.server.stream.read(room).bytes, 4U);
  EXPECT_TRUE(c.server.stream.read(room).is_blocked());
  EXPECT_FALSE(c.server.stream.can_read());
}

TEST_F(Tls, ClosesInOrderAndStillCarriesTheAnswer) {
  Connection c{server(), client()};
  c.client.say("question");
  c.client.stream.finish_writing();
  ASSERT_TRUE(c.loop.until([&] { return c.server.ended; }));
  EXPECT_EQ(c.server.received, "question");
  c.server.say("answer");
  c.server.stream.close();
  ASSERT_TRUE(c.loop.until([&] { return c.client.is_over(); }));
  EXPECT_TRUE(c.client.ended) << c.client_failure();
  EXPECT_EQ(c.client.received, "answer");
}

// Somebody in between could cut a connection; only TLS itself can say that it ended.
TEST_F(Tls, ACutConnectionIsAFailureNotTheEnd) {
  Connection c{server(), client()};
  c.client.say("half a mess");
  ASSERT_TRUE(c.loop.until([&] { return c.server.received == "half a mess"; }));
  ::shutdown(c.client.stream.release().get(), SHUT_RDWR);
  ASSERT_TRUE(c.loop.until([&] { return c.server.is_over(); }));
  EXPECT_FALSE(c.server.failure) << "release says farewell";

  Connection cut{server(), client()};
  cut.client.stream.reset();
  ASSERT_TRUE(cut.loop.until([&] { return cut.server.is_over(); }));
  EXPECT_EQ(cut.server_failure(), "Connection reset by peer");
}

TEST_F(Tls, ABareEndIsATruncation) {
  const Loop loop;
  Pair pair = connected_pair();
  Talker server_end{*loop};
  server_end.open(std::move(pair.server));
  ASSERT_TRUE(server_end.stream.start_tls(server()));
  ASSERT_EQ(::shutdown(pair.client.get(), SHUT_WR), 0);
  ASSERT_TRUE(loop.until([&] { return server_end.is_over(); }));
  ASSERT_TRUE(server_end.failure);
  EXPECT_EQ(server_end.failure->kind, IoFailure::Kind::truncated);
}

TEST_F(Tls, PlainTextIsRefused) {
  const Loop loop;
  Pair pair = connected_pair();
  Talker server_end{*loop};
  server_end.open(std::move(pair.server));
  ASSERT_TRUE(server_end.stream.start_tls(server()));
  const std::string request = "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n";
  ASSERT_GT(::send(pair.client.get(), request.data(), request.size(), 0), 0);
  ASSERT_TRUE(loop.until([&] { return server_end.is_over(); }));
  EXPECT_EQ(server_end.failure->text(), "TLS: http request");
}

TEST_F(Tls, LingersLikeAPlainConnection) {
  Connection c{server(), client()};
  LingeringCloser closer{*c.loop};
  c.server.listens = false;
  c.client.listens = false;
  c.client.say(some_bytes(300'000));
  ASSERT_TRUE(c.loop.until([&] { return c.server.stream.can_read(); }));
  c.server.say("429, enough");
  closer.close(c.server.stream);
  ASSERT_TRUE(c.loop.until([&] { return c.client.to_send.empty(); }));
  c.client.listens = true;
  c.client.talk();
  ASSERT_TRUE(c.loop.until([&] { return c.client.is_over(); }));
  EXPECT_TRUE(c.client.ended) << c.client_failure();
  EXPECT_EQ(c.client.received, "429, enough");
}

// ---- versions, protocols, sessions ------------------------------------------------------------

TEST_F(Tls, RefusesVersionsBelowTheMinimum) {
  TlsServerOptions modern = server_options();
  modern.minimum = TlsVersion::tls1_3;
  EXPECT_TRUE((Connection{server(modern), client()}.stands()));

  const OwnedContext old_context{SSL_CTX_new(TLS_client_method())};
  SSL_CTX_set_max_proto_version(old_context.get(), TLS1_2_VERSION);
  for (const bool accepted : {true, false}) {
    const Loop loop;
    Pair pair = connected_pair();
    Talker server_end{*loop};
    server_end.open(std::move(pair.server));
    ASSERT_TRUE(server_end.stream.start_tls(accepted ? server() : server(modern)));
    const OwnedSsl old{SSL_new(old_context.get())};
    SSL_set_fd(old.get(), pair.client.get());
    ASSERT_TRUE(loop.until([&] {
      (void)SSL_connect(old.get());
      return server_end.established || server_end.is_over();
    }));
    EXPECT_EQ(server_end.established, accepted);
    EXPECT_EQ(server_end.stream.tls()->version(), accepted ? "TLSv1.2" : "");
  }
}

TEST_F(Tls, RefusesClientsThatSpeakNoneOfItsProtocols) {
  TlsClientOptions other = client_options();
  other.protocols = {"spdy/3"};
  EXPECT_FALSE((Connection{server(), client(other)}.stands()));
  other.protocols = {};
  Connection without{server(), client(other)};
  EXPECT_TRUE(without.stands()) << "who asks for none gets what there is";
  EXPECT_EQ(without.server.stream.tls()->protocol(), "");
  TlsServerOptions misspelt = server_options();
  misspelt.protocols = {""};
  EXPECT_FALSE(TlsServer::load(misspelt));
}

// A client of OpenSSL's own that presents the ticket it got before, if any.
struct TicketClient {
  OwnedContext context{SSL_CTX_new(TLS_client_method())};
  Owned<SSL_SESSION, SSL_SESSION_free> session{nullptr};

  bool resumes(const ServerPtr& server) {
    const Loop loop;
    Pair pair = connected_pair();
    Talker server_end{*loop};
    server_end.open(std::move(pair.server));
    if (!server_end.stream.start_tls(server)) std::abort();
    const OwnedSsl ssl{SSL_new(context.get())};
    SSL_set_fd(ssl.get(), pair.client.get());
    SSL_set_tlsext_host_name(ssl.get(), "example.com");
    if (session != nullptr) SSL_set_session(ssl.get(), session.get());
    std::array<char, 1> byte{};
    server_end.to_send = "x";
    const bool heard = loop.until([&] {
      (void)SSL_connect(ssl.get());
      return SSL_read(ssl.get(), byte.data(), 1) == 1;
    });
    if (!heard) std::abort();
    session.reset(SSL_get1_session(ssl.get()));
    const bool resumed = server_end.stream.tls()->is_resumed();
    SSL_shutdown(ssl.get());
    return resumed;
  }
};

TEST_F(Tls, ResumesSessionsAlsoAfterAReloadWithTheSameTicketKey) {
  TlsServerOptions options = server_options();
  options.ticket_key = TicketKey::random();
  TicketClient ticket_client;
  const ServerPtr first = server(options);
  EXPECT_FALSE(ticket_client.resumes(first));
  EXPECT_TRUE(ticket_client.resumes(first));
  EXPECT_TRUE(ticket_client.resumes(server(options)));
  EXPECT_FALSE(ticket_client.resumes(server())) << "another key";
}

// Whoever was let in under other rules about clients has to show its certificate again.
TEST_F(Tls, DoesNotResumeSessionsThatBeganUnderOtherRules) {
  TlsServerOptions options = server_options();
  options.ticket_key = TicketKey::random();
  TicketClient ticket_client;
  EXPECT_FALSE(ticket_client.resumes(server(options)));
  options.client_certificates = ClientCertificates::request;
  options.client_ca_file = authority_.file();
  EXPECT_FALSE(ticket_client.resumes(server(options)));
  EXPECT_TRUE(ticket_client.resumes(server(options)));
  const Authority other{folder_, "other-authority"};
  options.client_ca_file = other.file();
  EXPECT_FALSE(ticket_client.resumes(server(options)));
}

// ---- whom a client believes -------------------------------------------------------------------

TEST_F(Tls, ClientsRefuseCertificatesThatAreNotGood) {
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

TEST_F(Tls, ClientsCheckAddressesToo) {
  const IssuedCertificate by_address =
      authority_.issue("address", {.common_name = "x", .names = {"IP:127.0.0.1"}});
  const ServerPtr host = server({.certificates = {files(by_address)}});
  EXPECT_TRUE((Connection{host, client(), "127.0.0.1"}.stands()));
  EXPECT_FALSE((Connection{host, client(), "127.0.0.2"}.stands()));
}

TEST_F(Tls, ClientsTrustTheSystemsAuthoritiesByDefaultAndNobodyElse) {
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

TEST_F(Tls, PresentsTheCertificateOfTheNameThatIsAskedFor) {
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
  }
  EXPECT_EQ(host->context_for(""), host->context_for(".wild.com"));
  EXPECT_EQ(host->context_for(""), host->context_for(std::string(1000, 'x')));
}

// ---- reloading --------------------------------------------------------------------------------

// New connections get the new certificate, those that exist go on as they began, and a bad file
// changes nothing.
TEST_F(Tls, ReloadsWithoutDisturbingConnections) {
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
TEST_F(Tls, AServerLivesAsLongAsItsConnections) {
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

TEST_F(Tls, AsksClientsForCertificates) {
  const Authority stranger{folder_, "stranger"};
  TlsClientOptions known = client_options();
  known.certificate = files(authority_.issue("client", {.common_name = "alice, of acme"}));
  TlsClientOptions unknown = client_options();
  unknown.certificate = files(stranger.issue("mallory", {.common_name = "alice, of acme"}));
  TlsServerOptions options = server_options();
  options.client_ca_file = authority_.file();

  options.client_certificates = ClientCertificates::request;
  const ServerPtr asking = server(options);
  Connection good{asking, client(known)};
  ASSERT_TRUE(good.stands()) << good.server_failure();
  EXPECT_EQ(good.server.stream.tls()->peer_subject(), "CN=alice\\, of acme");
  Connection none{asking, client()};
  ASSERT_TRUE(none.stands());
  EXPECT_EQ(none.server.stream.tls()->peer_subject(), "");
  EXPECT_THAT((Connection{asking, client(unknown)}.server_failure()), HasSubstr("refused"));

  options.client_certificates = ClientCertificates::require;
  const ServerPtr demanding = server(options);
  EXPECT_TRUE((Connection{demanding, client(known)}.stands()));
  Connection missing{demanding, client()};
  EXPECT_FALSE(missing.server.established);
  EXPECT_THAT(missing.server_failure(), HasSubstr("did not return a certificate"));
}

// ---- files ------------------------------------------------------------------------------------

TEST_F(Tls, SaysWhichFileIsWrongAndHow) {
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
  nobody.client_certificates = ClientCertificates::require;
  EXPECT_THAT(TlsServer::load(nobody).error().text(), HasSubstr("nobody vouches"));
  EXPECT_THAT(TlsClient::load({.ca_file = rubbish}).error().text(), HasSubstr("rubbish.pem"));
}

}  // namespace
}  // namespace sluice::net
