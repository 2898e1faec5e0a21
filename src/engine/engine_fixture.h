// For tests: a table, a worker, rules made by hand, and requests in one line.
#pragma once

#include "engine/decider.h"
#include "identity/identifier.h"
#include "store/local/local_authority.h"
#include "store/local/local_store.h"
#include <sluice/core/limit_text.h>

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::engine {

inline rules::RuleLimit limit(std::string_view text,
                              std::optional<Algorithm> algorithm = std::nullopt) {
  return {.limit = core::parse_limit(text, algorithm).value()};
}

inline rules::Rule rule(std::string name, std::vector<rules::RuleLimit> limits,
                        std::vector<rules::Per> per = {}) {
  rules::Rule made;
  made.name = std::move(name);
  made.limits = std::move(limits);
  made.per = std::move(per);
  return made;
}

inline rules::Per per(rules::Per::Kind kind, std::string name = {}) {
  return {.kind = kind, .name = std::move(name)};
}

// Vouched for by somebody.
class Claims final : public identity::Attributes {
 public:
  explicit Claims(std::map<std::string, std::string, std::less<>> all) : all_(std::move(all)) {}
  std::string_view find(std::string_view name) const noexcept override {
    const auto found = all_.find(name);
    return found == all_.end() ? std::string_view{} : found->second;
  }

 private:
  std::map<std::string, std::string, std::less<>> all_;
};

class EngineFixture : public ::testing::Test {
 protected:
  struct Sent {
    std::string method = "GET";
    std::string target = "/";
    std::vector<HeaderView> headers;
    std::string ip = "192.0.2.1";
    std::string domain;
  };

  static Now at(Nanos time) {
    return {.mono = MonoTime{std::chrono::hours{1000} + time},
            .wall_offset = std::chrono::seconds{1'700'000'000}};
  }

  void use(std::vector<rules::Rule> all, rules::Unmatched unmatched = rules::Unmatched::allow) {
    auto made = Snapshot::make({.rules = std::move(all), .unmatched = unmatched}, *limits_, now_);
    ASSERT_TRUE(made) << made.error().text();
    worker_->use(*made);
  }

  store::Completion decide(Op& op, const Sent& sent) {
    const RequestView request{.method = sent.method,
                              .host = "api.example.com",
                              .target = sent.target,
                              .headers = sent.headers,
                              .peer = *IpAddress::parse(sent.ip),
                              .tls_subject = {},
                              .domain = sent.domain,
                              .descriptor = {}};
    const Decided decided = worker_->decide(op, request, now_);
    proof_ = decided.request.client.proof;
    return decided.completion;
  }

  // Decided and settled: with the upstream's answer, or without one.
  Action ask(const Sent& sent, std::uint16_t answered = 200) {
    EXPECT_EQ(decide(op_, sent), store::Completion::now);
    const Action action = op_.action;
    const ResponseView response{.status = answered, .grpc_status = {}, .headers = {}};
    reason_ = op_.reason;
    status_ = op_.status;
    decision_ = op_.decision;
    rule_ = op_.rule != nullptr ? op_.rule->name : "";
    worker_->settle(op_, action == Action::pass ? &response : nullptr, now_);
    return action;
  }
  int passed(int requests, const Sent& sent, std::uint16_t answered = 200) {
    int count = 0;
    for (int i = 0; i < requests; ++i) count += ask(sent, answered) == Action::pass ? 1 : 0;
    return count;
  }

  // Knows two API keys: of a client that pays, and of one that does not. The former has attributes.
  std::unique_ptr<Decider> new_worker(store::Store& store, store::Limits* limits = nullptr) {
    const auto key = [](const char* name, const char* tier) {
      return identity::ApiKeyRecord{
          .name = name, .hash = identity::hash_api_key(name), .tier = tier};
    };
    identity::ApiKeyRecord paid = key("paid-key", "paid");
    paid.attributes = {{"plan", "gold"}, {"quota", "7"}, {"team", "infra"}};
    identity::IdentifierConfig config;
    config.api_keys = std::make_shared<const identity::ApiKeys>(
        identity::ApiKeys::create({std::move(paid), key("free-key", "free")}).value());
    auto worker = std::make_unique<Decider>(store, limits != nullptr ? *limits : *limits_);
    identifier_ = identity::Identifier::create(std::move(config)).value();
    worker->use(identifier_);
    return worker;
  }

  Now now_ = at(Nanos{0});
  std::unique_ptr<store::LocalStore> table_ =
      store::LocalStore::open({.mapping = {.memory = store::Mapping::kMemoryMin}}, at(Nanos{0}))
          .value();
  std::unique_ptr<store::LocalLimits> limits_ = std::make_unique<store::LocalLimits>(*table_);
  std::unique_ptr<store::LocalAuthority> local_ =
      std::make_unique<store::LocalAuthority>(*table_, 1);
  std::shared_ptr<const identity::Identifier> identifier_;
  std::unique_ptr<Decider> worker_ = new_worker(*local_);
  Op op_;
  identity::Proof proof_ = identity::Proof::none;  // of the last request's client
  Reason reason_ = Reason::allowed;
  std::uint16_t status_ = 0;
  Decision decision_;
  std::string rule_;
};

}  // namespace sluice::engine
