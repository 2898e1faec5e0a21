// A configuration at work on a log: one table, one worker, the log's own time. One thread.
#pragma once

#include "cli/replay/access_log.h"
#include "embed/offline_engine.h"
#include <sluice/decision.h>
#include <sluice/diagnostic.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::cli {

// How often a rule had a say, and what it said. Of requests: a rule with several limits counts
// once.
struct RuleSum {
  std::uint64_t requests = 0;
  std::uint64_t objected = 0;  // one of its limits was exceeded
  std::uint64_t rejected = 0;  // and it was the one that answered
  std::uint64_t blocked = 0;
};

struct RulesSum {
  std::uint64_t requests = 0;
  std::uint64_t allowed = 0;
  std::map<std::string, std::uint64_t> reasons;
};

// Names point into the configuration.
struct RulesVerdict {
  engine::Action action = engine::Action::pass;
  std::uint16_t status = 0;  // of a rejection
  std::string_view reason;
  std::string_view rule;  // empty: none
  Decision decision;

  [[nodiscard]] bool passes() const noexcept { return action == engine::Action::pass; }
};

class RulesRun {
 public:
  [[nodiscard]] static Parsed<std::unique_ptr<RulesRun>> start(const std::string& file, Now now);

  RulesVerdict decide(const LoggedRequest& logged, Now now);

  [[nodiscard]] const RulesSum& sum() const noexcept { return sum_; }
  [[nodiscard]] std::span<const rules::Rule> rules() const noexcept {
    return engine_->snapshot().rules().rules();
  }
  // Of one of these.
  [[nodiscard]] RuleSum sum_of(const rules::Rule& rule) const;

 private:
  // The logged response, when the request has become an op.
  struct Response {
    std::uint16_t status = 0;  // 0: there was none
    std::optional<std::uint8_t> grpc_status;
    std::vector<std::pair<std::string, std::string>> headers;
  };
  // A request whose response comes later.
  struct UnderWay {
    MonoTime until;
    Response response;
    std::unique_ptr<engine::Op> op;
    bool operator>(const UnderWay& other) const noexcept { return until > other.until; }
  };
  // With what the request before it left, so that each rule counts a request once.
  struct Counted {
    RuleSum sum;
    std::uint64_t request = 0;  // the last that it had a say in
    std::uint64_t objection = 0;
  };

  void settle_until(MonoTime now);
  void settle(engine::Op& op, const Response& response, Now now);
  void count(const engine::Op& op);
  [[nodiscard]] Counted& counted(const rules::Rule& rule);

  std::unique_ptr<embed::OfflineEngine> engine_;
  std::vector<std::unique_ptr<engine::Op>> spare_;
  std::priority_queue<UnderWay, std::vector<UnderWay>, std::greater<>> under_way_;
  RulesSum sum_;
  std::map<const rules::Rule*, Counted> by_rule_;
};

}  // namespace sluice::cli
