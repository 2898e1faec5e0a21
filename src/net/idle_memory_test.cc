// What an idle connection costs this process: ten thousand of them, their clients in another.
#include "net/net_fixture.h"
#include "support/certificates.h"
#include "support/child.h"
#include "support/sanitizers.h"
#include "support/temp_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <malloc.h>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace sluice::net {
namespace {

using sluice::testing::Authority;
using sluice::testing::start_child;
using sluice::testing::TempFolder;
using sluice::testing::wait_for_child;
using testing::Loop;

constexpr std::size_t kSpare = 100;  // descriptors of everything else

std::size_t resident_bytes() {
  std::size_t total = 0;
  std::size_t resident = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%zu %zu", &total, &resident) != 2) std::abort();
  (void)std::fclose(file);
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

std::size_t connections_allowed(std::size_t wanted) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur > wanted + kSpare ? wanted : limit.rlim_cur - kSpare;
}

// One request and its answer have passed; since then nothing has happened.
class IdleConnection {
 public:
  explicit IdleConnection(std::size_t& served) : served_(served) {}

  bool open(EventLoop& loop, FileDescriptor descriptor,
            const std::shared_ptr<const TlsServer>& tls) {
    loop.set(idle_, std::chrono::hours{1});
    return stream_.open(loop, std::move(descriptor)).is_done() &&
           (tls == nullptr || stream_.start_tls(tls));
  }

 private:
  void on_ready() {
    std::array<char, 16> request{};
    const IoResult result = stream_.read(request);
    if (result.is_done() && stream_.write("answer").is_done()) ++served_;
  }
  void on_idle() {}

  std::size_t& served_;
  Stream stream_{Callback<>::to<&IdleConnection::on_ready>(*this)};
  Timer idle_{Callback<>::to<&IdleConnection::on_idle>(*this)};
};

struct Server {
  Loop loop;
  std::shared_ptr<const TlsServer> tls;
  std::size_t served = 0;
  std::vector<std::unique_ptr<IdleConnection>> connections;
  Acceptor acceptor{Callback<Accepted>::to<&Server::on_accepted>(*this)};

  void on_accepted(Accepted accepted) {
    connections.push_back(std::make_unique<IdleConnection>(served));
    if (!connections.back()->open(*loop, std::move(accepted.descriptor), tls)) std::abort();
  }
};

// Runs in a process of its own: connects, asks, hears, and then waits to be ended.
int be_clients(const SocketAddress& address, std::size_t count,
               const std::shared_ptr<const TlsClient>& tls) {
  const Loop loop;
  std::vector<std::unique_ptr<testing::Talker>> clients;
  for (std::size_t i = 0; i < count; ++i) {
    auto& client = *clients.emplace_back(std::make_unique<testing::Talker>(*loop));
    if (client.stream.connect(*loop, address).is_failed()) return 1;
    if (tls != nullptr && !client.stream.start_tls(*tls, "example.com")) return 2;
    client.to_send = "request";
    const bool heard = loop.until([&] { return client.received == "answer"; });
    if (!heard) return 3;
  }
  ::pause();
  return 0;
}

// Bytes of this process per idle connection.
std::size_t measure(std::size_t count, std::shared_ptr<const TlsServer> server_tls,
                    const std::shared_ptr<const TlsClient>& client_tls) {
  Server server;
  server.tls = std::move(server_tls);
  server.connections.reserve(count);
  const Listener listener = listen_on(testing::free_port()).value();
  if (!server.acceptor.start(*server.loop, listener.descriptor())) std::abort();
  const pid_t clients =
      start_child([&] { return be_clients(testing::address_of(listener), count, client_tls); });
  const bool warm = server.loop.until([&] { return server.served >= count / 10; });
  const std::size_t first = server.served;
  const std::size_t before = resident_bytes();
  const bool all = warm && server.loop.until([&] { return server.served == count; });
  const std::size_t after = std::max(resident_bytes(), before);
  ::kill(clients, SIGKILL);
  (void)wait_for_child(clients);
  EXPECT_TRUE(all) << server.served << " of " << count;
  return (after - before) / std::max<std::size_t>(count - first, 1);
}

// Memory that other tests have freed would hide what these need.
class IdleMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (sluice::testing::kSlowBuild) GTEST_SKIP() << "sanitizers have memory of their own";
    ::malloc_trim(0);
  }
};

// No buffer: a stream, a timer and what the allocator adds.
TEST_F(IdleMemory, OfTenThousandPlainConnectionsIsUnderHalfAKibibyteEach) {
  const std::size_t bytes = measure(connections_allowed(10'000), nullptr, nullptr);
  RecordProperty("bytes_per_connection", std::to_string(bytes));
  EXPECT_LE(bytes, 512U);
}

TEST_F(IdleMemory, OfAThousandConnectionsUnderTlsIsUnderTwentyKibibytesEach) {
  const TempFolder folder;
  const Authority authority{folder, "authority"};
  const auto issued =
      authority.issue("example", {.common_name = "x", .names = {"DNS:example.com"}});
  const auto server_tls = TlsServer::load({.certificates = {{issued.chain, issued.key}}}).value();
  const auto client_tls = TlsClient::load({.ca_file = authority.file()}).value();
  const std::size_t bytes = measure(1000, server_tls, client_tls);
  RecordProperty("bytes_per_connection", std::to_string(bytes));
  EXPECT_LE(bytes, 20U << 10U);
}

}  // namespace
}  // namespace sluice::net
