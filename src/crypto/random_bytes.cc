#include "crypto/random_bytes.h"

#include <openssl/rand.h>

#include <cstdio>
#include <cstdlib>

namespace sluice::crypto {

void fill_random(std::span<unsigned char> bytes) {
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1) return;
  std::fputs("no random numbers from OpenSSL\n", stderr);
  std::abort();
}

}  // namespace sluice::crypto
