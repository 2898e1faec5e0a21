#include "frontend/gateway/own_lack.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string_view>

namespace sluice::gateway {
namespace {

OwnLack lack(int error, std::string_view to = "10.0.0.1") {
  return own_lack(net::IoResult::system_failure(error).why,
                  net::SocketAddress::of(*IpAddress::parse(to), 80));
}

TEST(OwnLack, IsToldFromFaultsOfTheServer) {
  EXPECT_EQ(lack(EMFILE), OwnLack::descriptors);
  EXPECT_EQ(lack(ENFILE), OwnLack::descriptors);
  EXPECT_EQ(lack(ENOMEM), OwnLack::memory);
  EXPECT_EQ(lack(ENOBUFS), OwnLack::memory);
  EXPECT_EQ(lack(ENOSPC), OwnLack::memory);
  EXPECT_EQ(lack(EADDRNOTAVAIL), OwnLack::ports);
  for (const int error : {ECONNREFUSED, ENETUNREACH, EHOSTUNREACH, ETIMEDOUT, EACCES, EAGAIN}) {
    EXPECT_EQ(lack(error), OwnLack::nothing) << error;
  }
  const net::IoFailure of_tls{.kind = net::IoFailure::Kind::tls, .code = EMFILE};
  EXPECT_EQ(own_lack(of_tls, {}), OwnLack::nothing);
}

// Where IPv6 is switched off, every attempt ends so: the address is of no use.
TEST(OwnLack, IsNotThatOfAnAddressOfOurOwn) {
  EXPECT_EQ(lack(EADDRNOTAVAIL, "::1"), OwnLack::nothing);
}

TEST(OwnLack, HasAText) {
  for (const OwnLack one : {OwnLack::descriptors, OwnLack::memory, OwnLack::ports}) {
    EXPECT_TRUE(std::string_view{text_of(one)}.starts_with("the gateway lacks "));
  }
}

}  // namespace
}  // namespace sluice::gateway
