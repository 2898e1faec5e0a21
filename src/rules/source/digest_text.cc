#include "rules/source/digest_text.h"

#include "base/digest.h"

#include <fmt/format.h>

namespace sluice::rules {

std::string digest_text(std::string_view text) {
  SipHash13 hash{DigestSecret{}};
  hash.append(text);
  const Digest digest = hash.finish();
  return fmt::format("{:016x}{:016x}", digest.high, digest.low);
}

}  // namespace sluice::rules
