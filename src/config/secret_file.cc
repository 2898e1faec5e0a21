#include "config/secret_file.h"

#include "base/read_file.h"

#include <cstddef>
#include <utility>

namespace sluice::config {
namespace {

constexpr std::size_t kSecretBytesMax = 64U << 10U;

}  // namespace

Parsed<std::string> read_secret(const std::string& path) {
  Parsed<std::string> secret = read_trusted_file(path, kSecretBytesMax);
  if (!secret) return secret;
  while (secret->ends_with('\n') || secret->ends_with('\r')) secret->pop_back();
  if (secret->empty()) return mistake("the secret in '" + path + "' is empty", "write it there");
  return secret;
}

void warn_of_exposure(const std::string& secret_file, Diagnostics& diagnostics) {
  if (secret_file.empty()) return;
  if (auto exposed = warn_if_world_readable(secret_file)) diagnostics.warning(*std::move(exposed));
}

}  // namespace sluice::config
