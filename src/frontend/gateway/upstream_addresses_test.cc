// Which address of a server is tried.
#include "frontend/gateway/upstream_addresses.h"

#include "frontend/gateway/gateway_options.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace sluice::gateway {
namespace {

using namespace std::chrono_literals;

class Addresses : public ::testing::Test {
 protected:
  Addresses() {
    options_.max_consecutive_failures = 2;
    options_.ejection_time = 10s;
  }
  // By the last byte.
  void assign(const std::vector<int>& found) {
    net::Addresses addresses;
    for (const int one : found) {
      addresses.push_back(*IpAddress::parse("10.0.0." + std::to_string(one)));
    }
    addresses_.assign(addresses, 80);
  }
  static int number(const UpstreamAddress& address) {
    const std::string text = address.where()->ip().text();
    return std::stoi(text.substr(text.rfind('.') + 1));
  }
  UpstreamAddress& at(int wanted) {
    for (const auto& one : addresses_.all()) {
      if (number(*one) == wanted) return *one;
    }
    throw std::out_of_range{"no such address"};
  }
  void eject(int one) {
    at(one).failed(options_, now_);
    at(one).failed(options_, now_);
  }
  std::vector<int> next(int times, const UpstreamAddress* except = nullptr) {
    std::vector<int> numbers;
    for (int i = 0; i < times; ++i) numbers.push_back(number(*addresses_.next(except, now_)));
    return numbers;
  }

  UpstreamOptions options_;
  UpstreamAddresses addresses_{std::nullopt};
  MonoTime now_{1h};
};

using Numbers = std::vector<int>;

// The operator hears of it once, however often it fails again.
TEST_F(Addresses, IsEjectedOnceUntilItRecovers) {
  assign({1});
  UpstreamAddress& one = at(1);
  EXPECT_FALSE(one.succeeded());
  EXPECT_FALSE(one.failed(options_, now_));
  EXPECT_TRUE(one.failed(options_, now_));
  now_ += 10s;
  EXPECT_FALSE(one.failed(options_, now_));
  EXPECT_FALSE(one.failed(options_, now_)) << "it is ejected again, and never was back";
  EXPECT_TRUE(one.is_ejected(now_));
  EXPECT_TRUE(one.succeeded());
  EXPECT_FALSE(one.succeeded());
  options_.ejection_time = 0s;
  eject(1);
  EXPECT_FALSE(one.succeeded()) << "it never was ejected";
}

TEST_F(Addresses, NobodyKnowsAtFirst) {
  EXPECT_FALSE(addresses_.next(nullptr, now_)->where());
  EXPECT_FALSE(addresses_.are_ejected(now_));
  addresses_.all().front()->failed(options_, now_);
  addresses_.all().front()->failed(options_, now_);
  EXPECT_TRUE(addresses_.are_ejected(now_));
  assign({1});
  EXPECT_FALSE(addresses_.are_ejected(now_)) << "what was not found says nothing of what is";
}

TEST_F(Addresses, EachInTurn) {
  assign({1, 2, 3});
  EXPECT_EQ(next(6), (Numbers{1, 2, 3, 1, 2, 3}));
}

// Those that are well share the turns of the one that is not.
TEST_F(Addresses, OneInTroubleIsEjectedByItself) {
  assign({1, 2, 3});
  eject(1);
  EXPECT_EQ(next(4), (Numbers{2, 3, 2, 3}));
  EXPECT_FALSE(addresses_.are_ejected(now_));
  EXPECT_EQ(addresses_.ejected(now_), 1U);
  now_ += 10s;
  EXPECT_EQ(next(3), (Numbers{1, 2, 3}));
}

TEST_F(Addresses, NotTheOneThatWasTried) {
  assign({1, 2});
  EXPECT_EQ(next(3, &at(1)), (Numbers{2, 2, 2}));
  EXPECT_TRUE(addresses_.has_another(&at(1), now_));
  eject(2);
  EXPECT_FALSE(addresses_.has_another(&at(1), now_));
  EXPECT_EQ(next(1, &at(1)), (Numbers{2}));
  assign({1});
  EXPECT_EQ(next(1, &at(1)), (Numbers{1})) << "unless it is the only one";
}

// Better asked in vain than not at all.
TEST_F(Addresses, TheOneThatWasEjectedFirstWhenAllAre) {
  assign({1, 2});
  eject(2);
  const MonoTime first = now_ + 10s;
  now_ += 1s;
  eject(1);
  EXPECT_TRUE(addresses_.are_ejected(now_));
  EXPECT_EQ(addresses_.ejected_until(), first);
  EXPECT_EQ(next(2), (Numbers{2, 2}));
}

// A lookup says where a server is, not how it fares.
TEST_F(Addresses, WhatIsKnownOfOneStaysWhileTheNameHasIt) {
  assign({1, 2});
  eject(1);
  at(2).failed(options_, now_);
  assign({3, 2, 1});
  EXPECT_EQ(next(4), (Numbers{3, 2, 3, 2}));
  at(2).failed(options_, now_);
  EXPECT_EQ(next(2), (Numbers{3, 3})) << "the second failure in a row";
  assign({3});
  assign({1, 2, 3});
  EXPECT_EQ(addresses_.ejected(now_), 0U) << "those that were gone begin anew";
}

}  // namespace
}  // namespace sluice::gateway
