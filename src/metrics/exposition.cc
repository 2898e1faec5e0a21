#include "metrics/exposition.h"

#include "base/characters.h"
#include "base/text.h"
#include <sluice/request.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>

namespace sluice::metrics {
namespace {

// ---- what is asked for ------------------------------------------------------------------------

// The front of a text up to a separator, which is skipped.
std::string_view cut(std::string_view& rest, char separator) noexcept {
  const std::size_t at = rest.find(separator);
  const std::string_view part = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view{} : rest.substr(at + 1);
  return trimmed(part);
}

// "0.8" as 800; a weight that cannot be read is none at all, which is 1000.
unsigned permille(std::string_view text) noexcept {
  if (text.starts_with('1')) return 1000;
  if (!text.starts_with('0')) return 1000;
  unsigned value = 0;
  unsigned scale = 100;
  for (const char c : text.substr(std::min<std::size_t>(text.size(), 2))) {
    if (!is_digit(c)) return 1000;
    value += static_cast<unsigned>(c - '0') * scale;
    scale /= 10;
  }
  return value;
}

struct MediaRange {
  std::string_view type;
  unsigned weight = 1000;
  bool is_known_version = true;
};

MediaRange parse_range(std::string_view text) noexcept {
  MediaRange range{.type = cut(text, ';')};
  while (!text.empty()) {
    std::string_view value = cut(text, ';');
    const std::string_view name = cut(value, '=');
    if (equals_ignoring_case(name, "q")) range.weight = permille(value);
    if (equals_ignoring_case(name, "version")) range.is_known_version = value == "1.0.0";
  }
  return range;
}

// ---- pieces of lines --------------------------------------------------------------------------

void append_number(std::string& text, double value) {
  if (std::isnan(value)) {
    text += "NaN";
    return;
  }
  if (std::isinf(value)) {
    text += value < 0 ? "-Inf" : "+Inf";
    return;
  }
  std::array<char, 32> digits;
  constexpr double kExact = 9007199254740992;  // 2^53: whole numbers below it are exact
  const bool is_whole = value == std::trunc(value) && std::abs(value) < kExact;
  const auto end = is_whole ? std::to_chars(digits.data(), digits.data() + digits.size(),
                                            static_cast<std::int64_t>(value))
                            : std::to_chars(digits.data(), digits.data() + digits.size(), value);
  text.append(digits.data(), end.ptr);
}

// Backslashes and line breaks; quotes where the text stands between quotes. Scrapers reject a page
// that is not UTF-8.
void append_escaped(std::string& text, std::string_view value, bool escape_quotes) {
  while (!value.empty()) {
    const std::string_view valid = value.substr(0, valid_utf8_prefix(value));
    for (const char c : valid) {
      if (c == '\n') {
        text += "\\n";
        continue;
      }
      if (c == '\\' || (c == '"' && escape_quotes)) text += '\\';
      text += c;
    }
    value.remove_prefix(valid.size());
    if (value.empty()) break;
    text += "\xef\xbf\xbd";  // U+FFFD
    value.remove_prefix(1);
  }
}

struct Label {
  std::string_view name;
  std::string_view value;
};

// {a="b",le="0.1"}; nothing for no labels.
void append_labels(std::string& text, const FamilyReading& family, const SeriesReading& series,
                   std::optional<Label> extra = std::nullopt) {
  bool is_first = true;
  const auto append = [&](const Label& label) {
    text += is_first ? '{' : ',';
    is_first = false;
    text += label.name;
    text += "=\"";
    append_escaped(text, label.value, true);
    text += '"';
  };
  for (std::size_t i = 0; i < family.labels.size(); ++i) {
    append({family.labels[i], series.values[i]});
  }
  if (extra) append(*extra);
  if (!is_first) text += '}';
}

// ---- families ---------------------------------------------------------------------------------

std::string_view without(std::string_view name, std::string_view suffix) noexcept {
  if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return name;
}

// OpenMetrics counts the suffixes as part of samples, not of the family.
std::string_view family_name(const FamilyReading& family, Exposition form) noexcept {
  if (form == Exposition::text) return family.name;
  if (family.kind == Kind::counter) return without(family.name, "_total");
  return family.kind == Kind::info ? without(family.name, "_info") : family.name;
}

std::string_view type_name(Kind kind, Exposition form) noexcept {
  // The older form knows no infos.
  return kind == Kind::info && form == Exposition::text ? "gauge" : to_string(kind);
}

std::string_view unit_of(std::string_view name) noexcept {
  for (const std::string_view unit : {"seconds", "bytes"}) {
    if (name.ends_with(unit)) return unit;
  }
  return {};
}

void append_head(std::string& text, const FamilyReading& family, Exposition form) {
  const std::string_view name = family_name(family, form);
  const auto line = [&](std::string_view what) {
    text += "# ";
    text += what;
    text += ' ';
    text += name;
    text += ' ';
  };
  line("HELP");
  append_escaped(text, family.help, form == Exposition::open_metrics);
  text += '\n';
  line("TYPE");
  text += type_name(family.kind, form);
  text += '\n';
  if (form == Exposition::text || unit_of(name).empty()) return;
  line("UNIT");
  text += unit_of(name);
  text += '\n';
}

void append_plain(std::string& text, const FamilyReading& family, const SeriesReading& series) {
  text += family.name;
  append_labels(text, family, series);
  text += ' ';
  append_number(text, series.value);
  text += '\n';
}

// OpenMetrics wants bounds to look like floating point numbers.
std::string bound_text(std::string_view seconds, Exposition form) {
  std::string text{seconds};
  const bool is_whole = text.find_first_of(".e") == std::string::npos;
  if (is_whole && form == Exposition::open_metrics) text += ".0";
  return text;
}

void append_histogram(std::string& text, const FamilyReading& family, const SeriesReading& series,
                      Exposition form) {
  const auto sample = [&](std::string_view suffix, std::optional<Label> extra, double value) {
    text += family.name;
    text += suffix;
    append_labels(text, family, series, extra);
    text += ' ';
    append_number(text, value);
    text += '\n';
  };
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < series.buckets.size(); ++i) {
    count += series.buckets[i];
    const std::string bound = i < kDurationBounds.size()
                                  ? bound_text(kDurationBounds[i].seconds, form)
                                  : std::string{"+Inf"};
    sample("_bucket", Label{"le", bound}, static_cast<double>(count));
  }
  sample("_sum", std::nullopt, series.value);
  // Of the same buckets, so that the two agree whatever was counted in between.
  sample("_count", std::nullopt, static_cast<double>(count));
}

}  // namespace

Exposition choose_exposition(std::string_view accept) noexcept {
  unsigned open_metrics = 0;
  unsigned text = 0;
  while (!accept.empty()) {
    const MediaRange range = parse_range(cut(accept, ','));
    if (equals_ignoring_case(range.type, "application/openmetrics-text")) {
      if (range.is_known_version) open_metrics = std::max(open_metrics, range.weight);
    } else if (equals_ignoring_case(range.type, "text/plain")) {
      text = std::max(text, range.weight);
    }
  }
  return open_metrics > 0 && open_metrics >= text ? Exposition::open_metrics : Exposition::text;
}

std::string_view content_type(Exposition form) noexcept {
  return form == Exposition::open_metrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

std::string expose(std::span<const FamilyReading> families, Exposition form) {
  std::string text;
  for (const FamilyReading& family : families) {
    append_head(text, family, form);
    for (const SeriesReading& series : family.series) {
      if (family.kind == Kind::histogram) {
        append_histogram(text, family, series, form);
      } else {
        append_plain(text, family, series);
      }
    }
  }
  if (form == Exposition::open_metrics) text += "# EOF\n";
  return text;
}

}  // namespace sluice::metrics
