// Random bytes for secrets.
#pragma once

#include <span>

namespace sluice::crypto {

// Without a source of such bytes the process ends: a secret that can be guessed is worse.
void fill_random(std::span<unsigned char> bytes);

}  // namespace sluice::crypto
