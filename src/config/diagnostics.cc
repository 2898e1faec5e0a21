#include "config/diagnostics.h"

#include "base/text.h"
#include "config/document.h"
#include "config/mistake_at.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace sluice::config {
namespace {

constexpr std::size_t kLineShown = 110;  // characters of a long line, so that a caret stays in view

// The part of a line around a column, counted in characters, and where the column is in it.
struct Excerpt {
  std::string text;
  std::size_t caret = 0;
};

Excerpt excerpt(std::string_view line, std::uint32_t column) {
  const std::size_t target = column == 0 ? 0 : column - 1;
  const std::size_t first = target > kLineShown / 2 ? target - kLineShown / 2 : 0;
  Excerpt shown{.text = {}, .caret = target - first};
  std::size_t character = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (i > 0 && !continues_character(line[i])) ++character;
    if (character < first) continue;
    if (character >= first + kLineShown) break;
    const auto byte = static_cast<unsigned char>(line[i]);
    shown.text += byte < 0x20 || byte == 0x7f ? ' ' : line[i];  // a tab would shift the caret
  }
  return shown;
}

std::string_view first_line(std::string_view text) noexcept {
  return text.substr(0, text.find('\n'));
}

bool is_confidential(const Node& node) noexcept {
  return node.source != nullptr && node.source->confidential;
}

// A text that is quoted or spans lines is longer in the file than in the tree: the caret marks its
// beginning only.
std::string written(const Node& node) {
  const bool told = (node.is_scalar() || node.is_null()) && !is_confidential(node);
  return std::string{told ? first_line(node.text) : std::string_view{}};
}

std::string line_of(const Source& source, const Place& place) {
  return source.confidential ? std::string{} : std::string{source.line(place.line)};
}

std::size_t more_than(std::size_t total, std::size_t shown) noexcept {
  return total > shown ? total - shown : 0;
}

}  // namespace

Mistake mistake_at(const Node& at, Severity severity, std::string message, std::string remedy) {
  const Place place = at.place();
  return {.severity = severity,
          .place = place,
          .offending = written(at),
          .line = at.source == nullptr ? std::string{} : line_of(*at.source, place),
          .message = std::move(message),
          .remedy = std::move(remedy)};
}

std::string Mistake::headline() const {
  std::string text;
  if (!place.file.empty()) text += place.file + ":";
  if (place.line > 0) text += fmt::format("{}:{}:", place.line, place.column);
  if (!text.empty()) text += ' ';
  if (severity == Severity::warning) text += "warning: ";
  text += message;
  if (!remedy.empty()) text += "; " + remedy;
  return text;
}

void Diagnostics::add(Mistake mistake) {
  (mistake.severity == Severity::error ? errors_ : warnings_) += 1;
  if (kept_.size() < kKept) kept_.push_back(std::move(mistake));
}

void Diagnostics::error(Diagnostic diagnostic) {
  Mistake mistake;
  mistake.message = std::move(diagnostic.message);
  mistake.remedy = std::move(diagnostic.remedy);
  add(std::move(mistake));
}

void Diagnostics::warning(Diagnostic diagnostic) {
  Mistake mistake;
  mistake.severity = Severity::warning;
  mistake.message = std::move(diagnostic.message);
  mistake.remedy = std::move(diagnostic.remedy);
  add(std::move(mistake));
}

void Diagnostics::error(const Node& at, std::string message, std::string remedy) {
  add(mistake_at(at, Severity::error, std::move(message), std::move(remedy)));
}

void Diagnostics::error(const Node& at, const Diagnostic& diagnostic) {
  error(at, diagnostic.message, diagnostic.remedy);
}

void Diagnostics::warning(const Node& at, std::string message, std::string remedy) {
  add(mistake_at(at, Severity::warning, std::move(message), std::move(remedy)));
}

void Diagnostics::error(const Source& source, std::size_t offset, std::string message,
                        std::string remedy) {
  const Place place = source.place(offset);
  add({.severity = Severity::error,
       .place = place,
       .offending = {},
       .line = line_of(source, place),
       .message = std::move(message),
       .remedy = std::move(remedy)});
}

std::vector<Mistake> Diagnostics::sorted() const {
  std::vector<std::size_t> order(kept_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const Place& first = kept_[a].place;
    const Place& second = kept_[b].place;
    return std::tie(first.file, first.line, first.column, a) <
           std::tie(second.file, second.line, second.column, b);
  });
  std::vector<Mistake> mistakes;
  mistakes.reserve(order.size());
  for (const std::size_t i : order) mistakes.push_back(kept_[i]);
  return mistakes;
}

std::string Diagnostics::text(std::size_t shown_max) const {
  std::string text;
  const std::vector<Mistake> mistakes = sorted();
  const std::size_t shown = std::min(mistakes.size(), shown_max);
  for (std::size_t i = 0; i < shown; ++i) {
    const Mistake& mistake = mistakes[i];
    text += mistake.headline() + "\n";
    if (mistake.place.line == 0 || mistake.line.empty()) continue;
    const Excerpt part = excerpt(mistake.line, mistake.place.column);
    text += fmt::format("{:>5} | {}\n      | {:>{}}\n", mistake.place.line, part.text, '^',
                        part.caret + 1);
  }
  if (const std::size_t more = more_than(errors_ + warnings_, shown); more > 0) {
    text += fmt::format("and {} more\n", more);
  }
  return text;
}

std::string Diagnostics::json(std::size_t shown_max) const {
  const std::vector<Mistake> mistakes = sorted();
  const std::size_t shown = std::min(mistakes.size(), shown_max);
  std::string json = "{\"mistakes\":[";
  for (std::size_t i = 0; i < shown; ++i) {
    const Mistake& mistake = mistakes[i];
    json +=
        fmt::format(R"({}{{"severity":"{}","file":{},"line":{},"column":{},)", i == 0 ? "" : ",",
                    mistake.severity == Severity::error ? "error" : "warning",
                    json_string(mistake.place.file), mistake.place.line, mistake.place.column);
    json += fmt::format(R"("text":{},"message":{},"remedy":{}}})", json_string(mistake.offending),
                        json_string(mistake.message), json_string(mistake.remedy));
  }
  json += fmt::format(R"(],"errors":{},"warnings":{},"more":{}}})", errors_, warnings_,
                      more_than(errors_ + warnings_, shown));
  return json;
}

}  // namespace sluice::config
