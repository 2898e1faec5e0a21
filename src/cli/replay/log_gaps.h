// What rules ask for, and a log does not tell: such rules are decided as if it had not been there.
// One thread.
#pragma once

#include "cli/replay/access_log.h"
#include "rules/rule.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

struct LogGap {
  std::string rule;
  std::string field;       // as rules and logs write it: header.x-team, duration_ns
  bool is_hidden = false;  // it is there, without its value
};

class LogGaps {
 public:
  explicit LogGaps(std::span<const rules::Rule> rules);

  // To be called for every line.
  void look_at(const LoggedRequest& request);
  // In the order of the rules.
  [[nodiscard]] std::vector<LogGap> found() const;

 private:
  enum class Sight : std::uint8_t { none, hidden, shown };
  struct Need {
    std::size_t rule = 0;
    std::string field;
    std::function<Sight(const LoggedRequest&)> look;
    Sight sight = Sight::none;
    bool may_be_absent = false;  // in every line: the log would have it
  };

  void add(std::size_t rule, std::string field, std::function<Sight(const LoggedRequest&)> look,
           bool may_be_absent = false);
  void add_text(std::size_t rule, std::string field,
                std::function<std::string_view(const LoggedRequest&)> text,
                bool needs_value = true);
  void add_header(std::size_t rule, const std::string& name, bool needs_value);
  void add_query(std::size_t rule, const std::string& name);
  void add_claim(std::size_t rule, const std::string& name);
  void add_attribute_of_key(std::size_t rule, std::string_view name);
  void add_attribute(std::size_t rule, std::string_view name);
  void add_match(std::size_t rule, const rules::Match& match);
  void add_per(std::size_t rule, const rules::Per& per);
  void add_limits(std::size_t rule, const std::vector<rules::RuleLimit>& limits);
  void add_response(std::size_t rule, const rules::Count& count);

  std::vector<std::string> rules_;
  std::vector<Need> needs_;
  std::vector<std::size_t> open_;  // of needs: not seen yet
};

}  // namespace sluice::cli
