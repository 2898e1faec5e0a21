#include "cli/load/http/request_template.h"

#include "base/characters.h"
#include "base/read_file.h"
#include "base/text.h"
#include "net/http/scan.h"
#include <sluice/request.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

namespace sluice::cli {
namespace {

constexpr std::string_view kNumber = "{n}";
constexpr std::string_view kKey = "{key}";
constexpr std::size_t kKeyFileBytesMax = std::size_t{256} << 20U;

bool has_control(std::string_view text) noexcept { return net::find_control(text) != text.size(); }

// Framing and hop-by-hop headers.
bool is_ours(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 4> kOurs{"content-length", "transfer-encoding",
                                                  "connection", "expect"};
  return std::ranges::any_of(
      kOurs, [&](std::string_view ours) { return equals_ignoring_case(ours, name); });
}

Parsed<HeaderView> parse_header(std::string_view line) {
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  if (colon == std::string_view::npos || !net::is_token(name) || has_control(line)) {
    return mistake(fmt::format("--header: {} is no header", quoted(line)),
                   "write --header 'name: value'");
  }
  if (is_ours(name)) {
    return mistake(fmt::format("--header: {} is up to the program", quoted(name)), "leave it out");
  }
  return HeaderView{name, trimmed(line.substr(colon + 1))};
}

}  // namespace

// Cuts the text at its places. The last piece stays open for the text that follows.
void RequestTemplate::add(std::string_view text) {
  if (pieces_.empty()) pieces_.emplace_back();
  while (true) {
    const std::size_t number = text.find(kNumber);
    const std::size_t key = text.find(kKey);
    const std::size_t at = std::min(number, key);
    pieces_.back().text += text.substr(0, at);
    if (at == std::string_view::npos) return;
    pieces_.back().behind = number < key ? Place::number : Place::key;
    uses_keys_ = uses_keys_ || key < number;
    pieces_.emplace_back();
    text.remove_prefix(at + (number < key ? kNumber : kKey).size());
  }
}

Parsed<RequestTemplate> RequestTemplate::make(RequestParts parts) {
  if (!net::is_token(parts.method) || parts.method == "CONNECT") {
    return mistake(fmt::format("--method: {} cannot be sent", quoted(parts.method)),
                   "use GET, POST or another method");
  }
  std::vector<HeaderView> headers;
  for (const std::string& line : parts.headers) {
    const Parsed<HeaderView> header = parse_header(line);
    if (!header) return tl::unexpected(header.error());
    headers.push_back(*header);
  }
  const bool has_host = std::ranges::any_of(
      headers, [](const HeaderView& header) { return equals_ignoring_case(header.name, "host"); });

  RequestTemplate made;
  made.add(fmt::format("{} {} HTTP/1.1\r\n", parts.method, parts.path_and_query));
  if (!has_host) made.add(fmt::format("Host: {}\r\n", parts.host));
  for (const HeaderView& header : headers) {
    made.add(fmt::format("{}: {}\r\n", header.name, header.value));
  }
  if (parts.has_body) made.add(fmt::format("Content-Length: {}\r\n", parts.body.size()));
  made.pieces_.back().text += "\r\n" + parts.body;  // as it is: its length has been stated
  made.keys_ = std::move(parts.keys);
  if (made.uses_keys_ && made.keys_.empty()) {
    return mistake("{key} stands for a line of a file of keys", "add --keys-file FILE");
  }
  if (!made.uses_keys_ && !made.keys_.empty()) {
    return mistake("--keys-file: no header says where the key goes",
                   "add --header 'x-api-key: {key}'");
  }
  return made;
}

void RequestTemplate::render(std::uint64_t client, std::string& into) const {
  into.clear();
  for (const Piece& piece : pieces_) {
    into += piece.text;
    if (piece.behind == Place::number) fmt::format_to(std::back_inserter(into), "{}", client + 1);
    if (piece.behind == Place::key) into += keys_[client % keys_.size()];
  }
}

Parsed<std::vector<std::string>> read_keys(const std::string& path) {
  const Parsed<std::string> text = read_file(path, kKeyFileBytesMax);
  if (!text) return tl::unexpected(text.error());
  std::vector<std::string> keys;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = trimmed(line);
    if (line.empty() || line.starts_with('#')) continue;
    if (has_control(line)) {
      return mistake(fmt::format("--keys-file: {} cannot stand in a header", quoted(line)),
                     "write one key a line");
    }
    keys.emplace_back(line);
  }
  if (keys.empty()) return mistake(fmt::format("--keys-file: {} has no key in it", path));
  return keys;
}

}  // namespace sluice::cli
