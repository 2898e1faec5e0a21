// A YAML text as a tree that knows where each of its parts was written.
//
// The strict reading, which is the default, leaves out whatever surprises people in YAML: keys that
// occur twice, anchors, aliases, tags, merge keys, more than one document. The lenient reading is
// for files that were written for another program: it expands aliases and merge keys within a bound
// and ignores tags and further documents.
//
// A tree is immutable once it is parsed, and holds on to the text it came from. Scalars are text;
// what they mean, the grammar says (grammar.h).
#pragma once

#include "config/diagnostics.h"
#include "config/place.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::config {

// A text and the beginnings of its lines. To find a place takes logarithmic time even in a file of
// one line.
struct Source {
  std::string file;
  std::string text;           // without a byte order mark
  bool confidential = false;  // see DocumentOptions
  std::vector<std::uint32_t> line_starts;

  Source(std::string_view file_name, std::string_view content);

  [[nodiscard]] Place place(std::size_t offset) const;
  [[nodiscard]] std::string_view line(std::uint32_t number) const;  // without its end

 private:
  static constexpr std::size_t kBlock = 256;
  [[nodiscard]] std::size_t continuations_before(std::size_t offset) const noexcept;
  std::vector<std::uint32_t> continuations_;  // before each block of that many bytes
};

struct Node {
  enum class Kind : std::uint8_t {
    null,  // nothing, ~ or null
    scalar,
    list,
    map,
    refused,  // the mistake is reported already
  };
  enum class Style : std::uint8_t { plain, quoted, block };

  Kind kind = Kind::null;
  Style style = Style::plain;
  std::uint32_t offset = 0;  // into the source's text
  const Source* source = nullptr;
  std::string text;            // of a scalar, without quotes; of a null, what stands there
  std::vector<Node> children;  // of a list its items; of a map key, value, key, value, ...

  [[nodiscard]] bool is_null() const noexcept { return kind == Kind::null; }
  [[nodiscard]] bool is_scalar() const noexcept { return kind == Kind::scalar; }
  [[nodiscard]] bool is_list() const noexcept { return kind == Kind::list; }
  [[nodiscard]] bool is_map() const noexcept { return kind == Kind::map; }
  [[nodiscard]] bool is_plain() const noexcept { return style == Style::plain; }

  [[nodiscard]] std::span<const Node> items() const noexcept { return children; }

  // The entries of a map.
  [[nodiscard]] std::size_t size() const noexcept { return children.size() / 2; }
  [[nodiscard]] const Node& key(std::size_t i) const noexcept { return children[2 * i]; }
  [[nodiscard]] const Node& value(std::size_t i) const noexcept { return children[2 * i + 1]; }
  [[nodiscard]] const Node* find(std::string_view key_text) const noexcept;

  [[nodiscard]] Place place() const;

  // For messages about an unknown word: in quotes, or '...' where it may be a secret.
  [[nodiscard]] std::string shown() const;
};

struct Document {
  std::shared_ptr<const Source> source;
  Node root;
};

struct DocumentOptions {
  bool lenient = false;
  // People put secrets in the wrong place: no message about such a file shows a line of it, or what
  // stands where a key should. Which values may be shown, the formats of its grammar decide.
  bool confidential = false;
  std::size_t bytes_max = 16U << 20U;
  std::size_t depth_max = 32;
  std::size_t nodes_max = 4'000'000;  // keeps aliases of aliases from filling the memory
};

// Nothing when the text could not be read to its end; else the tree, although there may be mistakes
// in it. An empty text is a document whose root is null.
[[nodiscard]] std::optional<Document> parse_document(std::string_view text, std::string_view file,
                                                     Diagnostics& diagnostics,
                                                     const DocumentOptions& options = {});

}  // namespace sluice::config
