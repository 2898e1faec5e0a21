#include "support/server_reading.h"

#include "base/characters.h"

#include <algorithm>

namespace sluice::testing {

std::string decoded_once(std::string_view text) {
  std::string decoded;
  while (!text.empty()) {
    const std::optional<char> byte = decode_percent(text);
    decoded += byte.value_or(text.front());
    text.remove_prefix(byte ? 3 : 1);
  }
  return decoded;
}

std::optional<Segments> as_servers_read(std::string_view target, Slashes slashes) {
  std::string path = decoded_once(target.substr(0, target.find('?')));
  if (path.starts_with('/')) path.erase(0, 1);
  Segments segments;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    const std::string segment = path.substr(at, slash - at);
    at = slash + 1;
    if (segment == "." || (segment.empty() && slashes == Slashes::merged)) continue;
    if (segment != "..") {
      segments.push_back(segment);
    } else if (segments.empty()) {
      return std::nullopt;
    } else {
      segments.pop_back();
    }
  }
  std::erase(segments, "");
  return segments;
}

}  // namespace sluice::testing
