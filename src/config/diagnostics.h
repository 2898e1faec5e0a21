// Everything that is wrong with what a person wrote, at once.
//
// Mistakes are kept in the order of their places, and at most kKept of them; more are only counted,
// so that a broken file of any size costs bounded memory. One thread.
#pragma once

#include "config/place.h"
#include <sluice/diagnostic.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::config {

struct Node;
struct Source;

enum class Severity : std::uint8_t { error, warning };

struct Mistake {
  Severity severity = Severity::error;
  Place place;
  std::string offending;  // the text that is wrong; may be empty
  std::string line;       // of the source, where it stands
  std::string message;    // names the offending text
  std::string remedy;     // may be empty

  // "rules.yaml:12:7: unknown key 'limt'; did you mean 'limit'?"
  [[nodiscard]] std::string headline() const;
};

class Diagnostics {
 public:
  static constexpr std::size_t kKept = 1000;
  static constexpr std::size_t kShown = 100;

  void error(const Node& at, std::string message, std::string remedy = {});
  void error(const Node& at, const Diagnostic& diagnostic);
  void warning(const Node& at, std::string message, std::string remedy = {});
  void error(const Source& source, std::size_t offset, std::string message,
             std::string remedy = {});
  // Of something without a source text: its message says what.
  void error(Diagnostic diagnostic);
  void warning(Diagnostic diagnostic);
  void add(Mistake mistake);

  [[nodiscard]] bool ok() const noexcept { return errors_ == 0; }  // warnings are fine
  [[nodiscard]] bool empty() const noexcept { return errors_ + warnings_ == 0; }
  [[nodiscard]] std::size_t errors() const noexcept { return errors_; }
  [[nodiscard]] std::size_t warnings() const noexcept { return warnings_; }

  // Sorted by place; two at one place stay in the order in which they were found.
  [[nodiscard]] std::vector<Mistake> sorted() const;

  // For people: each mistake with its line and a caret below its beginning.
  [[nodiscard]] std::string text(std::size_t shown_max = kShown) const;

  // {"mistakes":[{"file":...,"line":...}],"errors":2,"warnings":0,"more":0}
  [[nodiscard]] std::string json(std::size_t shown_max = kShown) const;

 private:
  std::vector<Mistake> kept_;
  std::size_t errors_ = 0;
  std::size_t warnings_ = 0;
};

}  // namespace sluice::config
