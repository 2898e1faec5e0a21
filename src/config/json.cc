#include "config/json.h"

#include "base/text.h"
#include "config/plain.h"

#include <string_view>

namespace sluice::config {
namespace {

// 0.5: the same number to every reader of YAML and JSON.
bool is_decimal(std::string_view text) noexcept {
  const std::size_t dot = text.find('.');
  return dot != std::string_view::npos && classify_plain(text.substr(0, dot)) == Plain::integer &&
         parse_number(text.substr(dot + 1));
}

std::string scalar_json(const Node& node) {
  if (node.is_plain()) {
    const Plain plain = classify_plain(node.text);
    if (plain == Plain::flag || plain == Plain::integer || is_decimal(node.text)) return node.text;
  }
  return json_string(node.text);
}

}  // namespace

std::string to_json(const Node& node) {
  std::string json;
  switch (node.kind) {
    case Node::Kind::null:
    case Node::Kind::refused: return "null";
    case Node::Kind::scalar: return scalar_json(node);
    case Node::Kind::list:
      for (const Node& item : node.items()) json += (json.empty() ? "" : ",") + to_json(item);
      return "[" + json + "]";
    case Node::Kind::map:
      for (std::size_t i = 0; i < node.size(); ++i) {
        json += (json.empty() ? "" : ",") + json_string(node.key(i).text) + ":" +
                to_json(node.value(i));
      }
      return "{" + json + "}";
  }
  return "null";
}

}  // namespace sluice::config
