#include "config/document.h"

#include "base/text.h"
#include "config/yaml_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sluice::config {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// What the library would stumble over or take for something else.
bool check_bytes(const Source& source, Diagnostics& diagnostics) {
  const std::string_view text = source.text;
  const std::size_t valid = valid_utf8_prefix(text);
  if (valid < text.size()) {
    diagnostics.error(
        source, valid,
        fmt::format("the byte 0x{:02x} is not UTF-8", static_cast<unsigned char>(text[valid])),
        "save the file as UTF-8");
    return false;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte >= 0x20 && byte != 0x7f) || byte == '\t' || byte == '\n' || byte == '\r') continue;
    diagnostics.error(source, i, fmt::format("there is a control character, 0x{:02x}", byte),
                      "remove it");
    return false;
  }
  return true;
}

}  // namespace

Source::Source(std::string_view file_name, std::string_view content) : file(file_name) {
  if (content.starts_with(kByteOrderMark)) content.remove_prefix(kByteOrderMark.size());
  text = content;
  line_starts.push_back(0);
  std::uint32_t continuing = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i % kBlock == 0) continuations_.push_back(continuing);
    if (continues_character(text[i])) ++continuing;
    if (text[i] == '\n') line_starts.push_back(static_cast<std::uint32_t>(i + 1));
  }
  if (text.size() % kBlock == 0) continuations_.push_back(continuing);
}

// Bytes before the offset that begin no character.
std::size_t Source::continuations_before(std::size_t offset) const noexcept {
  const std::size_t block = offset / kBlock;
  const auto begin = text.begin() + static_cast<std::ptrdiff_t>(block * kBlock);
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(offset);
  return continuations_[block] +
         static_cast<std::size_t>(std::count_if(begin, end, continues_character));
}

Place Source::place(std::size_t offset) const {
  offset = std::min(offset, text.size());
  const auto after = std::upper_bound(line_starts.begin(), line_starts.end(), offset);
  const std::size_t start = *std::prev(after);
  const std::size_t characters =
      offset - start - (continuations_before(offset) - continuations_before(start));
  return {.file = file,
          .line = static_cast<std::uint32_t>(after - line_starts.begin()),
          .column = static_cast<std::uint32_t>(characters + 1)};
}

std::string_view Source::line(std::uint32_t number) const {
  if (number == 0 || number > line_starts.size()) return {};
  std::string_view rest = std::string_view{text}.substr(line_starts[number - 1]);
  rest = rest.substr(0, rest.find('\n'));
  if (rest.ends_with('\r')) rest.remove_suffix(1);
  return rest;
}

const Node* Node::find(std::string_view key_text) const noexcept {
  if (!is_map()) return nullptr;
  for (std::size_t i = 0; i < size(); ++i) {
    if (key(i).text == key_text) return &value(i);
  }
  return nullptr;
}

Place Node::place() const { return source == nullptr ? Place{} : source->place(offset); }

std::string Node::shown() const {
  return source != nullptr && source->confidential ? "'...'" : quoted(text);
}

std::optional<Document> parse_document(std::string_view text, std::string_view file,
                                       Diagnostics& diagnostics, const DocumentOptions& options) {
  if (text.size() > options.bytes_max) {
    Mistake
        too_long;  // field by field: GCC 12 takes the aggregate's unnamed texts for uninitialised
    too_long.place.file = file;
    too_long.message =
        fmt::format("the file has {} bytes, more than {}", text.size(), options.bytes_max);
    too_long.remedy = "split it";
    diagnostics.add(std::move(too_long));
    return std::nullopt;
  }
  auto source = std::make_shared<Source>(file, text);
  source->confidential = options.confidential;
  if (!check_bytes(*source, diagnostics)) return std::nullopt;

  std::optional<Node> root = read_yaml(*source, diagnostics, options);
  if (!root) return std::nullopt;
  if (root->source == nullptr) root->source = source.get();  // of a text without any value
  return Document{.source = std::move(source), .root = *std::move(root)};
}

}  // namespace sluice::config
