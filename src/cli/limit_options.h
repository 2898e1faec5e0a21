// The options by which replay and load describe a limit, as text from the command line.
#pragma once

#include <sluice/core/compiled_limit.h>
#include <sluice/diagnostic.h>
#include <sluice/limit.h>

#include <optional>
#include <string>

namespace sluice::cli {

struct LimitOptions {
  std::optional<std::string> algorithm;
  std::optional<std::string> limit;
  std::optional<std::string> burst;
  std::optional<std::string> refill;
  std::optional<std::string> align;
  std::optional<std::string> timezone;
  std::optional<std::string> bucket_width;
  std::optional<std::string> max_delay;
  std::optional<std::string> slot_ttl;
  bool count_rejected = false;
};

// The limit that the options spell. Where they leave the rate or the algorithm open, `fallback`
// fills in. A mistake names its option. The limit still has to be compiled.
struct LimitFallback {
  std::optional<std::string> limit;
  std::optional<Algorithm> algorithm;
};
[[nodiscard]] Parsed<Limit> parse_limit_options(const LimitOptions& options,
                                                const LimitFallback& fallback = {});

// core::compile, with a message that names the limit.
[[nodiscard]] Parsed<core::CompiledLimit> compile_limit(const Limit& limit);

}  // namespace sluice::cli
