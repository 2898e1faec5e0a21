// API keys and their users, found by hash.
//
// The keys themselves are nowhere: a record carries a hash, and what a client presents is hashed
// before anything is compared. Either plain SHA-256, for files that people write with common tools,
// or HMAC-SHA-256 under a secret, so that a stolen file does not even confirm a guess. Keys have to
// be long and random for the former; a password would be found by trying. Finding one takes the
// same path whatever the key's text: what timing could tell is about hashes, from which no key
// follows. No message contains a key or a hash. Immutable, so threads may share it.
#pragma once

#include "crypto/sha256.h"
#include "identity/identity.h"
#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::identity {

// A longer one is unknown without being hashed: hashing must not be a way to burn our time.
inline constexpr std::size_t kApiKeyBytesMax = 512;

// As a file or a database holds it.
struct ApiKeyRecord {
  std::string name;  // public: appears in metrics and logs; unique
  std::string hash;  // sha256:HEX or hmac-sha256:HEX
  std::string user;  // empty: none; likewise below
  std::string tenant;
  std::string tier;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::optional<WallTime> expires;
};

class ApiKey final : public Attributes {
 public:
  explicit ApiKey(ApiKeyRecord record);

  [[nodiscard]] const ApiKeyRecord& record() const noexcept { return record_; }
  [[nodiscard]] bool is_expired(WallTime now) const noexcept {
    return record_.expires && *record_.expires <= now;
  }
  [[nodiscard]] std::string_view find(std::string_view name) const noexcept override;
  [[nodiscard]] std::span<const Named> all() const noexcept override { return record_.attributes; }

 private:
  ApiKeyRecord record_;  // attributes ordered by name
};

class ApiKeys {
 public:
  ApiKeys() = default;
  // The secret is needed if a record is of the sort hmac-sha256.
  [[nodiscard]] static Parsed<ApiKeys> create(std::vector<ApiKeyRecord> records,
                                              std::string_view secret = {});

  // Null: unknown. Expired keys are found, too.
  [[nodiscard]] const ApiKey* find(std::string_view key) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return keys_.size(); }

 private:
  // Open addressing by the first bytes of the hash, at most half full.
  struct Slot {
    crypto::Sha256Bytes hash{};
    const ApiKey* key = nullptr;
  };
  class Table {
   public:
    void reserve(std::size_t count);
    [[nodiscard]] bool insert(const crypto::Sha256Bytes& hash,
                              const ApiKey* key);  // false: there already
    [[nodiscard]] const ApiKey* find(const crypto::Sha256Bytes& hash) const noexcept;
    [[nodiscard]] bool empty() const noexcept { return slots_.empty(); }

   private:
    [[nodiscard]] std::size_t first(const crypto::Sha256Bytes& hash) const noexcept;
    std::vector<Slot> slots_;
  };

  std::vector<std::unique_ptr<const ApiKey>> keys_;
  Table plain_;
  Table keyed_;
  std::optional<crypto::HmacSecret> secret_;
};

// The hash of a key as records write it: keyed if there is a secret.
[[nodiscard]] std::string hash_api_key(std::string_view key, std::string_view secret = {});

// What keeps a text from being such a hash, without the text.
[[nodiscard]] std::optional<Diagnostic> api_key_hash_mistake(std::string_view hash);

// A new key: 160 random bits behind a prefix by which scanners for leaked secrets can find it.
[[nodiscard]] std::string new_api_key();

// Where a client may put its key.
struct ApiKeySource {
  enum class Kind : std::uint8_t { header, query, cookie, basic };
  Kind kind = Kind::header;
  std::string name = "x-api-key";  // headers in lower case; unused for basic
};

}  // namespace sluice::identity
