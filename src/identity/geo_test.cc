#include "identity/geo.h"

#include "base/mapped_files.h"
#include "support/child.h"
#include "support/temp_folder.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace sluice::identity {
namespace {

const std::string kFolder = SLUICE_IDENTITY_TESTDATA;

IpAddress address(std::string_view text) { return IpAddress::parse(text).value(); }

Geo geo(const std::string& country, const std::string& asn) {
  const auto path = [](const std::string& name) {
    return name.empty() ? name : kFolder + "/" + name;
  };
  return Geo::open({.country_file = path(country), .asn_file = path(asn)}).value();
}

std::string content_of(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{}};
}

TEST(Geo, FindsCountryAndNetworkInTwoFiles) {
  const Geo both = geo("country.mmdb", "asn.mmdb");
  EXPECT_EQ(both.find(address("192.0.2.77")).country, "DE");
  EXPECT_EQ(both.find(address("192.0.2.77")).asn, 64500U);
  EXPECT_EQ(both.find(address("2001:db8:1:2::3")).country, "JP");
  EXPECT_EQ(both.find(address("2001:db8:1:2::3")).asn, 4'200'000'000U);
  EXPECT_EQ(both.find(address("::ffff:192.0.2.1")).country, "DE") << "IPv4 in IPv6 notation";
}

TEST(Geo, KnowsWhereARangeEnds) {
  const Geo both = geo("country.mmdb", "asn.mmdb");
  EXPECT_EQ(both.find(address("198.51.100.127")).country, "FR");
  EXPECT_EQ(both.find(address("198.51.100.128")).country, "");
  EXPECT_EQ(both.find(address("198.51.100.128")).asn, 64501U);
  EXPECT_EQ(both.find(address("2001:db8:2::1")).country, "");
}

TEST(Geo, IsEmptyWhereNothingIsKnown) {
  const Geo both = geo("country.mmdb", "asn.mmdb");
  for (const char* unknown :
       {"8.8.8.8", "0.0.0.0", "255.255.255.255", "2001:db8::1", "::", "ff::"}) {
    EXPECT_EQ(both.find(address(unknown)).country, "") << unknown;
    EXPECT_EQ(both.find(address(unknown)).asn, 0U) << unknown;
  }
}

TEST(Geo, IgnoresRecordsOfAnotherShape) {
  const Geo both = geo("country.mmdb", "asn.mmdb");
  EXPECT_EQ(both.find(address("203.0.113.1")).country, "") << "a continent only";
  EXPECT_EQ(both.find(address("203.0.113.1")).asn, 0U) << "a number written as text";
  EXPECT_EQ(both.find(address("203.0.114.1")).country, "") << "not two letters";
}

TEST(Geo, MayBeOneFileForBothAndForIpv4Only) {
  const Geo one = geo("both-v4.mmdb", "both-v4.mmdb");
  EXPECT_EQ(one.find(address("192.0.2.1")).country, "AT");
  EXPECT_EQ(one.find(address("192.0.2.1")).asn, 64510U);
  EXPECT_EQ(one.find(address("2001:db8:1::1")).country, "");
  EXPECT_EQ(geo("", "asn.mmdb").find(address("192.0.2.1")).asn, 64500U);
  EXPECT_EQ(geo("", "asn.mmdb").find(address("192.0.2.1")).country, "");
  EXPECT_EQ(geo("country.mmdb", "").find(address("192.0.2.1")).country, "DE");
}

TEST(Geo, NamesTheFileThatCannotBeUsed) {
  const testing::TempFolder folder;
  const std::string broken = folder.file("broken.mmdb");
  std::ofstream{broken} << "no database";
  const Parsed<Geo> corrupt = Geo::open({.asn_file = broken});
  ASSERT_FALSE(corrupt);
  EXPECT_NE(corrupt.error().text().find(broken), std::string::npos) << corrupt.error().text();
  const Parsed<Geo> absent = Geo::open({.country_file = folder.file("absent.mmdb")});
  ASSERT_FALSE(absent);
  EXPECT_NE(absent.error().message.find("cannot open"), std::string::npos);
  EXPECT_NE(absent.error().message.find("absent.mmdb"), std::string::npos);
  EXPECT_FALSE(Geo::open({.country_file = folder.file("")}));
  EXPECT_FALSE(Geo::open({}));
}

// A file that was cut or damaged on its way is refused or knows less; it is never read beyond.
TEST(Geo, SurvivesDamagedFiles) {
  const testing::TempFolder folder;
  const std::string whole = content_of(kFolder + "/country.mmdb");
  ASSERT_FALSE(whole.empty());
  const std::string path = folder.file("damaged.mmdb");
  const auto look = [&](const std::string& content) {
    std::ofstream{path, std::ios::binary} << content;
    const Parsed<Geo> damaged = Geo::open({.country_file = path});
    if (!damaged) return;
    for (const char* one : {"192.0.2.1", "198.51.100.1", "2001:db8:1::1", "8.8.8.8"}) {
      const std::string_view country = damaged->find(address(one)).country;
      EXPECT_TRUE(country.empty() || country.size() == 2);
    }
  };
  EXPECT_FALSE(Geo::open({.country_file = kFolder + "/../jwt/seed-rfc7515"}));
  for (std::size_t size = 0; size < whole.size(); size += 13) look(whole.substr(0, size));
  for (std::size_t at = 0; at < whole.size(); at += 3) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0xff);
    look(changed);
  }
}

// The process ends by SIGBUS, and names the file before.
TEST(Geo, IsNamedWhenItIsTruncatedWhileItIsInUse) {
  const testing::TempFolder folder;
  const std::string path = folder.file("country.mmdb");
  std::filesystem::copy_file(kFolder + "/country.mmdb", path);
  const auto end = testing::end_of_child([&] {
    explain_lost_files();
    const Geo one = Geo::open({.country_file = path, .asn_file = {}}).value();
    std::filesystem::resize_file(path, 0);
    (void)one.find(address("192.0.2.77"));
    return 2;  // it should not have come that far
  });
  EXPECT_TRUE(end.is_by(SIGBUS)) << end.status;
  EXPECT_EQ(end.said, "sluice: GeoIP database '" + path +
                          "': it was truncated, or its device failed, while it was in use; replace "
                          "such files by renaming a new one over them\n");
}

}  // namespace
}  // namespace sluice::identity
