#include "cli/status/status_text.h"

#include "base/duration.h"
#include "base/text.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace sluice::cli {
namespace {

namespace dom = simdjson::dom;

// A status has five levels and a few kilobytes, more with many upstream servers. A server that
// sends more than this is none of ours, and does not get to fill the memory of the command.
constexpr std::size_t kDepthMax = 32;
constexpr std::size_t kBytesMax = std::size_t{16} << 20U;

// Fields that are not there, or are something else than expected, are empty or 0.
using Object = std::optional<dom::object>;

template <class T>
std::optional<T> as(const dom::element& value) {
  T typed;
  return value.get(typed) == simdjson::SUCCESS ? std::optional{typed} : std::nullopt;
}

// Of several fields of one name the last one.
std::optional<dom::element> find(const Object& object, std::string_view name) {
  std::optional<dom::element> found;
  if (!object) return found;
  for (const auto& [key, value] : *object) {
    if (key == name) found = value;
  }
  return found;
}

template <class T>
std::optional<T> find_as(const Object& object, std::string_view name) {
  const std::optional<dom::element> value = find(object, name);
  return value ? as<T>(*value) : std::nullopt;
}

// A server does not control the terminal of the user.
std::string harmless(std::string_view text) {
  std::string shown{text};
  std::ranges::replace_if(shown, [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; }, '?');
  return shown;
}

std::string text_of(const Object& object, std::string_view name) {
  return harmless(find_as<std::string_view>(object, name).value_or(""));
}

std::uint64_t number_of(const Object& object, std::string_view name) {
  return find_as<std::uint64_t>(object, name).value_or(0);
}

bool is_true(const Object& object, std::string_view name) {
  return find_as<bool>(object, name).value_or(false);
}

Object object_of(const Object& object, std::string_view name) {
  return find_as<dom::object>(object, name);
}

std::vector<Object> objects_of(const Object& object, std::string_view name) {
  std::vector<Object> objects;
  const std::optional<dom::array> all = find_as<dom::array>(object, name);
  if (!all) return objects;
  for (const dom::element& one : *all) {
    if (one.is_object()) objects.push_back(as<dom::object>(one));
  }
  return objects;
}

// ---- lines ------------------------------------------------------------------------------------

// "2xx 120, 4xx 3", without zeros.
std::string counts(const Object& object) {
  std::vector<std::string_view> names;
  if (object) {
    for (const auto& [name, value] : *object) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  std::string text;
  for (const std::string_view name : names) {
    const std::uint64_t count = number_of(object, name);
    if (count == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", harmless(name), count);
  }
  return text.empty() ? "none" : text;
}

std::string headline(const Object& status, bool is_serving, const Output& style) {
  constexpr std::uint64_t kLongest = Nanos::max() / std::chrono::seconds{1};
  const Nanos up = std::chrono::seconds{std::min(number_of(status, "uptime_seconds"), kLongest)};
  return fmt::format("{}{}{}{}  sluice {}, up {} since {}, {}\n\n", style.style(kBold),
                     style.style(is_serving ? kGreen : kRed), text_of(status, "state"),
                     style.style(kPlain), text_of(status, "version"), format_duration(up),
                     text_of(status, "started_at"),
                     counted(number_of(status, "workers"), "worker"));
}

std::string configuration(const Object& of) {
  const std::string file = text_of(of, "file");
  std::string text = fmt::format("{}, {}, read {}", file.empty() ? "demonstration" : file,
                                 counted(number_of(of, "rules"), "rule"), text_of(of, "read_at"));
  const Object reload = object_of(of, "last_reload");
  if (text_of(reload, "result") == "error") {
    text += fmt::format("; a newer file was wrong at {}", text_of(reload, "at"));
  }
  const Object rules = object_of(of, "rules_from");
  if (!text_of(rules, "error").empty()) text += "; the rules are not those of their file";
  return text;
}

// What to do where a newer file is not in force; empty where it is.
std::string file_warning(const Object& of) {
  if (text_of(object_of(of, "last_reload"), "result") != "error") return {};
  const std::string file = text_of(of, "file");
  return fmt::format(
      "the newer {} is not in force; 'sluice check {}' says what is wrong with it, and the server "
      "reloads it once it is corrected",
      file, file);
}

// Of an error, the first line; the others have its details.
std::string rules_warning(const Object& of) {
  const Object rules = object_of(of, "rules_from");
  const std::string_view error = find_as<std::string_view>(rules, "error").value_or("");
  if (error.empty()) return {};
  const std::string source = text_of(rules, "source");
  return fmt::format(
      "the rules of {} are not in force: {}; 'sluice check' on that file says all that is wrong, "
      "and the server reloads it once it is corrected",
      source.empty() ? "their file" : source, harmless(error.substr(0, error.find('\n'))));
}

std::string listeners(const std::vector<Object>& all) {
  std::string text;
  for (const Object& one : all) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", text_of(one, "name"),
                        text_of(one, "endpoint"));
  }
  return text;
}

std::string keys(const Object& of) {
  return fmt::format("{} of {}, {} evicted", number_of(of, "used"), number_of(of, "capacity"),
                     number_of(of, "evictions"));
}

// Keys that find no room, if there were any within the last minute.
std::string table_full_warning(const Object& keys) {
  if (!is_true(keys, "full")) return {};
  return fmt::format(
      "the counter table is full; decisions on keys without room so far: {} approximated, {} "
      "allowed untracked, {} rejected; {} blocks dropped, {} rejections towards blocks lost, {} "
      "units of refunds lost; configure more state.memory",
      number_of(keys, "approximated"), number_of(keys, "allowed_untracked"),
      number_of(keys, "rejected"), number_of(keys, "blocks_dropped"),
      number_of(keys, "block_rejections_lost"), number_of(keys, "refund_units_lost"));
}

std::string state_of(const Object& server) {
  if (!is_true(server, "healthy")) return "ejected";
  const auto ejected = number_of(server, "addresses_ejected");
  if (ejected == 0 || number_of(server, "addresses") == 1) return "healthy";
  return fmt::format("{} of {} ejected", ejected, number_of(server, "addresses"));
}

std::string upstreams(const std::vector<Object>& groups, const Output& style) {
  using Side = Table::Side;
  Table table{{{"upstream"},
               {"server"},
               {"state"},
               {"in use", Side::right},
               {"idle", Side::right},
               {"failures", Side::right}}};
  for (const Object& group : groups) {
    for (const Object& server : objects_of(group, "servers")) {
      table.add({text_of(group, "name"), text_of(server, "address"), state_of(server),
                 std::to_string(number_of(server, "in_use")),
                 std::to_string(number_of(server, "idle")),
                 std::to_string(number_of(server, "failures"))});
    }
  }
  return table.text(style);
}

}  // namespace

Parsed<StatusText> status_text(std::string_view json, const Output& style) {
  dom::parser parser;
  dom::element document;
  const bool is_json = !json.empty() && json.size() <= kBytesMax &&
                       parser.allocate(json.size(), kDepthMax) == simdjson::SUCCESS &&
                       parser.parse(json.data(), json.size()).get(document) == simdjson::SUCCESS;
  const Object status = is_json ? as<dom::object>(document) : std::nullopt;
  if (!find(status, "state")) {
    return mistake("the response is not a status of Sluice",
                   "is that the address of `listen: admin`?");
  }
  const bool is_serving = text_of(status, "state") == "serving";
  std::string lines = headline(status, is_serving, style);
  const auto line = [&lines](std::string_view name, const std::string& value) {
    lines += fmt::format("{:<15}{}\n", name, value);
  };
  const Object of_file = object_of(status, "configuration");
  line("configuration", configuration(of_file));
  for (const std::string& text : {file_warning(of_file), rules_warning(of_file)}) {
    if (!text.empty()) line("warning", text);
  }
  line("listeners", listeners(objects_of(status, "listeners")));
  line("connections", fmt::format("{}, {} evicted, {} rejected", number_of(status, "connections"),
                                  number_of(status, "connections_evicted"),
                                  number_of(status, "connections_rejected")));
  line("in flight", fmt::format("{}, {} of them queued", number_of(status, "requests_in_flight"),
                                number_of(status, "requests_queued")));
  line("requests", counts(object_of(status, "requests")));
  line("decisions", counts(object_of(status, "decisions")));
  line("rejections", counts(object_of(status, "rejections")));
  line("keys", keys(object_of(status, "keys")));
  const std::string warning = table_full_warning(object_of(status, "keys"));
  if (!warning.empty()) line("warning", warning);
  line("blocks", std::to_string(number_of(status, "blocks")));
  const std::vector<Object> groups = objects_of(status, "upstreams");
  if (!groups.empty()) lines += "\n" + upstreams(groups, style);
  return StatusText{.text = std::move(lines), .is_serving = is_serving};
}

}  // namespace sluice::cli
