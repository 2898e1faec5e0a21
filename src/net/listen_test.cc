// Listening, accepting and inheriting, on real sockets.
#include "net/listen.h"

#include "net/acceptor.h"
#include "net/inherited.h"
#include "net/listen_check.h"
#include "net/net_fixture.h"
#include "support/child.h"
#include "support/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <netinet/tcp.h>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace sluice::net {
namespace {

using namespace std::chrono_literals;
using sluice::testing::in_child;
using sluice::testing::TempFolder;
using ::testing::AllOf;
using testing::free_port;
using ::testing::HasSubstr;
using testing::Loop;
using ::testing::StartsWith;

Endpoint endpoint(const std::string& text) { return Endpoint::parse(text).value(); }

std::string refusal(const Parsed<Listener>& result) {
  return result ? "listening" : result.error().text();
}

FileDescriptor connect_to(const SocketAddress& address) {
  FileDescriptor descriptor{::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const bool connected = ::connect(descriptor.get(), address.get(), address.size()) == 0;
  return connected ? std::move(descriptor) : FileDescriptor{};
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// Keeps what it accepts.
struct Host {
  EventLoop& loop;
  std::vector<Accepted> accepted;
  Acceptor acceptor{Callback<Accepted>::to<&Host::on_accepted>(*this)};

  Host(EventLoop& in, const Listener& listener) : loop(in) {
    if (!acceptor.start(loop, listener.descriptor())) std::abort();
  }
  void on_accepted(Accepted connection) { accepted.push_back(std::move(connection)); }
};

TEST(Listen, FindsAFreePortAndSaysWhich) {
  const Listener listener = listen_on(free_port()).value();
  EXPECT_NE(listener.endpoint().port, 0);
  EXPECT_TRUE(connect_to(testing::address_of(listener)));
}

TEST(Listen, OnNoAddressHearsBothFamilies) {
  const Listener listener = listen_on(endpoint(":0")).value();
  const std::uint16_t port = listener.endpoint().port;
  EXPECT_EQ(listener.endpoint().text(), ":" + std::to_string(port));
  EXPECT_TRUE(connect_to(SocketAddress::of(*IpAddress::parse("127.0.0.1"), port)));
  if (local_endpoint(listener.descriptor()).address.is_v4) GTEST_SKIP() << "no IPv6 here";
  EXPECT_TRUE(connect_to(SocketAddress::of(*IpAddress::parse("::1"), port)));
}

TEST(Listen, OnAnIpv6AddressHearsIpv6Alone) {
  const Parsed<Listener> listener = listen_on(endpoint("[::]:0"));
  if (!listener) GTEST_SKIP() << listener.error().text();
  const std::uint16_t port = listener->endpoint().port;
  EXPECT_TRUE(connect_to(SocketAddress::of(*IpAddress::parse("::1"), port)));
  EXPECT_FALSE(connect_to(SocketAddress::of(*IpAddress::parse("127.0.0.1"), port)));
}

TEST(Listen, FindsTheAddressOfAName) {
  const Listener listener = listen_on(endpoint("localhost:0")).value();
  EXPECT_EQ(listener.endpoint().text(), "localhost:" + std::to_string(listener.endpoint().port));
  // A name that is refused without asking a name server.
  const Endpoint nowhere{.kind = Endpoint::Kind::name, .name = "a..b"};
  EXPECT_THAT(refusal(listen_on(nowhere)),
              AllOf(StartsWith("cannot listen on a..b:0: cannot find the host"),
                    HasSubstr("write an address of this machine")));
}

TEST(Listen, SaysWhatIsWrong) {
  const Listener listener = listen_on(free_port()).value();
  EXPECT_EQ(refusal(listen_on(listener.endpoint())),
            "cannot listen on " + listener.endpoint().text() +
                ": the address is in use; is another instance running?");
  EXPECT_THAT(refusal(listen_on(endpoint("192.0.2.1:0"))), HasSubstr("has no such address"));
  EXPECT_THAT(refusal(listen_on(endpoint("unix:/nonexistent/socket"))),
              HasSubstr("the folder does not exist"));
}

TEST(Listen, SharesAPortAmongWorkersThatAgree) {
  const ListenOptions shared{.reuse_port = true};
  const Listener first = listen_on(free_port(), shared).value();
  EXPECT_TRUE(listen_on(first.endpoint(), shared));
  EXPECT_FALSE(listen_on(first.endpoint()));
}

// ---- Unix sockets -----------------------------------------------------------------------------

TEST(ListenOnPath, MakesAFileOfTheModeAndTakesItAway) {
  const TempFolder folder;
  const std::string path = folder.file("socket");
  {
    const Listener listener = listen_on(Endpoint::of_path(path), {.unix_mode = 0606}).value();
    struct stat file{};
    ASSERT_EQ(::stat(path.c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777U, 0606U);
    EXPECT_TRUE(connect_to(*SocketAddress::of_path(path)));
    EXPECT_THAT(refusal(listen_on(Endpoint::of_path(path))), HasSubstr("is another instance"));
    EXPECT_TRUE(connect_to(*SocketAddress::of_path(path))) << "the living one was left alone";
  }
  EXPECT_FALSE(exists(path));
}

TEST(ListenOnPath, ReplacesWhatADeadProcessLeft) {
  const TempFolder folder;
  const std::string path = folder.file("socket");
  ASSERT_EQ(in_child([&] {
              const Listener listener = listen_on(Endpoint::of_path(path)).value();
              ::_exit(0);  // without a farewell
              return 1;
            }),
            0);
  ASSERT_TRUE(exists(path));
  const Parsed<Listener> listener = listen_on(Endpoint::of_path(path));
  ASSERT_TRUE(listener) << refusal(listener);
  EXPECT_TRUE(connect_to(*SocketAddress::of_path(path)));
}

TEST(ListenOnPath, DoesNotRemoveAFileThatIsNoSocket) {
  const TempFolder folder;
  const std::string path = folder.file("precious");
  std::ofstream{path} << "data";
  EXPECT_FALSE(listen_on(Endpoint::of_path(path)));
  EXPECT_TRUE(exists(path));
}

// A check beside a running server, and a second start, are no clients.
TEST(ListenOnPath, LooksForAServerWithoutConnectingToIt) {
  const TempFolder folder;
  const std::string path = folder.file("socket");
  const Listener listener = listen_on(Endpoint::of_path(path)).value();
  const std::optional<CannotListen> why = why_not_listen(listener.endpoint());
  ASSERT_TRUE(why);
  EXPECT_TRUE(why->is_in_use);
  EXPECT_FALSE(listen_on(Endpoint::of_path(path)));
  EXPECT_LT(::accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK), 0);
  EXPECT_EQ(errno, EAGAIN) << "a connection waits";
}

// A successor may already listen on a file of its own at the same place.
TEST(ListenOnPath, LeavesTheFileOfASuccessor) {
  const TempFolder folder;
  const std::string path = folder.file("socket");
  auto first = std::make_unique<Listener>(listen_on(Endpoint::of_path(path)).value());
  ASSERT_EQ(::rename(path.c_str(), folder.file("aside").c_str()), 0);
  const Listener second = listen_on(Endpoint::of_path(path)).value();
  first.reset();
  EXPECT_TRUE(connect_to(*SocketAddress::of_path(path)));
}

// ---- accepting --------------------------------------------------------------------------------

TEST(Acceptor, HandsOutConnectionsWithTheirPeers) {
  const Loop loop;
  const Listener listener = listen_on(free_port()).value();
  Host host{*loop, listener};
  const FileDescriptor client = connect_to(testing::address_of(listener));
  ASSERT_TRUE(loop.until([&] { return host.accepted.size() == 1; }));
  const Accepted& one = host.accepted.front();
  EXPECT_EQ(one.peer.address.text(), "127.0.0.1");
  EXPECT_EQ(one.peer.port, local_endpoint(client.get()).port);
  EXPECT_FALSE(one.peer.is_local);
  EXPECT_NE(::fcntl(one.descriptor.get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(::fcntl(one.descriptor.get(), F_GETFD) & FD_CLOEXEC, 0);
  int no_delay = 0;
  socklen_t size = sizeof no_delay;
  ASSERT_EQ(::getsockopt(one.descriptor.get(), IPPROTO_TCP, TCP_NODELAY, &no_delay, &size), 0);
  EXPECT_EQ(no_delay, 1);
}

TEST(Acceptor, KnowsPeersOfUnixSockets) {
  const TempFolder folder;
  const Loop loop;
  const Listener listener = listen_on(Endpoint::of_path(folder.file("s"))).value();
  Host host{*loop, listener};
  const FileDescriptor client = connect_to(*SocketAddress::of_path(folder.file("s")));
  ASSERT_TRUE(loop.until([&] { return host.accepted.size() == 1; }));
  EXPECT_TRUE(host.accepted.front().peer.is_local);
}

// An edge is told once; what did not fit into one turn must not be forgotten.
TEST(Acceptor, TakesAFloodInSeveralTurns) {
  const Loop loop;
  const Listener listener = listen_on(free_port()).value();
  std::vector<FileDescriptor> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(connect_to(testing::address_of(listener)));
  Host host{*loop, listener};
  loop->turn(0s);
  EXPECT_LT(host.accepted.size(), 200U);
  ASSERT_TRUE(loop.until([&] { return host.accepted.size() == 200; }));
  EXPECT_EQ(host.acceptor.counts().accepted, 200U);
}

TEST(Acceptor, StopsAndStartsAgain) {
  const Loop loop;
  const Listener listener = listen_on(free_port()).value();
  Host host{*loop, listener};
  host.acceptor.stop();
  const FileDescriptor client = connect_to(testing::address_of(listener));
  loop->turn(0s);
  EXPECT_TRUE(host.accepted.empty());
  ASSERT_TRUE(host.acceptor.start(*loop, listener.descriptor()));
  EXPECT_TRUE(loop.until([&] { return host.accepted.size() == 1; }));
}

// Whoever was let into the queue is served: closing the socket would reset them.
TEST(Acceptor, TakesAllThatWaitBeforeItFinishes) {
  const Loop loop;
  const Listener listener = listen_on(free_port()).value();
  Host host{*loop, listener};
  std::vector<FileDescriptor> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(connect_to(testing::address_of(listener)));
  host.acceptor.finish();
  EXPECT_EQ(host.accepted.size(), 200U);
  const FileDescriptor late = connect_to(testing::address_of(listener));
  loop->turn(0s);
  EXPECT_EQ(host.accepted.size(), 200U);
}

// The highest descriptor in use is one that this process just opened.
void allow_no_more_descriptors_than_now_and(rlim_t more) {
  const FileDescriptor next{::open("/dev/null", O_RDONLY)};
  const rlimit limit{static_cast<rlim_t>(next.get()) + more,
                     static_cast<rlim_t>(next.get()) + more};
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) std::abort();
}

// With no descriptor left, the clients that wait are closed, nobody spins, and once descriptors are
// free again and the pause is over, the next ones are served.
int run_out_of_descriptors() {
  ManualClock clock;
  const auto loop = EventLoop::create(clock).value();
  const Listener listener = listen_on(free_port()).value();
  Host host{*loop, listener};
  std::vector<FileDescriptor> clients;
  for (int i = 0; i < 5; ++i) clients.push_back(connect_to(testing::address_of(listener)));
  allow_no_more_descriptors_than_now_and(2);
  loop->turn(1s);
  const AcceptCounts& counts = host.acceptor.counts();
  if (host.accepted.size() != 2 || counts.refused != 3 || counts.pauses != 1) return 1;
  std::array<char, 1> byte{};
  if (::recv(clients.back().get(), byte.data(), 1, 0) > 0) return 2;  // closed, not left waiting
  for (int i = 0; i < 10; ++i) loop->turn(0s);
  if (counts.pauses != 1) return 3;
  host.accepted.clear();
  clients.clear();
  clients.push_back(connect_to(testing::address_of(listener)));
  clock.advance(Acceptor::kPause + 10ms);
  const bool served = testing::turn_until(*loop, [&] {
    clock.advance(1ms);
    return host.accepted.size() == 1;
  });
  return served ? 0 : 4;
}

TEST(Acceptor, RefusesAndPausesWhenDescriptorsRunOut) {
  EXPECT_EQ(in_child(run_out_of_descriptors), 0);
}

// ---- inheriting -------------------------------------------------------------------------------

// As a service manager starts a process: sockets from descriptor 3 on.
int inherit(const Listener& first, const Listener& second, const char* names, auto&& then) {
  // Above what is to be replaced.
  const int one = ::fcntl(first.descriptor(), F_DUPFD, 100);
  const int two = ::fcntl(second.descriptor(), F_DUPFD, 100);
  if (::dup2(one, 3) != 3 || ::dup2(two, 4) != 4) return 100;
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  ::setenv("LISTEN_FDS", "2", 1);
  ::setenv("LISTEN_FDNAMES", names, 1);
  return then();
}

TEST(InheritedListeners, AreTakenWithTheirNames) {
  const TempFolder folder;
  const std::string path = folder.file("socket");
  const Listener tcp = listen_on(free_port()).value();
  const Listener local = listen_on(Endpoint::of_path(path)).value();
  EXPECT_EQ(in_child([&] {
              return inherit(tcp, local, "gateway:admin", [&] {
                const auto listeners = take_inherited_listeners();
                if (!listeners || listeners->size() != 2) return 1;
                if ((*listeners)[0].name != "gateway" || (*listeners)[1].name != "admin") return 2;
                if ((*listeners)[0].listener.endpoint() != tcp.endpoint()) return 3;
                if ((*listeners)[1].listener.endpoint() != local.endpoint()) return 4;
                if (::getenv("LISTEN_FDS") != nullptr || ::getenv("LISTEN_PID") != nullptr)
                  return 5;
                if ((::fcntl(3, F_GETFD) & FD_CLOEXEC) == 0) return 6;
                return take_inherited_listeners().value().empty() ? 0 : 7;
              });
            }),
            0);
  EXPECT_TRUE(exists(path)) << "it belongs to whoever made it";
}

TEST(InheritedListeners, OfAnotherProcessAreLeftAlone) {
  ::setenv("LISTEN_PID", "1", 1);
  ::setenv("LISTEN_FDS", "1", 1);
  EXPECT_TRUE(take_inherited_listeners().value().empty());
}

TEST(InheritedListeners, ThatAreNoneAreNamed) {
  const Listener tcp = listen_on(free_port()).value();
  EXPECT_EQ(in_child([&] {
              return inherit(tcp, tcp, "gateway:admin", [&] {
                const FileDescriptor null{::open("/dev/null", O_RDONLY)};
                if (::dup2(null.get(), 4) != 4) return 1;
                const auto listeners = take_inherited_listeners();
                if (listeners) return 2;
                const std::string text = listeners.error().text();
                return text.find("descriptor 4 'admin' is no listening") != std::string::npos ? 0
                                                                                              : 3;
              });
            }),
            0);
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  ::setenv("LISTEN_FDS", "many", 1);
  EXPECT_FALSE(take_inherited_listeners());
}

}  // namespace
}  // namespace sluice::net
