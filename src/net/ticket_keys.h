// The keys that encrypt TLS session tickets.
//
// A key encrypts new tickets for one period and decrypts for one more, then it is forgotten: a key
// that is stolen later opens nothing older. A ticket lives for one period, so it is accepted for
// all of its life. TicketKeys is thread-safe: all workers share one, and it stays over reloads so
// that clients can resume their sessions. TicketRotation belongs to the thread of its loop.
#pragma once

#include "net/event_loop.h"
#include <sluice/time.h>

#include <openssl/ssl.h>

#include <array>
#include <chrono>
#include <memory>
#include <mutex>

namespace sluice::net {

class TicketKeys {
 public:
  static constexpr std::chrono::hours kPeriod{4};

  TicketKeys();
  // The current key becomes the previous one, and the previous one is forgotten.
  void rotate();

  // For SSL_CTX_set_tlsext_ticket_key_evp_cb: -1, 0, 1 or 2, as OpenSSL defines them.
  [[nodiscard]] int encrypt(unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                            EVP_MAC_CTX* mac) const;
  [[nodiscard]] int decrypt(const unsigned char* name, const unsigned char* iv,
                            EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac) const;

 private:
  struct Key {
    std::array<unsigned char, 16> name{};
    std::array<unsigned char, 32> cipher{};
    std::array<unsigned char, 32> mac{};

    Key() = default;
    Key(const Key&) = default;
    Key& operator=(const Key&) = default;
    ~Key();
    [[nodiscard]] static Key random();
    [[nodiscard]] bool is_named(const unsigned char* other) const noexcept;
    [[nodiscard]] bool set_mac(EVP_MAC_CTX* context) const noexcept;
  };

  mutable std::mutex mutex_;  // guards what follows
  Key current_;
  Key previous_;
};

// Rotates the keys at the end of every period.
class TicketRotation {
 public:
  // The loop outlives it.
  TicketRotation(EventLoop& loop, std::shared_ptr<TicketKeys> keys);

  [[nodiscard]] const std::shared_ptr<TicketKeys>& keys() const noexcept { return keys_; }

 private:
  void on_end_of_period();

  EventLoop& loop_;
  std::shared_ptr<TicketKeys> keys_;
  Timer period_;
};

}  // namespace sluice::net
