// The interface to the place of rules: a file, a database, a service.
//
// A source provides text and does not interpret it. Its name and place are for people; the version
// is for comparing only.
#pragma once

#include <sluice/diagnostic.h>

#include <functional>
#include <string>

namespace sluice::rules {

// The content of a source at one instant.
struct Fetched {
  std::string text;
  std::string version;  // equal for equal text, never empty; otherwise opaque
  std::string where;    // for messages about the text: a path, an address
};

// fetch() is called by one thread at a time, the other functions by the owner of the source.
class RuleSource {
 public:
  using Changed = std::function<void()>;

  RuleSource() = default;
  RuleSource(const RuleSource&) = delete;
  RuleSource& operator=(const RuleSource&) = delete;
  virtual ~RuleSource() = default;

  // Distinguishes this source from others, also after a restart: "file /etc/sluice/rules.yaml".
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;

  // All of the content, of bounded size, or the error of the source.
  [[nodiscard]] virtual Parsed<Fetched> fetch() = 0;

  // From now on a thread of the source calls `changed` whenever fetch() may return something new,
  // and sometimes when it does not. `changed` returns at once and never calls unwatch(). A source
  // that cannot notice changes does nothing and is polled.
  [[nodiscard]] virtual Parsed<void> watch(const Changed& /*changed*/) { return {}; }

  // Whether a change is pending that `changed` will report: fetch() may return half of it now.
  // Thread-safe.
  [[nodiscard]] virtual bool is_being_written() const { return false; }

  // After it returns, `changed` is not called any more.
  virtual void unwatch() noexcept {}

  // Why changes may be noticed late, for operators; empty if they are not. Thread-safe.
  [[nodiscard]] virtual std::string watch_problem() const { return {}; }
};

}  // namespace sluice::rules
