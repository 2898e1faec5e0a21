// The bytes of a request, with places for what differs between clients.
//
// Wherever {n} stands in the path or in the value of a header, the number of the client is put,
// counted from 1; for {key}, the client's line of a file of keys. Immutable once made.
#pragma once

#include <sluice/diagnostic.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

struct RequestParts {
  std::string method = "GET";
  std::string host;
  std::string path_and_query;
  std::vector<std::string> headers;  // "name: value"
  std::string body;
  bool has_body = false;          // even an empty one
  std::vector<std::string> keys;  // one per client; may be empty
};

class RequestTemplate {
 public:
  // A mistake names the option that has to be changed.
  [[nodiscard]] static Parsed<RequestTemplate> make(RequestParts parts);

  // Whether clients can be told apart at all.
  [[nodiscard]] bool depends_on_client() const noexcept { return pieces_.size() > 1; }
  [[nodiscard]] bool uses_keys() const noexcept { return uses_keys_; }

  // The whole request of a client, counted from 0. Replaces the content of `into` and reuses its
  // memory.
  void render(std::uint64_t client, std::string& into) const;

 private:
  enum class Place : std::uint8_t { nothing, number, key };
  struct Piece {
    std::string text;
    Place behind = Place::nothing;  // what stands behind the text
  };

  void add(std::string_view text);

  std::vector<Piece> pieces_;
  std::vector<std::string> keys_;
  bool uses_keys_ = false;
};

// One key per line; empty lines and comments (#) are skipped.
[[nodiscard]] Parsed<std::vector<std::string>> read_keys(const std::string& path);

}  // namespace sluice::cli
