#include "rules/parse_match.h"

#include "base/text.h"
#include "rules/formats.h"
#include "rules/path_template.h"
#include "rules/rule_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <utility>

namespace sluice::rules {
namespace {

using config::Node;
using config::Reader;

TextMatch parse_text_match(const Node& node, const ParseContext& context) {
  if (node.is_scalar()) return {TextMatch::Kind::exact, node.text};
  const Reader reader{node, text_match_section(), context.checked};
  if (const Node* exact = reader.find("exact")) return {TextMatch::Kind::exact, exact->text};
  if (const Node* prefix = reader.find("prefix")) return {TextMatch::Kind::prefix, prefix->text};
  if (const Node* regex = reader.find("regex")) return {TextMatch::Kind::regex, regex->text};
  if (const Node* present = reader.find("present"); present != nullptr && present->text != "true") {
    context.diagnostics.error(*present, "a rule cannot ask for something to be absent",
                              "write present: true, or leave the key out");
  }
  return {};
}

enum class NameCase : std::uint8_t { kept, lower };

// A name, a list of names, or a map of names to conditions on their values.
std::vector<NamedMatch> parse_named(const Node& node, NameCase name_case,
                                    const ParseContext& context) {
  const auto spelt = [&](const std::string& name) {
    return name_case == NameCase::lower ? lower_case(name) : name;
  };
  std::vector<NamedMatch> matches;
  if (!node.is_map()) {
    for (const Node* name : items_of(node, context.checked)) {
      matches.push_back({spelt(name->text), TextMatch{}});
    }
    return matches;
  }
  for (std::size_t i = 0; i < node.size(); ++i) {
    const Node& value = node.value(i);
    if (!context.checked.good(value)) continue;
    std::string name = spelt(node.key(i).text);
    const bool repeated = std::any_of(matches.begin(), matches.end(),
                                      [&](const NamedMatch& one) { return one.name == name; });
    if (repeated) {
      context.diagnostics.error(node.key(i),
                                fmt::format("the header {} is named twice", quoted(name)),
                                "the case of letters does not matter; keep one of them");
    }
    matches.push_back({std::move(name), parse_text_match(value, context)});
  }
  return matches;
}

using Spelling = std::string (*)(std::string_view);
std::string as_written(std::string_view text) { return std::string{text}; }

// Texts in one spelling. A repeated text is harmless, and most likely a slip.
std::vector<std::string> parse_texts(const Reader& reader, std::string_view key, Spelling spelling,
                                     const ParseContext& context) {
  std::vector<std::string> texts;
  for (const Node* item : reader.list(key)) {
    std::string text = spelling(item->text);
    if (std::find(texts.begin(), texts.end(), text) != texts.end()) {
      context.diagnostics.error(*item, fmt::format("{}: {} occurs twice", key, quoted(text)),
                                "remove one of the two");
      continue;
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

// The methods of IANA's registry, and two that are in wide use without it.
constexpr std::array<std::string_view, 40> kMethods{"GET",
                                                    "HEAD",
                                                    "POST",
                                                    "PUT",
                                                    "DELETE",
                                                    "CONNECT",
                                                    "OPTIONS",
                                                    "TRACE",
                                                    "PATCH",
                                                    "ACL",
                                                    "BIND",
                                                    "CHECKIN",
                                                    "CHECKOUT",
                                                    "COPY",
                                                    "LABEL",
                                                    "LINK",
                                                    "LOCK",
                                                    "MERGE",
                                                    "MKACTIVITY",
                                                    "MKCALENDAR",
                                                    "MKCOL",
                                                    "MOVE",
                                                    "ORDERPATCH",
                                                    "PROPFIND",
                                                    "PROPPATCH",
                                                    "REBIND",
                                                    "REPORT",
                                                    "SEARCH",
                                                    "UNBIND",
                                                    "UNCHECKOUT",
                                                    "UNLINK",
                                                    "UNLOCK",
                                                    "UPDATE",
                                                    "PURGE",
                                                    "QUERY",
                                                    "MKWORKSPACE",
                                                    "MKREDIRECTREF",
                                                    "UPDATEREDIRECTREF",
                                                    "VERSION-CONTROL",
                                                    "BASELINE-CONTROL"};

// A rule for a misspelt method looks like a limit but never matches.
void warn_of_unknown_methods(const Reader& reader, const ParseContext& context) {
  for (const Node* item : reader.list("method")) {
    const std::string method = upper_case(item->text);
    if (std::find(kMethods.begin(), kMethods.end(), method) != kMethods.end()) continue;
    const std::string_view nearest = nearest_word(method, kMethods);
    context.diagnostics.warning(
        *item, fmt::format("method: {} is none that is registered", quoted(item->text)),
        nearest.empty() ? "is it what clients send?" : fmt::format("did you mean {}?", nearest));
  }
}

std::string shown(const Per& per) {
  switch (per.kind) {
    case Per::Kind::path: return "path." + per.name;
    case Per::Kind::header: return "header." + per.name;
    case Per::Kind::query: return "query." + per.name;
    case Per::Kind::claim: return "claim." + per.name;
    case Per::Kind::attribute: return "attribute." + per.name;
    case Per::Kind::descriptor: return "descriptor." + per.name;
    default: return {};
  }
}

}  // namespace

Match parse_match(const Node& map, const ParseContext& context) {
  const Reader reader{map, match_section(), context.checked};
  Match match;
  match.methods = parse_texts(reader, "method", upper_case, context);
  warn_of_unknown_methods(reader, context);
  match.hosts = parse_texts(reader, "host", host_name, context);
  match.paths = parse_texts(reader, "path", as_written, context);
  match.countries = parse_texts(reader, "country", upper_case, context);
  match.tiers = parse_texts(reader, "tier", as_written, context);
  match.tenants = parse_texts(reader, "tenant", as_written, context);
  for (const Node* item : reader.list("ip")) {
    if (const auto range = parse_address_range(item->text)) match.addresses.push_back(*range);
  }
  for (const Node* item : reader.list("asn")) {
    match.asns.push_back(static_cast<std::uint32_t>(config::number_of(*item)));
  }
  if (const Node* node = reader.find("header"))
    match.headers = parse_header_matches(*node, context);
  const auto parse_fields = [&](std::string_view key, std::vector<NamedMatch>& fields) {
    if (const Node* node = reader.find(key)) fields = parse_named(*node, NameCase::kept, context);
  };
  parse_fields("query", match.query);
  parse_fields("cookie", match.cookies);
  parse_fields("attribute", match.attributes);
  parse_fields("descriptor", match.descriptor);
  if (reader.has("authenticated")) match.authenticated = reader.flag("authenticated", false);
  return match;
}

std::vector<NamedMatch> parse_header_matches(const Node& node, const ParseContext& context) {
  return parse_named(node, NameCase::lower, context);
}

std::vector<Per> parse_per_list(const Node& node, const ParseContext& context) {
  std::vector<Per> parts;
  for (const Node* item : items_of(node, context.checked)) {
    const Parsed<Per> parsed = parse_per(item->text);
    if (!parsed) continue;  // reported by the check of its format
    const bool repeated = std::any_of(parts.begin(), parts.end(), [&](const Per& other) {
      return std::tie(other.kind, other.name) == std::tie(parsed->kind, parsed->name);
    });
    if (repeated) {
      context.diagnostics.error(*item, fmt::format("per: {} occurs twice", quoted(item->text)),
                                "remove one of the two");
    }
    parts.push_back(*parsed);
  }
  return parts;
}

void check_path_parameters(const Match& match, const std::vector<Per>& per, const Node& per_node,
                           const ParseContext& context) {
  for (const Per& part : per) {
    if (part.kind != Per::Kind::path) continue;
    const PathSegment wanted{PathSegment::Kind::parameter, part.name};
    const auto lacks = [&](const std::string& path) {
      const auto segments = parse_path_template(path);
      return segments && std::find(segments->begin(), segments->end(), wanted) == segments->end();
    };
    const auto without = std::find_if(match.paths.begin(), match.paths.end(), lacks);
    if (match.paths.empty()) {
      context.diagnostics.error(per_node,
                                fmt::format("{} needs a path to take it from", shown(part)),
                                fmt::format("add match: {{path: /.../{{{}}}}}", part.name));
    } else if (without != match.paths.end()) {
      context.diagnostics.error(
          per_node, fmt::format("{} is not in the path {}", shown(part), quoted(*without)),
          fmt::format("write {{{}}} in every path of match", part.name));
    }
  }
}

}  // namespace sluice::rules
