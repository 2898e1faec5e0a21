#include "app/server/listeners.h"

#include "support/temp_folder.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/socket.h>

namespace sluice::app {
namespace {

using net::Endpoint;

GatewayListener wanted(const std::string& text) { return {.endpoint = *Endpoint::parse(text)}; }

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
  const std::vector<GatewayListener> all{wanted("127.0.0.1:0")};
  const OpenListeners open = open_listeners(all, {}, 3).value();
  ASSERT_EQ(open.of_worker.size(), 3U);
  for (const auto& of_worker : open.of_worker) {
    ASSERT_EQ(of_worker.size(), 1U);
    EXPECT_EQ(of_worker[0].listener.endpoint().text(), open.endpoints[0]);
    EXPECT_EQ(of_worker[0].entrance.port, of_worker[0].listener.endpoint().port);
    EXPECT_FALSE(of_worker[0].listener.is_inherited());
  }
}

// Its file is there as long as the first of them, and then no more.
TEST(Listeners, WorkersShareAUnixSocket) {
  const testing::TempFolder folder;
  const std::string path = folder.file("socket");
  {
    const std::vector<GatewayListener> all{wanted("unix:" + path)};
    const OpenListeners open = open_listeners(all, {}, 2).value();
    EXPECT_EQ(open.of_worker[1][0].entrance.port, 0);
    EXPECT_EQ(::access(path.c_str(), F_OK), 0);
  }
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
}

TEST(Listeners, AnInheritedSocketServesTheEndpointThatItIsBoundTo) {
  net::InheritedListener from_outside = inherited("127.0.0.1:0", "whatever");
  const std::string bound = from_outside.listener.endpoint().text();
  std::vector<GatewayListener> all{wanted(bound)};
  all[0].proxy_protocol = true;
  const OpenListeners open = open_listeners(all, list(std::move(from_outside)), 2).value();
  EXPECT_EQ(open.endpoints, std::vector<std::string>{bound});
  EXPECT_TRUE(open.left.empty());
  for (const auto& of_worker : open.of_worker) {
    ASSERT_EQ(of_worker.size(), 1U);
    EXPECT_TRUE(of_worker[0].listener.is_inherited());
    EXPECT_TRUE(of_worker[0].entrance.proxy_protocol);
  }
}

// `:8080` is every address of the machine, which a socket unit writes as ListenStream=8080.
TEST(Listeners, AnInheritedSocketOfEveryAddressServesAPortAlone) {
  for (const char* at : {"0.0.0.0:0", ":0"}) {
    net::InheritedListener from_outside = inherited(at, "");
    const auto port = from_outside.listener.endpoint().port;
    const std::vector<GatewayListener> all{wanted(":" + std::to_string(port))};
    const OpenListeners open = open_listeners(all, list(std::move(from_outside)), 1).value();
    EXPECT_TRUE(open.of_worker[0][0].listener.is_inherited()) << at;
  }
}

TEST(Listeners, ANameMakesAListenerAndOthersAreTold) {
  const std::vector<GatewayListener> all{wanted("127.0.0.1:0")};
  std::vector<net::InheritedListener> both = list(inherited("127.0.0.1:0", "gateway"));
  both.push_back(inherited("127.0.0.1:0", "other"));
  const std::string named = both[0].listener.endpoint().text();
  const std::string other = both[1].listener.endpoint().text();
  const OpenListeners open = open_listeners(all, std::move(both), 2).value();
  ASSERT_EQ(open.endpoints.size(), 2U);
  EXPECT_EQ(open.endpoints[1], named);
  ASSERT_EQ(open.left.size(), 1U);
  EXPECT_EQ(described(open.left[0]), "'other' on " + other);
}

}  // namespace
}  // namespace sluice::app
