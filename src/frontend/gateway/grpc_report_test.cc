#include "frontend/gateway/grpc_report.h"

#include <gtest/gtest.h>

#include <array>
#include <string_view>

namespace sluice::gateway {
namespace {

std::optional<std::uint8_t> status_of(std::string_view name, std::string_view value) {
  const std::array fields{HeaderView{.name = "x-other", .value = "7"},
                          HeaderView{.name = name, .value = value}};
  return grpc_status_in(fields);
}

TEST(GrpcReport, ReadsTheStatusInAnyCase) {
  EXPECT_EQ(status_of("grpc-status", "16"), 16);
  EXPECT_EQ(status_of("Grpc-Status", "0"), 0);
}

// Nobody can count by what is no number: as if it were not there.
TEST(GrpcReport, TakesNothingElseForAStatus) {
  EXPECT_EQ(status_of("grpc-statuses", "16"), std::nullopt);
  for (const char* value : {"", "-1", "1 6", "256", "99999999999999999999", "ok"}) {
    EXPECT_EQ(status_of("grpc-status", value), std::nullopt) << value;
  }
}

TEST(GrpcReport, KnowsItsMessagesByTheirType) {
  const auto is_one = [](std::string_view type) {
    const std::array headers{HeaderView{.name = "Content-Type", .value = type}};
    return is_grpc_message(headers);
  };
  EXPECT_TRUE(is_one("application/grpc"));
  EXPECT_TRUE(is_one("application/grpc+proto"));
  EXPECT_FALSE(is_one("application/json"));
  EXPECT_FALSE(is_grpc_message({}));
}

}  // namespace
}  // namespace sluice::gateway
