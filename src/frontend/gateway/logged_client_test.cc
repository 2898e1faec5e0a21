#include "frontend/gateway/connection.h"
#include "identity/identity.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::gateway {
namespace {

// Subjects of tokens are URLs, as often as not.
TEST(LoggedClient, TellsLongNamesApart) {
  const std::string issuer = "https://accounts.example/" + std::string(180, 'a') + '/';
  identity::Identity client;
  LoggedClient ann;
  const std::string anns = issuer + "ann";
  client.user = anns;
  client.tier = "free";
  ann.copy(client);
  LoggedClient bob;
  const std::string bobs = issuer + "bob";
  client.user = bobs;
  bob.copy(client);
  EXPECT_EQ(ann.name(0), anns);
  EXPECT_EQ(bob.name(0), bobs);
  EXPECT_EQ(ann.name(3), "free");
}

TEST(LoggedClient, ShortensWhatNobodyCouldRead) {
  const std::string name(9000, 'n');
  identity::Identity client;
  client.user = client.api_key = client.tenant = client.tier = name;
  LoggedClient who;
  who.copy(client);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(who.name(i), name.substr(0, LoggedClient::kNameBytes));
  }
}

}  // namespace
}  // namespace sluice::gateway
