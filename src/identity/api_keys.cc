#include "identity/api_keys.h"

#include "base/characters.h"
#include "base/text.h"
#include "crypto/random_bytes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>

namespace sluice::identity {
namespace {

constexpr std::string_view kPlainPrefix = "sha256:";
constexpr std::string_view kKeyedPrefix = "hmac-sha256:";
constexpr std::size_t kPepperBytesMin = 16;

std::optional<crypto::Sha256Bytes> parse_hex(std::string_view text) {
  crypto::Sha256Bytes bytes{};
  if (text.size() != 2 * bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const unsigned high = hex_digit(text[2 * i]);
    const unsigned low = hex_digit(text[2 * i + 1]);
    if (high > 15 || low > 15) return std::nullopt;
    bytes[i] = static_cast<std::uint8_t>(high << 4U | low);
  }
  return bytes;
}

std::string hex(const crypto::Sha256Bytes& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 0x0fU];
  }
  return text;
}

struct Hash {
  bool keyed = false;
  crypto::Sha256Bytes bytes{};
};

// The text is never part of a message: a key that was put there by mistake must not appear in logs.
Parsed<Hash> parse_hash(std::string_view text) {
  const bool keyed = text.starts_with(kKeyedPrefix);
  if (!keyed && !text.starts_with(kPlainPrefix)) {
    return mistake("has no known prefix",
                   "write sha256: or hmac-sha256: and 64 hexadecimal digits");
  }
  text.remove_prefix(keyed ? kKeyedPrefix.size() : kPlainPrefix.size());
  const std::optional<crypto::Sha256Bytes> bytes = parse_hex(text);
  if (!bytes) return mistake("is not one", "write 64 hexadecimal digits behind the colon");
  return Hash{keyed, *bytes};
}

// Five bits each; without 0, 1 and 8, which look like letters.
constexpr std::string_view kKeyDigits = "abcdefghijklmnopqrstuvwxyz234567";

}  // namespace

ApiKey::ApiKey(ApiKeyRecord record) : record_(std::move(record)) {
  std::sort(record_.attributes.begin(), record_.attributes.end());
}

std::string_view ApiKey::find(std::string_view name) const noexcept {
  const auto found = std::lower_bound(
      record_.attributes.begin(), record_.attributes.end(), name,
      [](const auto& pair, std::string_view wanted) { return pair.first < wanted; });
  if (found == record_.attributes.end() || found->first != name) return {};
  return found->second;
}

void ApiKeys::Table::reserve(std::size_t count) {
  if (count > 0) slots_.resize(std::bit_ceil(2 * count));
}

std::size_t ApiKeys::Table::first(const crypto::Sha256Bytes& hash) const noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, hash.data(), sizeof(word));
  return static_cast<std::size_t>(word) & (slots_.size() - 1);
}

bool ApiKeys::Table::insert(const crypto::Sha256Bytes& hash, const ApiKey* key) {
  std::size_t at = first(hash);
  for (; slots_[at].key != nullptr; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].hash == hash) return false;
  }
  slots_[at] = {hash, key};
  return true;
}

const ApiKey* ApiKeys::Table::find(const crypto::Sha256Bytes& hash) const noexcept {
  std::size_t at = first(hash);
  for (; slots_[at].key != nullptr; at = (at + 1) & (slots_.size() - 1)) {
    if (crypto::equal_in_constant_time(slots_[at].hash, hash)) return slots_[at].key;
  }
  return nullptr;
}

Parsed<ApiKeys> ApiKeys::create(std::vector<ApiKeyRecord> records, std::string_view secret) {
  std::vector<Hash> hashes;
  std::set<std::string_view> names;
  for (const ApiKeyRecord& record : records) {
    if (record.name.empty()) return mistake("an API key has no name", "give it one");
    if (!names.insert(record.name).second) {
      return mistake("two API keys are called " + quoted(record.name), "rename one of them");
    }
    const Parsed<Hash> hash = parse_hash(record.hash);
    if (!hash) {
      return mistake("the hash of API key " + quoted(record.name) + " " + hash.error().message,
                     hash.error().remedy);
    }
    if (hash->keyed && secret.size() < kPepperBytesMin) {
      return mistake("API key " + quoted(record.name) + " is hashed under a secret, but there is " +
                         (secret.empty() ? "none" : "only a short one"),
                     "configure the secret that it was hashed under, of 16 bytes or more");
    }
    hashes.push_back(*hash);
  }
  ApiKeys keys;
  const auto keyed = static_cast<std::size_t>(
      std::count_if(hashes.begin(), hashes.end(), [](const Hash& hash) { return hash.keyed; }));
  keys.keyed_.reserve(keyed);
  keys.plain_.reserve(hashes.size() - keyed);
  if (keyed > 0) keys.secret_.emplace(secret);
  for (std::size_t i = 0; i < records.size(); ++i) {
    keys.keys_.push_back(std::make_unique<const ApiKey>(std::move(records[i])));
    const ApiKey* const key = keys.keys_.back().get();
    if (!(hashes[i].keyed ? keys.keyed_ : keys.plain_).insert(hashes[i].bytes, key)) {
      return mistake("API key " + quoted(key->record().name) + " has the hash of another one",
                     "remove one of them");
    }
  }
  return keys;
}

const ApiKey* ApiKeys::find(std::string_view key) const noexcept {
  if (key.empty() || key.size() > kApiKeyBytesMax) return nullptr;
  const ApiKey* found = nullptr;
  if (!keyed_.empty()) found = keyed_.find((*secret_)(key));
  if (found == nullptr && !plain_.empty()) found = plain_.find(crypto::sha256(key));
  return found;
}

std::string hash_api_key(std::string_view key, std::string_view secret) {
  if (secret.empty()) return std::string{kPlainPrefix} + hex(crypto::sha256(key));
  return std::string{kKeyedPrefix} + hex(crypto::HmacSecret{secret}(key));
}

std::optional<Diagnostic> api_key_hash_mistake(std::string_view hash) {
  Parsed<Hash> parsed = parse_hash(hash);
  if (parsed) return std::nullopt;
  return Diagnostic{"the hash " + parsed.error().message, std::move(parsed.error().remedy)};
}

std::string new_api_key() {
  std::array<unsigned char, 32> random;  // of each byte five bits
  crypto::fill_random(random);
  std::string key = "sluice_";
  for (const unsigned char byte : random) key += kKeyDigits[byte % kKeyDigits.size()];
  return key;
}

}  // namespace sluice::identity
