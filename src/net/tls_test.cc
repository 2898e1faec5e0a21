// TLS between two streams on real sockets: bytes, ends, versions, protocols, sessions.
#include "net/lingering.h"
#include "net/tls_fixture.h"
#include "net/tls_session.h"
#include "support/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <utility>

namespace sluice::net {
namespace {

using namespace std::chrono_literals;
using sluice::testing::Authority;
using sluice::testing::IssuedCertificate;
using testing::ClientPtr;
using testing::connected_pair;
using testing::Loop;
using testing::Pair;
using testing::ServerPtr;
using testing::Talker;
using Connection = testing::TlsConnection;

class Tls : public testing::TlsFixture {};

std::string some_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * 31 + i / 251);
  return bytes;
}

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
  EXPECT_TRUE(c.server.stream.read({}).is_done());
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

  const crypto::OwnedContext old_context{SSL_CTX_new(TLS_client_method())};
  SSL_CTX_set_max_proto_version(old_context.get(), TLS1_2_VERSION);
  for (const bool accepted : {true, false}) {
    const Loop loop;
    Pair pair = connected_pair();
    Talker server_end{*loop};
    server_end.open(std::move(pair.server));
    ASSERT_TRUE(server_end.stream.start_tls(accepted ? server() : server(modern)));
    const crypto::OwnedSsl old{SSL_new(old_context.get())};
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
  crypto::OwnedContext context{SSL_CTX_new(TLS_client_method())};
  crypto::Owned<SSL_SESSION, SSL_SESSION_free> session{nullptr};
  std::string subject;  // that the server knows it by

  void present(const IssuedCertificate& own) const {
    if (SSL_CTX_use_certificate_chain_file(context.get(), own.chain.c_str()) != 1) std::abort();
    if (SSL_CTX_use_PrivateKey_file(context.get(), own.key.c_str(), SSL_FILETYPE_PEM) != 1) {
      std::abort();
    }
  }

  bool resumes(const ServerPtr& server) {
    const Loop loop;
    Pair pair = connected_pair();
    Talker server_end{*loop};
    server_end.open(std::move(pair.server));
    if (!server_end.stream.start_tls(server)) std::abort();
    const crypto::OwnedSsl ssl{SSL_new(context.get())};
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
    subject = server_end.stream.tls()->verified_subject();
    SSL_shutdown(ssl.get());
    return resumed;
  }
};

TEST_F(Tls, ResumesSessionsAlsoAfterAReloadWithTheSameTicketKey) {
  TlsServerOptions options = server_options();
  options.tickets = std::make_shared<const TicketKeys>();
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
  options.tickets = std::make_shared<const TicketKeys>();
  TicketClient ticket_client;
  EXPECT_FALSE(ticket_client.resumes(server(options)));
  options.client_auth = ClientAuth::optional;
  options.client_ca_file = authority_.file();
  EXPECT_FALSE(ticket_client.resumes(server(options)));
  EXPECT_TRUE(ticket_client.resumes(server(options)));
  const Authority other{folder_, "other-authority"};
  options.client_ca_file = other.file();
  EXPECT_FALSE(ticket_client.resumes(server(options)));
}

// OpenSSL looks at a certificate in full handshakes only. A client whose certificate has expired,
// or is not valid yet because the clock was wrong, has to present one again.
TEST_F(Tls, DoesNotResumeSessionsOfCertificatesThatAreNoLongerValid) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    ManualClock clock{SystemClock{}.now()};
    TlsServerOptions options = server_options();
    options.clock = &clock;
    options.client_auth = ClientAuth::required;
    options.client_ca_file = authority_.file();
    const ServerPtr host = server(options);
    TicketClient ticket_client;
    SSL_CTX_set_max_proto_version(ticket_client.context.get(), version);
    ticket_client.present(authority_.issue("ann", {.common_name = "ann"}));  // for one more day
    EXPECT_FALSE(ticket_client.resumes(host));
    EXPECT_TRUE(ticket_client.resumes(host)) << version;
    EXPECT_EQ(ticket_client.subject, "CN=ann") << "also of a resumed session";
    clock.advance(2 * 24h);
    EXPECT_FALSE(ticket_client.resumes(host)) << version;
    clock.step_wall(-2 * 24h);
    EXPECT_TRUE(ticket_client.resumes(host)) << version;
    clock.step_wall(-3 * 24h);
    EXPECT_FALSE(ticket_client.resumes(host)) << version;
  }
}

// A key decrypts for one period behind the one in which it encrypted; a ticket lives as long.
TEST_F(Tls, TicketsOutliveOneRotationOfTheirKey) {
  const auto tickets = std::make_shared<TicketKeys>();
  TlsServerOptions options = server_options();
  options.tickets = tickets;
  const ServerPtr host = server(options);
  TicketClient once;
  TicketClient twice;
  EXPECT_FALSE(once.resumes(host));
  EXPECT_FALSE(twice.resumes(host));
  EXPECT_EQ(SSL_SESSION_get_ticket_lifetime_hint(once.session.get()),
            std::chrono::seconds{TicketKeys::kPeriod}.count());
  tickets->rotate();
  EXPECT_TRUE(once.resumes(host));
  tickets->rotate();
  EXPECT_TRUE(once.resumes(host)) << "it got a new ticket";
  EXPECT_FALSE(twice.resumes(host)) << "its key is forgotten";
}

TEST_F(Tls, TicketKeysRotateByTime) {
  ManualClock clock{SystemClock{}.now()};
  const auto loop = EventLoop::create(clock).value();
  const TicketRotation rotation{*loop, std::make_shared<TicketKeys>()};
  TlsServerOptions options = server_options();
  options.tickets = rotation.keys();
  const ServerPtr host = server(options);
  TicketClient ticket_client;
  EXPECT_FALSE(ticket_client.resumes(host));
  for (int period = 0; period < 3; ++period) {
    clock.advance(TicketKeys::kPeriod + 1s);
    loop->turn(0s);
    EXPECT_TRUE(ticket_client.resumes(host)) << period;
  }
  for (int period = 0; period < 2; ++period) {
    clock.advance(TicketKeys::kPeriod + 1s);
    loop->turn(0s);
  }
  EXPECT_FALSE(ticket_client.resumes(host));
}

TEST_F(Tls, TellsWhenThePeersCertificateExpires) {
  Connection c{server(), client()};
  ASSERT_TRUE(c.stands());
  const WallTime now = SystemClock{}.now().wall();
  const Nanos left = c.client.stream.tls()->peer_valid_until() - now;
  EXPECT_GT(left, 23h);
  EXPECT_LE(left, 24h);
  EXPECT_EQ(c.server.stream.tls()->peer_valid_until(), kWallTimeEnd) << "it presented none";
}

}  // namespace
}  // namespace sluice::net
