#include "net/ticket_keys.h"

#include "crypto/random_bytes.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <algorithm>
#include <utility>

namespace sluice::net {

TicketKeys::Key::~Key() {
  OPENSSL_cleanse(cipher.data(), cipher.size());
  OPENSSL_cleanse(mac.data(), mac.size());
}

TicketKeys::Key TicketKeys::Key::random() {
  Key key;
  crypto::fill_random(key.name);
  crypto::fill_random(key.cipher);
  crypto::fill_random(key.mac);
  return key;
}

bool TicketKeys::Key::is_named(const unsigned char* other) const noexcept {
  return std::equal(name.begin(), name.end(), other);
}

bool TicketKeys::Key::set_mac(EVP_MAC_CTX* context) const noexcept {
  std::array<char, 7> digest{"SHA256"};
  std::array<unsigned char, 32> key = mac;  // the interface knows no const
  const std::array params{
      OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key.data(), key.size()),
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_end()};
  const bool is_set = EVP_MAC_CTX_set_params(context, params.data()) == 1;
  OPENSSL_cleanse(key.data(), key.size());
  return is_set;
}

// There is no previous key at first: a random key that encrypted nothing is as good as none.
TicketKeys::TicketKeys() : current_(Key::random()), previous_(Key::random()) {}

void TicketKeys::rotate() {
  Key fresh = Key::random();
  const std::lock_guard lock{mutex_};
  previous_ = std::exchange(current_, fresh);
}

int TicketKeys::encrypt(unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                        EVP_MAC_CTX* mac) const {
  const std::lock_guard lock{mutex_};
  const EVP_CIPHER* const kind = EVP_aes_256_cbc();
  if (RAND_bytes(iv, EVP_CIPHER_get_iv_length(kind)) != 1) return -1;
  std::ranges::copy(current_.name, name);
  const bool is_set = EVP_EncryptInit_ex(cipher, kind, nullptr, current_.cipher.data(), iv) == 1 &&
                      current_.set_mac(mac);
  return is_set ? 1 : -1;
}

int TicketKeys::decrypt(const unsigned char* name, const unsigned char* iv, EVP_CIPHER_CTX* cipher,
                        EVP_MAC_CTX* mac) const {
  const std::lock_guard lock{mutex_};
  const bool is_current = current_.is_named(name);
  if (!is_current && !previous_.is_named(name)) return 0;  // a full handshake
  const Key& key = is_current ? current_ : previous_;
  const bool is_set =
      EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), nullptr, key.cipher.data(), iv) == 1 &&
      key.set_mac(mac);
  if (!is_set) return -1;
  return is_current ? 1 : 2;  // 2: and a new ticket, under the current key
}

TicketRotation::TicketRotation(EventLoop& loop, std::shared_ptr<TicketKeys> keys)
    : loop_(loop),
      keys_(std::move(keys)),
      period_(Callback<>::to<&TicketRotation::on_end_of_period>(*this)) {
  loop_.set(period_, TicketKeys::kPeriod);
}

void TicketRotation::on_end_of_period() {
  keys_->rotate();
  loop_.set(period_, TicketKeys::kPeriod);
}

}  // namespace sluice::net
