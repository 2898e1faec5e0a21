#include "cli/status/status_text.h"

#include "base/duration.h"
#include "base/text.h"

// Boost.JSON as headers alone; nobody else of the program includes it.
#include <boost/json/src.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace sluice::cli {
namespace {

namespace json = boost::json;

const json::value* find(const json::object& object, std::string_view name) {
  return object.if_contains({name.data(), name.size()});
}

// Whoever answers does not get to write to the terminal as it likes.
std::string harmless(std::string_view text) {
  std::string shown{text};
  std::ranges::replace_if(shown, [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; }, '?');
  return shown;
}

std::string text_of(const json::object& object, std::string_view name) {
  const json::value* const value = find(object, name);
  const json::string* const text = value != nullptr ? value->if_string() : nullptr;
  return text != nullptr ? harmless({text->data(), text->size()}) : std::string{};
}

std::uint64_t number_of(const json::object& object, std::string_view name) {
  const json::value* const value = find(object, name);
  if (value == nullptr || !value->is_int64() || value->get_int64() < 0) return 0;
  return static_cast<std::uint64_t>(value->get_int64());
}

const json::object& object_of(const json::object& object, std::string_view name) {
  static const json::object kNone;
  const json::value* const value = find(object, name);
  return value != nullptr && value->is_object() ? value->get_object() : kNone;
}

const json::array& array_of(const json::object& object, std::string_view name) {
  static const json::array kNone;
  const json::value* const value = find(object, name);
  return value != nullptr && value->is_array() ? value->get_array() : kNone;
}

// ---- lines ------------------------------------------------------------------------------------

// "2xx 120, 4xx 3", without those that are 0.
std::string counts(const json::object& object) {
  std::string text;
  for (const auto& [name, value] : object) {
    const std::string_view key{name.data(), name.size()};
    if (number_of(object, key) == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", harmless(key), number_of(object, key));
  }
  return text.empty() ? "none" : text;
}

std::string headline(const json::object& status, bool is_serving, const Output& style) {
  const auto up = Nanos{std::chrono::seconds{number_of(status, "uptime_seconds")}};
  return fmt::format("{}{}{}{}  sluice {}, up {} since {}, {}\n\n", style.style(kBold),
                     style.style(is_serving ? kGreen : kRed), text_of(status, "state"),
                     style.style(kPlain), text_of(status, "version"), format_duration(up),
                     text_of(status, "started_at"),
                     counted(number_of(status, "workers"), "worker"));
}

std::string configuration(const json::object& of) {
  const std::string file = text_of(of, "file");
  std::string text = fmt::format("{}, {}, read {}", file.empty() ? "demonstration" : file,
                                 counted(number_of(of, "rules"), "rule"), text_of(of, "read_at"));
  const json::object& reload = object_of(of, "last_reload");
  if (text_of(reload, "result") == "error") {
    text += fmt::format("; a newer file was wrong at {}", text_of(reload, "at"));
  }
  const json::object& rules = object_of(of, "rules_from");
  if (!text_of(rules, "error").empty()) text += "; the rules are not those of their file";
  return text;
}

std::string listeners(const json::array& all) {
  std::string text;
  for (const json::value& one : all) {
    if (!one.is_object()) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", text_of(one.get_object(), "name"),
                        text_of(one.get_object(), "endpoint"));
  }
  return text;
}

std::string keys(const json::object& of) {
  return fmt::format("{} of {}, {} evicted", number_of(of, "used"), number_of(of, "capacity"),
                     number_of(of, "evictions"));
}

// Keys that find no room, if there were any within the last minute.
std::string table_full_warning(const json::object& keys) {
  const json::value* const full = find(keys, "full");
  if (full == nullptr || !full->is_bool() || !full->get_bool()) return {};
  return fmt::format(
      "the counter table is full; decisions on keys without room so far: {} approximated, {} "
      "allowed untracked, {} rejected; configure more state.memory",
      number_of(keys, "approximated"), number_of(keys, "allowed_untracked"),
      number_of(keys, "rejected"));
}

std::string state_of(const json::object& server) {
  const json::value* const healthy = find(server, "healthy");
  if (healthy == nullptr || !healthy->is_bool() || !healthy->get_bool()) return "left alone";
  const auto left_alone = number_of(server, "addresses_left_alone");
  if (left_alone == 0 || number_of(server, "addresses") == 1) return "healthy";
  return fmt::format("{} of {} left alone", left_alone, number_of(server, "addresses"));
}

std::string upstreams(const json::array& groups, const Output& style) {
  using Side = Table::Side;
  Table table{{{"upstream"},
               {"server"},
               {"state"},
               {"in use", Side::right},
               {"idle", Side::right},
               {"failures", Side::right}}};
  for (const json::value& group : groups) {
    if (!group.is_object()) continue;
    for (const json::value& each : array_of(group.get_object(), "servers")) {
      if (!each.is_object()) continue;
      const json::object& server = each.get_object();
      table.add({text_of(group.get_object(), "name"), text_of(server, "address"), state_of(server),
                 std::to_string(number_of(server, "in_use")),
                 std::to_string(number_of(server, "idle")),
                 std::to_string(number_of(server, "failures"))});
    }
  }
  return table.text(style);
}

}  // namespace

Parsed<StatusText> status_text(std::string_view text, const Output& style) {
  boost::system::error_code failed;
  const json::value document = json::parse({text.data(), text.size()}, failed);
  if (failed || !document.is_object() || !document.get_object().contains("state")) {
    return mistake("the answer is no status of a server",
                   "is that the address of `listen: admin`?");
  }
  const json::object& status = document.get_object();
  const bool is_serving = text_of(status, "state") == "serving";
  std::string lines = headline(status, is_serving, style);
  const auto line = [&lines](std::string_view name, const std::string& value) {
    lines += fmt::format("{:<15}{}\n", name, value);
  };
  line("configuration", configuration(object_of(status, "configuration")));
  line("listeners", listeners(array_of(status, "listeners")));
  line("connections", std::to_string(number_of(status, "connections")));
  line("under way", fmt::format("{}, {} of them held", number_of(status, "requests_in_flight"),
                                number_of(status, "requests_held")));
  line("requests", counts(object_of(status, "requests")));
  line("decisions", counts(object_of(status, "decisions")));
  line("refusals", counts(object_of(status, "refusals")));
  line("keys", keys(object_of(status, "keys")));
  const std::string warning = table_full_warning(object_of(status, "keys"));
  if (!warning.empty()) line("warning", warning);
  line("blocks", std::to_string(number_of(status, "blocks")));
  const json::array& groups = array_of(status, "upstreams");
  if (!groups.empty()) lines += "\n" + upstreams(groups, style);
  return StatusText{.text = std::move(lines), .is_serving = is_serving};
}

}  // namespace sluice::cli
