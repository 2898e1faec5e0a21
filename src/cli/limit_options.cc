#include "cli/limit_options.h"

#include "base/duration.h"
#include "base/text.h"
#include <sluice/core/limit_text.h>

#include <fmt/format.h>

namespace sluice::cli {
namespace {

tl::unexpected<Diagnostic> in_option(std::string_view option, const Diagnostic& mistake) {
  return tl::unexpected(Diagnostic{fmt::format("{}: {}", option, mistake.message), mistake.remedy});
}

Parsed<std::uint64_t> parse_burst(std::string_view text) {
  if (const auto number = parse_number(text)) return *number;
  return mistake(fmt::format("{} is not a whole number", quoted(text)), "use 1 to 1000000000");
}

// Reads an option with the given parser into a field, when the option was given.
template <class Field, class Parser>
std::optional<Diagnostic> read(std::string_view option, const std::optional<std::string>& text,
                               Parser parse, std::optional<Field>& field) {
  if (!text) return std::nullopt;
  const Parsed<Field> parsed = parse(*text);
  if (!parsed) return in_option(option, parsed.error()).value();
  field = *parsed;
  return std::nullopt;
}

}  // namespace

Parsed<Limit> parse_limit_options(const LimitOptions& options, const LimitFallback& fallback) {
  std::optional<Algorithm> algorithm;
  if (auto wrong = read("--algorithm", options.algorithm, core::parse_algorithm, algorithm)) {
    return tl::unexpected(*wrong);
  }
  if (!algorithm) algorithm = fallback.algorithm;

  const std::optional<std::string>& rate = options.limit ? options.limit : fallback.limit;
  if (!rate) {
    return mistake("there is no limit to apply", "give one with --limit, as in --limit 100/1s");
  }
  Parsed<Limit> limit = core::parse_limit(*rate, algorithm);
  if (!limit) return in_option("--limit", limit.error());

  for (const auto& wrong :
       {read("--burst", options.burst, parse_burst, limit->burst),
        read("--refill", options.refill, core::parse_refill, limit->refill),
        read("--align", options.align, core::parse_align, limit->align),
        read("--bucket-width", options.bucket_width, parse_duration, limit->bucket_width),
        read("--max-delay", options.max_delay, parse_duration, limit->max_delay),
        read("--slot-ttl", options.slot_ttl, parse_duration, limit->slot_ttl)}) {
    if (wrong) return tl::unexpected(*wrong);
  }
  if (options.timezone) limit->timezone = options.timezone;
  limit->count_rejected = options.count_rejected;
  return limit;
}

Parsed<core::CompiledLimit> compile_limit(const Limit& limit) {
  Parsed<core::CompiledLimit> compiled = core::compile(limit);
  if (!compiled) {
    return mistake(fmt::format("limit {}: {}", core::rate_text(limit), compiled.error().message),
                   compiled.error().remedy);
  }
  return compiled;
}

}  // namespace sluice::cli
