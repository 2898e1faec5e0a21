// How long the gateway waits for whom, and what connections cost it: one worker between clients and
// a server that do as they are told, on a clock that stands still.
#include "app/server/worker_fixture.h"
#include "frontend/gateway/buffer_pool.h"
#include "frontend/gateway/gateway.h"
#include "net/tls_client.h"
#include "support/certificates.h"
#include "support/temp_folder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <malloc.h>
#include <memory>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {
int memory_returned = 0;  // so often
}

// Replaces that of the C library, to count the calls.
extern "C" int malloc_trim(std::size_t /*pad*/) noexcept {
  ++memory_returned;
  return 0;
}

namespace sluice::app {
namespace {

using namespace std::chrono_literals;
using net::testing::Talker;
using net::testing::turn_until;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

// Reads what it is told to, and answers when it is told to.
class ToldServer {
 public:
  // The listener is there before, since the configuration names it.
  ToldServer(net::EventLoop& loop, net::Listener listener)
      : loop_(loop), listener_(std::move(listener)) {
    const int small = 65536;
    ::setsockopt(listener_.descriptor(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    if (!acceptor_.start(loop, listener_.descriptor())) std::abort();
  }

  [[nodiscard]] std::size_t heard() const { return heard_.size(); }
  [[nodiscard]] const std::string& text() const { return heard_; }
  // At most so many bytes of what has come.
  void read(std::size_t bytes) {
    std::string buffer(bytes, '\0');
    const ssize_t got = ::recv(connection_.get(), buffer.data(), bytes, MSG_DONTWAIT);
    if (got > 0) heard_.append(buffer, 0, static_cast<std::size_t>(got));
  }
  // So many, however long it takes the system to bring them; no time of the clock passes.
  [[nodiscard]] bool take(std::size_t bytes) {
    const std::size_t goal = heard() + bytes;
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (heard() < goal && std::chrono::steady_clock::now() < deadline) {
      read(goal - heard());
      loop_.turn(0s);
    }
    return heard() == goal;
  }
  void answer(std::string_view text) {
    if (::send(connection_.get(), text.data(), text.size(), 0) < 0) std::abort();
  }
  [[nodiscard]] bool is_connected() const { return static_cast<bool>(connection_); }

 private:
  void on_accepted(net::Accepted accepted) { connection_ = std::move(accepted.descriptor); }
  // Those of the gateway are not ours.
  void on_lack(bool& freed) {
    freed = static_cast<bool>(spare_);
    spare_ = FileDescriptor{};
  }

  net::EventLoop& loop_;
  net::Listener listener_;
  net::Acceptor acceptor_{net::Callback<net::Accepted>::to<&ToldServer::on_accepted>(*this),
                          net::Callback<bool&>::to<&ToldServer::on_lack>(*this)};
  FileDescriptor spare_{::dup(0)};
  FileDescriptor connection_;
  std::string heard_;
};

class GatewayConnections : public ::testing::Test {
 protected:
  static constexpr std::string_view kFile = R"(
listen: {{gateway: '127.0.0.1:0'}}
state: {{memory: 4MiB}}
upstreams: {{app: {{servers: ['127.0.0.1:{}'], {}}}}}
routes: [{{path: '/**', upstream: app}}]
gateway: {{{}}}
rules: [{}]
)";

  explicit GatewayConnections(std::string_view gateway = "keepalive_timeout: 1h",
                              std::string_view upstream = "keepalive_connections: 0",
                              std::string_view rule = "{name: r, per: ip, limit: 100000/1s}")
      : worker_(fmt::format(kFile, port_, upstream, gateway, rule), clock_),
        app_(*worker_.loop, std::move(of_app_)) {}

  std::unique_ptr<Talker> connect(std::string_view from = "127.0.0.1") {
    return fixture::connect_to(*worker_.loop, worker_.endpoint, from);
  }
  std::vector<std::unique_ptr<Talker>> connect(std::size_t count) {
    std::vector<std::unique_ptr<Talker>> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(connect());
    return all;
  }
  // What has happened on sockets takes effect; no time passes.
  void settle() {
    for (int i = 0; i < 8; ++i) worker_.loop->turn(0s);
  }
  void pass(Nanos time) {
    clock_.advance(time);
    settle();
  }
  [[nodiscard]] bool comes(const Talker& client, std::string_view text) {
    return turn_until(*worker_.loop,
                      [&] { return client.received.find(text) != std::string::npos; });
  }
  [[nodiscard]] bool has_connections(std::uint64_t count) {
    return turn_until(*worker_.loop, [&] { return worker_.report().connections == count; });
  }

  ManualClock clock_{
      {.mono = MonoTime{1h}, .wall_offset = SystemClock{}.now().wall() - WallTime{1h}}};
  net::Listener of_app_ = net::listen_on(net::testing::free_port()).value();
  const std::uint16_t port_ = of_app_.endpoint().port;
  fixture::OneWorker worker_;
  ToldServer app_;
};

// ---- uploads ----------------------------------------------------------------------------------

class Uploads : public GatewayConnections {
 protected:
  Uploads()
      : GatewayConnections("upload_rate_interval: 10s",
                           "send_timeout: 8s, response_timeout: 6s, keepalive_connections: 0",
                           "{name: one, per: ip, limit: {max_concurrent: 1, slot_ttl: 1h}}") {}

  static constexpr std::size_t kBytes = 5 << 20;
  static std::string post(std::size_t bytes) {
    return fmt::format("POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: {}\r\n\r\n", bytes);
  }
};

// The system's buffers hold megabytes of it: for a long time nothing more can be written, and in
// the end all of it is, while the server still has most of it to come.
TEST_F(Uploads, AServerMayTakeARequestAsSlowlyAsItLikes) {
  const auto client = connect();
  client->say(post(kBytes) + std::string(kBytes, 'x'));
  ASSERT_TRUE(turn_until(*worker_.loop, [&] { return app_.is_connected(); }));
  int seconds = 0;
  for (; app_.heard() < kBytes; ++seconds) {
    ASSERT_TRUE(app_.take(std::min<std::size_t>(40'000, kBytes - app_.heard())));
    pass(1s);
    ASSERT_EQ(client->received, "") << "after " << seconds << " s, " << app_.heard() << " bytes";
  }
  EXPECT_GT(seconds, 100);
  app_.read(kBytes);  // what is left of it
  pass(4s);
  EXPECT_EQ(client->received, "") << "the timeout for the answer begins with the last byte";
  app_.answer(kOk);
  EXPECT_TRUE(comes(*client, "200 OK"));
}

TEST_F(Uploads, AServerThatTakesNothingMoreFails) {
  const auto client = connect();
  client->say(post(kBytes) + std::string(kBytes, 'x'));
  ASSERT_TRUE(turn_until(*worker_.loop, [&] { return app_.is_connected(); }));
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(app_.take(40'000));
    pass(1s);
  }
  pass(1s);
  for (int i = 0; i < 6; ++i) pass(1s);
  EXPECT_EQ(client->received, "");
  for (int i = 0; i < 4; ++i) pass(1s);
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 504"));
  EXPECT_THAT(client->received, HasSubstr("the server does not take the request"));
  EXPECT_EQ(worker_.report().upstreams.at(0).servers.at(0).failures, 1U);
}

// All of it is in the system's buffers, and stays there.
TEST_F(Uploads, AServerThatLeavesTheEndOfARequestUntakenFails) {
  const auto client = connect();
  client->say(post(200'000) + std::string(200'000, 'x'));
  ASSERT_TRUE(turn_until(*worker_.loop, [&] { return app_.is_connected(); }));
  for (int i = 0; i < 7; ++i) pass(1s);
  EXPECT_EQ(client->received, "");
  for (int i = 0; i < 3; ++i) pass(1s);
  EXPECT_THAT(client->received, HasSubstr("the server does not take the request"));
}

// Its bytes were in time, and then nothing came: not a second interval later.
TEST_F(Uploads, AClientThatIsGoneHoldsItsSlotForOneInterval) {
  const auto gone = connect();
  gone->say(post(kBytes) + std::string(10'000, 'x'));
  ASSERT_TRUE(turn_until(*worker_.loop, [&] { return app_.is_connected(); }));
  pass(6s);
  gone->say(std::string(10'000, 'x'));
  settle();
  for (int i = 0; i < 9; ++i) pass(1s);
  const auto early = connect();
  early->say(kGet);
  EXPECT_TRUE(comes(*early, "429")) << "15 s after it began, 9 s after its last bytes";
  pass(1s);
  pass(10ms);
  EXPECT_TRUE(comes(*gone, "408"));
  const auto next = connect();
  next->say(kGet);
  ASSERT_TRUE(turn_until(*worker_.loop, [&] {
    app_.read(4096);
    return app_.text().find("GET / ") != std::string::npos;
  }));
  app_.answer(kOk);
  EXPECT_TRUE(comes(*next, "200 OK"));
}

// The time that the server kept the client waiting is not the client's.
TEST_F(Uploads, AClientIsNotLateForASlowServer) {
  const auto client = connect();
  client->say(post(kBytes + 10) + std::string(kBytes, 'x'));
  ASSERT_TRUE(turn_until(*worker_.loop, [&] { return app_.is_connected(); }));
  while (!client->to_send.empty()) {
    ASSERT_TRUE(app_.take(40'000));
    pass(1s);
  }
  ASSERT_TRUE(app_.take(kBytes - app_.heard()));
  settle();
  pass(9s);
  EXPECT_EQ(client->received, "") << "it waits for the last ten bytes";
  client->say(std::string(10, 'x'));
  settle();
  app_.answer(kOk);
  EXPECT_TRUE(comes(*client, "200 OK"));
}

// ---- Via --------------------------------------------------------------------------------------

class Hop : public GatewayConnections, public ::testing::WithParamInterface<bool> {
 protected:
  Hop() : GatewayConnections(GetParam() ? "via: true" : "via: false") {}
};
INSTANTIATE_TEST_SUITE_P(Both, Hop, ::testing::Bool());

TEST_P(Hop, IsNamedToBothSidesUnlessItIsNotToBe) {
  const auto client = connect();
  client->say(kGet);
  ASSERT_TRUE(turn_until(*worker_.loop, [&] {
    if (app_.is_connected()) app_.read(4096);
    return app_.heard() > 0;
  }));
  app_.answer(kOk);
  ASSERT_TRUE(comes(*client, "200 OK"));
  EXPECT_EQ(app_.text().find("via: 1.1 sluice-") != std::string::npos, GetParam()) << app_.text();
  EXPECT_EQ(client->received.find("via: 1.1 sluice-") != std::string::npos, GetParam());
}

// ---- memory -----------------------------------------------------------------------------------

class Flood : public GatewayConnections {
 protected:
  // Half-sent headers from so many clients at once, which then leave.
  void come_and_go(std::size_t count) {
    const auto clients = connect(count);
    for (const auto& client : clients) client->say("GET / HTTP/1.1\r\nHost: a.");
    ASSERT_TRUE(has_connections(count));
    settle();
  }
  void trim() {
    ASSERT_TRUE(has_connections(0));
    for (int i = 0; i < 3; ++i) pass(gateway::Gateway::kTrimEvery + 10ms);
  }
};

TEST_F(Flood, OfHalfSentHeadsLeavesNoMemoryBehind) {
  come_and_go(300);
  ASSERT_TRUE(has_connections(0));
  EXPECT_GE(worker_.report().spares, 600U);
  trim();
  EXPECT_LE(worker_.report().spares, 2 * gateway::SparePool<int>::kSparesMin);
}

// malloc_trim() stalls the loop: not after a small flood, and at most once a minute.
TEST_F(Flood, ReturnsItsMemoryToTheSystemIfItWasMuch) {
  const int before = memory_returned;
  const auto flood = [this] {
    come_and_go(300);
    trim();
  };
  flood();
  EXPECT_EQ(memory_returned - before, 0);
  flood();
  EXPECT_EQ(memory_returned - before, 1) << "both together are worth it";
  flood();
  flood();
  EXPECT_EQ(memory_returned - before, 1) << "less than a minute later";
  pass(30s);
  EXPECT_EQ(memory_returned - before, 2);
}

// ---- more connections than there may be -------------------------------------------------------

class Crowd : public GatewayConnections {
 protected:
  explicit Crowd(std::string_view gateway =
                     "keepalive_timeout: 1h, header_timeout: 1h, max_connections_per_worker: 20")
      : GatewayConnections(gateway) {}

  // A request on a connection of its own, to its end.
  [[nodiscard]] bool is_served(Talker& client) {
    client.received.clear();
    client.say(kGet);
    const std::size_t before = app_.heard();
    const bool is_asked = turn_until(*worker_.loop, [&] {
      if (app_.is_connected()) app_.read(4096);
      return app_.heard() > before || client.is_over();
    });
    if (!is_asked || client.is_over()) return false;
    app_.answer(kOk);
    return comes(client, "200 OK");
  }
};

TEST_F(Crowd, IdleConnectionsMakeRoomTheOldestFirst) {
  const auto clients = connect(20);
  ASSERT_TRUE(has_connections(20));
  const auto connections_rejected = connect();
  ASSERT_TRUE(turn_until(*worker_.loop, [&] { return connections_rejected->is_over(); }))
      << "none is idle for long enough";
  pass(500ms);
  ASSERT_TRUE(is_served(*clients[0])) << "which makes it the youngest";
  pass(600ms);
  const auto late = connect();
  EXPECT_TRUE(is_served(*late));
  EXPECT_TRUE(clients[1]->is_over());
  EXPECT_FALSE(clients[0]->is_over());
  EXPECT_FALSE(clients[2]->is_over());
  EXPECT_EQ(worker_.report().evicted, 1U);
  EXPECT_EQ(worker_.report().connections_rejected, 1U);
  EXPECT_EQ(worker_.report().connections, 20U);
}

// The loop tells of the newcomer first, and of the request on the oldest connection behind it.
TEST_F(Crowd, ARequestThatHasArrivedIsNotLost) {
  const auto clients = connect(20);
  ASSERT_TRUE(has_connections(20));
  pass(2s);
  const auto late = connect();
  clients[0]->say(kGet);
  ASSERT_TRUE(turn_until(*worker_.loop, [&] {
    if (app_.is_connected()) app_.read(4096);
    return app_.heard() > 0 || clients[0]->is_over();
  }));
  ASSERT_FALSE(clients[0]->is_over());
  app_.answer(kOk);
  EXPECT_TRUE(comes(*clients[0], "200 OK"));
  EXPECT_TRUE(clients[1]->is_over()) << "the next one makes room";
  EXPECT_EQ(worker_.report().evicted, 1U);
}

// However long others have been idle.
TEST_F(Crowd, AnAddressWithManyConnectionsMakesRoomFirst) {
  const auto few = connect(5);
  ASSERT_TRUE(has_connections(5));
  pass(500ms);
  std::vector<std::unique_ptr<Talker>> many;
  for (int i = 0; i < 15; ++i) many.push_back(connect("127.0.0.2"));
  ASSERT_TRUE(has_connections(20));
  pass(2s);
  const auto late = connect();
  EXPECT_TRUE(is_served(*late));
  EXPECT_TRUE(many.front()->is_over());
  EXPECT_FALSE(few.front()->is_over());
  EXPECT_EQ(worker_.report().evicted, 1U);
}

// Requests in flight are nobody's room.
TEST_F(Crowd, ARequestInFlightIsNotIdle) {
  const auto clients = connect(20);
  ASSERT_TRUE(has_connections(20));
  for (const auto& client : clients) client->say("GET / HT");
  pass(2s);
  const auto late = connect();
  ASSERT_TRUE(turn_until(*worker_.loop, [&] { return late->is_over(); }));
  EXPECT_EQ(worker_.report().evicted, 0U);
  EXPECT_EQ(worker_.report().connections, 20U);
}

class WithoutDescriptors : public Crowd {
 protected:
  WithoutDescriptors() : Crowd("keepalive_timeout: 1h, header_timeout: 1h") {}
  ~WithoutDescriptors() override { (void)::setrlimit(RLIMIT_NOFILE, &before_); }

  // None beyond those that are open now.
  void allow_no_more() {
    if (::getrlimit(RLIMIT_NOFILE, &before_) != 0) std::abort();
    const FileDescriptor next{::dup(0)};
    const rlimit none{.rlim_cur = static_cast<rlim_t>(next.get()), .rlim_max = before_.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &none) != 0) std::abort();
  }

  rlimit before_{};
};

// For the way to the server, where the client has its connection already.
TEST_F(WithoutDescriptors, IdleConnectionsMakeRoomForTheServer) {
  const auto clients = connect(20);
  ASSERT_TRUE(has_connections(20));
  ASSERT_TRUE(is_served(*clients[0]));  // sanitizers open files when they meet a class first
  pass(2s);
  allow_no_more();
  EXPECT_TRUE(is_served(*clients[19]));
  EXPECT_EQ(worker_.report().evicted, 1U);
}

// Both the connection and the way to the server need one.
TEST_F(WithoutDescriptors, IdleConnectionsMakeRoom) {
  const auto clients = connect(20);
  ASSERT_TRUE(has_connections(20));
  ASSERT_TRUE(is_served(*clients[0]));  // sanitizers open files when they meet a class first
  pass(2s);
  FileDescriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  allow_no_more();
  const auto address = net::SocketAddress::of(worker_.endpoint.address, worker_.endpoint.port);
  (void)::connect(socket.get(), address.get(), address.size());
  Talker late{*worker_.loop};
  late.open(std::move(socket));
  EXPECT_TRUE(is_served(late));
  EXPECT_GE(worker_.report().evicted, 2U);
  EXPECT_EQ(worker_.report().connections_rejected, 0U);
}

// A count that metrics follow never goes back.
TEST_F(WithoutDescriptors, RejectedConnectionsAreCountedAfterTheListenersAreClosed) {
  const auto client = connect();
  ASSERT_TRUE(is_served(*client));  // sanitizers open files when they meet a class first
  FileDescriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  allow_no_more();
  const auto address = net::SocketAddress::of(worker_.endpoint.address, worker_.endpoint.port);
  (void)::connect(socket.get(), address.get(), address.size());
  ASSERT_TRUE(
      turn_until(*worker_.loop, [&] { return worker_.report().connections_rejected == 1; }));
  worker_.drain();
  worker_.loop->turn(0s);
  EXPECT_EQ(worker_.report().connections_rejected, 1U);
}

// ---- TLS --------------------------------------------------------------------------------------

struct TlsFiles {
  sluice::testing::TempFolder folder;
  sluice::testing::Authority authority{folder, "authority"};
  sluice::testing::IssuedCertificate server =
      authority.issue("server", {.common_name = "a", .names = {"DNS:a.example"}});
  sluice::testing::IssuedCertificate client = authority.issue("ann", {.common_name = "ann"});

  [[nodiscard]] std::string tls() const {
    return fmt::format(
        "tls: {{certificates: [{{cert_file: {}, key_file: {}}}], client_ca_file: {}}}, "
        "keepalive_timeout: 9w",
        server.chain, server.key, authority.file());
  }
};

class UnderTls : public TlsFiles, public GatewayConnections {
 protected:
  UnderTls() : GatewayConnections(tls()) {}
};

// The handshake was in time, and the connection has outlived the certificate.
TEST_F(UnderTls, AConnectionEndsWithTheCertificateOfItsClient) {
  const auto as =
      net::TlsClient::load({.ca_file = authority.file(),
                            .certificate = net::CertificateFiles{client.chain, client.key}})
          .value();
  const auto ann = connect();
  ASSERT_TRUE(ann->stream.start_tls(*as, "a.example"));
  ann->say(kGet);
  ASSERT_TRUE(turn_until(*worker_.loop, [&] { return app_.is_connected(); }));
  app_.answer(kOk);
  ASSERT_TRUE(comes(*ann, "200 OK"));
  pass(24h);
  ann->received.clear();
  ann->say(kGet);
  ASSERT_TRUE(turn_until(*worker_.loop, [&] { return ann->is_over(); }));
  EXPECT_THAT(ann->received, StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(ann->received, HasSubstr("the client certificate has expired"));
}

TEST_F(UnderTls, PlainHttpIsToldThatThePortSpeaksTls) {
  for (const std::string_view method : {"GET", "DELETE", "OPTIONS", "PROPFIND"}) {
    const auto plain = connect();
    plain->say(fmt::format("{} / HTTP/1.1\r\nHost: a.example\r\n\r\n", method));
    ASSERT_TRUE(turn_until(*worker_.loop, [&] { return plain->is_over(); })) << method;
    EXPECT_THAT(plain->received, StartsWith("HTTP/1.1 400 Bad Request\r\n")) << method;
    EXPECT_THAT(plain->received, HasSubstr("this port speaks TLS: use https"));
    EXPECT_THAT(plain->received, HasSubstr("Connection: close"));
  }
  const auto plain = connect();
  plain->say(std::string_view{"\x16\x03\x01\x00\x05nonsense", 13});
  ASSERT_TRUE(turn_until(*worker_.loop, [&] { return plain->is_over(); }));
  EXPECT_EQ(plain->received.find("HTTP"), std::string::npos);
}

}  // namespace
}  // namespace sluice::app
