#include "frontend/gateway/local_exhaustion.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string_view>

namespace sluice::gateway {
namespace {

LocalExhaustion lack(int error, std::string_view to = "10.0.0.1") {
  return local_exhaustion(net::IoResult::system_failure(error).why,
                          net::SocketAddress::of(*IpAddress::parse(to), 80));
}

TEST(LocalExhaustion, IsToldFromFaultsOfTheServer) {
  EXPECT_EQ(lack(EMFILE), LocalExhaustion::descriptors);
  EXPECT_EQ(lack(ENFILE), LocalExhaustion::descriptors);
  EXPECT_EQ(lack(ENOMEM), LocalExhaustion::memory);
  EXPECT_EQ(lack(ENOBUFS), LocalExhaustion::memory);
  EXPECT_EQ(lack(ENOSPC), LocalExhaustion::memory);
  EXPECT_EQ(lack(EADDRNOTAVAIL), LocalExhaustion::ports);
  for (const int error : {ECONNREFUSED, ENETUNREACH, EHOSTUNREACH, ETIMEDOUT, EACCES, EAGAIN}) {
    EXPECT_EQ(lack(error), LocalExhaustion::nothing) << error;
  }
  const net::IoFailure of_tls{.kind = net::IoFailure::Kind::tls, .code = EMFILE};
  EXPECT_EQ(local_exhaustion(of_tls, {}), LocalExhaustion::nothing);
}

// Where IPv6 is switched off, every attempt ends so: the address is of no use.
TEST(LocalExhaustion, IsNotThatOfAnAddressOfOurOwn) {
  EXPECT_EQ(lack(EADDRNOTAVAIL, "::1"), LocalExhaustion::nothing);
}

TEST(LocalExhaustion, HasAText) {
  for (const LocalExhaustion one :
       {LocalExhaustion::descriptors, LocalExhaustion::memory, LocalExhaustion::ports}) {
    EXPECT_TRUE(std::string_view{text_of(one)}.starts_with("the gateway lacks "));
  }
}

}  // namespace
}  // namespace sluice::gateway
