#include "app/server/listeners.h"

#include "support/temp_folder.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/socket.h>

namespace sluice::app {
namespace {

using net::Endpoint;

Endpoint wanted(const std::string& text) { return *Endpoint::parse(text); }

// A socket as a service manager passes it on.
net::InheritedListener inherited(const std::string& at, std::string name) {
  const net::Listener opened = net::listen_on(*Endpoint::parse(at)).value();
  const int copy = ::fcntl(opened.descriptor(), F_DUPFD_CLOEXEC, 0);
  return {.name = std::move(name), .listener = net::Listener::inherited(copy)};
}

std::vector<net::InheritedListener> list(net::InheritedListener one) {
  std::vector<net::InheritedListener> all;
  all.push_back(std::move(one));
  return all;
}

TEST(Listeners, OfAnAddressEachWorkerHasASocketOfItsOwn) {
  const std::vector<Endpoint> all{wanted("127.0.0.1:0")};
  const OpenListeners open = open_listeners("gateway", all, {}, 3).value();
  ASSERT_EQ(open.of_thread.size(), 3U);
  for (const auto& of_thread : open.of_thread) {
    ASSERT_EQ(of_thread.size(), 1U);
    EXPECT_EQ(of_thread[0].listener.endpoint().text(), open.sockets[0].endpoint.text());
    EXPECT_EQ(of_thread[0].entrance.port, of_thread[0].listener.endpoint().port);
    EXPECT_FALSE(of_thread[0].listener.is_inherited());
  }
}

// Its file is there as long as the first of them, and then no more.
TEST(Listeners, WorkersShareAUnixSocket) {
  const testing::TempFolder folder;
  const std::string path = folder.file("socket");
  {
    const std::vector<Endpoint> all{wanted("unix:" + path)};
    const OpenListeners open = open_listeners("gateway", all, {}, 2).value();
    EXPECT_EQ(open.of_thread[1][0].entrance.port, 0);
    EXPECT_EQ(::access(path.c_str(), F_OK), 0);
  }
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
}

TEST(Listeners, AnInheritedSocketServesTheEndpointThatItIsBoundTo) {
  net::InheritedListener from_outside = inherited("127.0.0.1:0", "whatever");
  const std::string bound = from_outside.listener.endpoint().text();
  const std::vector<Endpoint> all{wanted("127.0.0.1:0"), wanted(bound)};
  const OpenListeners open =
      open_listeners("gateway", all, list(std::move(from_outside)), 2).value();
  ASSERT_EQ(open.sockets.size(), 2U);
  EXPECT_EQ(open.sockets[1].endpoint.text(), bound);
  EXPECT_TRUE(open.left.empty());
  for (const auto& of_thread : open.of_thread) {
    ASSERT_EQ(of_thread.size(), 2U);
    EXPECT_FALSE(of_thread[0].listener.is_inherited());
    EXPECT_TRUE(of_thread[1].listener.is_inherited());
    EXPECT_EQ(of_thread[1].entrance.listener, 1U) << "what the file says about it holds";
  }
}

// `:8080` is every address of the machine, which a socket unit writes as ListenStream=8080.
TEST(Listeners, AnInheritedSocketOfEveryAddressServesAPortAlone) {
  for (const char* at : {"0.0.0.0:0", ":0"}) {
    net::InheritedListener from_outside = inherited(at, "");
    const auto port = from_outside.listener.endpoint().port;
    const std::vector<Endpoint> all{wanted(":" + std::to_string(port))};
    const OpenListeners open =
        open_listeners("gateway", all, list(std::move(from_outside)), 1).value();
    EXPECT_TRUE(open.of_thread[0][0].listener.is_inherited()) << at;
  }
}

TEST(Listeners, ANameMakesAListenerAndOthersAreTold) {
  const std::vector<Endpoint> all{wanted("127.0.0.1:0")};
  std::vector<net::InheritedListener> both = list(inherited("127.0.0.1:0", "gateway"));
  both.push_back(inherited("127.0.0.1:0", "other"));
  const std::string named = both[0].listener.endpoint().text();
  const std::string other = both[1].listener.endpoint().text();
  const OpenListeners open = open_listeners("gateway", all, std::move(both), 2).value();
  ASSERT_EQ(open.sockets.size(), 2U);
  EXPECT_EQ(open.sockets[1].endpoint.text(), named);
  EXPECT_EQ(open.sockets[1].text, "'gateway' on " + named);
  EXPECT_EQ(open.of_thread[0][0].entrance.listener, 0U);
  EXPECT_EQ(open.of_thread[0][1].entrance.listener, frontend::Entrance::kUnlisted);
  ASSERT_EQ(open.left.size(), 1U);
  EXPECT_EQ(described(open.left[0]), "'other' on " + other);
}

}  // namespace
}  // namespace sluice::app
