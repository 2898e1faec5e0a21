#include "cli/replay/trace.h"

#include "base/duration.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "cli/replay/log_lines.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <limits>
#include <utility>

namespace sluice::cli {
namespace {

constexpr std::string_view kExpected =
    "expected time[,key[,cost[,duration]]], as in 2022-01-20T00:13:05Z,alice,1";

bool is_space(char c) noexcept { return c == ' ' || c == '\t'; }

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool is_number(std::string_view text) noexcept {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::optional<Exercise> parse_exercise(std::string_view line) noexcept {
  const std::string_view text = trimmed(line);
  const std::size_t gap = text.find_first_of(" \t");
  if (gap == std::string_view::npos) return std::nullopt;
  const auto requests = parse_number(text.substr(0, gap));
  const auto per_hour = parse_number(trimmed(text.substr(gap)));
  if (!requests || !per_hour) return std::nullopt;
  return Exercise{.requests = *requests, .per_hour = *per_hour};
}

Parsed<WallTime> parse_time(std::string_view text) {
  if (is_number(text)) {
    const auto nanos = parse_number(text);
    constexpr auto kEnd = static_cast<std::uint64_t>(kWallTimeEnd.time_since_epoch().count());
    if (!nanos || *nanos >= kEnd) {
      return mistake(fmt::format("{} nanoseconds are beyond the year 2249", quoted(text)));
    }
    return WallTime{Nanos{static_cast<std::int64_t>(*nanos)}};
  }
  if (text.starts_with('-') && is_number(text.substr(1))) {
    return mistake(fmt::format("the time {} lies before 1970", quoted(text)));
  }
  Parsed<WallTime> time = parse_rfc3339(text);
  if (!time) time.error().remedy += ", or whole nanoseconds since 1970";
  return time;
}

// What a person most likely did when a time cannot be read.
std::string_view likely_cause(std::string_view text, bool first_line) noexcept {
  const bool letter = !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0;
  if (text.starts_with('"')) return "; quotes are not understood, write fields bare";
  if (text.find_first_of(";\t") != std::string_view::npos) return "; separate fields by commas";
  if (first_line && letter) return "; if this is a header line, begin it with #";
  return "";
}

Parsed<core::Cost> parse_cost(std::string_view text) {
  const auto cost = parse_number(text);
  if (!cost && !is_number(text)) {
    return mistake(fmt::format("the cost {} is not a whole number", quoted(text)),
                   "use 0 or more; 0 only looks");
  }
  if (!cost || *cost > std::numeric_limits<core::Cost>::max()) {
    return mistake(fmt::format("the cost {} is too large", quoted(text)),
                   fmt::format("use at most {}", std::numeric_limits<core::Cost>::max()));
  }
  return static_cast<core::Cost>(*cost);
}

Parsed<Nanos> parse_flight(std::string_view text) {
  if (is_number(text)) {
    const auto nanos = parse_number(text);
    if (!nanos || *nanos > std::numeric_limits<std::int64_t>::max()) {
      return mistake(fmt::format("the duration {} is too long", quoted(text)));
    }
    return Nanos{static_cast<std::int64_t>(*nanos)};
  }
  Parsed<Nanos> duration = parse_duration(text);
  if (!duration) duration.error().remedy += ", or whole nanoseconds";
  return duration;
}

struct Field {
  std::string_view text;
  std::size_t column;  // from 1
};

// Up to four fields; nothing when there are more.
struct Fields {
  std::array<Field, 4> at{};
  std::size_t count = 0;
  std::size_t surplus_column = 0;  // where a fifth one starts
};

Fields split(std::string_view line) noexcept {
  Fields fields;
  std::size_t begin = 0;
  while (true) {
    const std::size_t comma = line.find(',', begin);
    std::string_view raw = line.substr(begin, comma - begin);
    std::size_t column = begin + 1;
    while (!raw.empty() && is_space(raw.front())) {
      raw.remove_prefix(1);
      ++column;
    }
    if (fields.count == fields.at.size()) {
      fields.surplus_column = column;
      return fields;
    }
    fields.at[fields.count++] = {.text = trimmed(raw), .column = column};
    if (comma == std::string_view::npos) return fields;
    begin = comma + 1;
  }
}

}  // namespace

Parsed<TraceReader> TraceReader::open(const std::string& path) {
  Parsed<LineReader> lines = open_log_lines(path);
  if (!lines) return tl::unexpected(lines.error());
  TraceReader reader{*std::move(lines)};
  Parsed<std::optional<std::string>> first = reader.next_line();
  if (!first) return tl::unexpected(first.error());
  if (*first) reader.exercise_ = parse_exercise(**first);
  if (!reader.exercise_) reader.ahead_ = *std::move(first);
  return reader;
}

Parsed<std::optional<std::string>> TraceReader::next_line() {
  if (ahead_) return std::exchange(ahead_, std::nullopt);
  while (true) {
    const Parsed<std::optional<std::string_view>> line = lines_.next();
    if (!line) return tl::unexpected(line.error());
    if (!*line) return std::nullopt;
    const std::string_view text = trimmed(**line);
    if (!text.empty() && !text.starts_with('#')) return std::string{**line};
  }
}

tl::unexpected<Diagnostic> TraceReader::at_column(std::size_t column,
                                                  const Diagnostic& mistake) const {
  return tl::unexpected(Diagnostic{
      fmt::format("{}:{}:{}: {}", lines_.name(), lines_.line_number(), column, mistake.message),
      mistake.remedy});
}

Parsed<TraceRequest> TraceReader::parse(std::string_view line) const {
  const Fields fields = split(line);
  const Field& time_field = fields.at[0];
  if (fields.surplus_column > 0) {
    return at_column(fields.surplus_column,
                     {"there is more after the duration", std::string{kExpected}});
  }
  if (time_field.text.starts_with('{')) {
    return at_column(time_field.column, {"this looks like JSON", std::string{kExpected}});
  }

  Parsed<WallTime> at = parse_time(time_field.text);
  if (!at) {
    at.error().remedy += likely_cause(time_field.text, requests_ == 0);
    return at_column(time_field.column, at.error());
  }
  TraceRequest request{.at = *at, .key = std::string{fields.at[1].text}};
  if (fields.count > 2) {
    const Parsed<core::Cost> cost = parse_cost(fields.at[2].text);
    if (!cost) return at_column(fields.at[2].column, cost.error());
    request.cost = *cost;
  }
  if (fields.count > 3) {
    const Parsed<Nanos> duration = parse_flight(fields.at[3].text);
    if (!duration) return at_column(fields.at[3].column, duration.error());
    request.duration = *duration;
  }
  return request;
}

Parsed<std::optional<TraceRequest>> TraceReader::next() {
  const Parsed<std::optional<std::string>> line = next_line();
  if (!line) return tl::unexpected(line.error());
  if (!*line) {
    if (exercise_ && requests_ < exercise_->requests) {
      return mistake(fmt::format("{}: the first line promises {}, but only {} {}", lines_.name(),
                                 counted(exercise_->requests, "request"), requests_,
                                 requests_ == 1 ? "follows" : "follow"),
                     "correct the first line or add the missing times");
    }
    return std::nullopt;
  }
  if (exercise_ && requests_ == exercise_->requests) {
    return at_column(1, {fmt::format("there is more than the {} that the first line promises",
                                     counted(exercise_->requests, "request")),
                         "correct the first line or drop the surplus times"});
  }
  Parsed<TraceRequest> request = parse(**line);
  if (!request) return tl::unexpected(request.error());
  if (++requests_ == 1)
    whole_number_first_ = is_number(trimmed((**line).substr(0, (**line).find(','))));
  return *std::move(request);
}

Parsed<std::vector<TraceRequest>> read_all(TraceReader& reader) {
  std::vector<TraceRequest> requests;
  while (true) {
    Parsed<std::optional<TraceRequest>> request = reader.next();
    if (!request) return tl::unexpected(request.error());
    if (!*request) return requests;
    requests.push_back(**std::move(request));
  }
}

}  // namespace sluice::cli
