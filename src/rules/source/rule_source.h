// The seam behind which rules are kept: a file, a database, a service.
//
// A source hands out text and does not know what it means. What it says of itself, name and place,
// is for people; the version is for comparing only.
#pragma once

#include <sluice/diagnostic.h>

#include <functional>
#include <string>

namespace sluice::rules {

// What a source holds at one instant.
struct Fetched {
  std::string text;
  std::string version;  // equal for equal text, never empty; else the source's affair
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

  // Tells this source from others, also after a restart: "file /etc/sluice/rules.yaml".
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;

  // All of the content, of bounded size, or what is wrong with the source.
  [[nodiscard]] virtual Parsed<Fetched> fetch() = 0;

  // From now on `changed` is called, from a thread of the source, after each moment at which
  // fetch() may answer something new; sometimes also when it does not. `changed` returns at once
  // and never calls unwatch(). A source that cannot tell does nothing and is asked now and then.
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
