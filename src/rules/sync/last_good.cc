#include "rules/sync/last_good.h"

#include "base/read_file.h"
#include "base/replace_file.h"
#include "base/text.h"
#include "rules/source/digest_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <sys/stat.h>
#include <utility>

namespace sluice::rules {
namespace {

// The last number is that of the format:
//
//   sluice last good rules 1
//   digest HEX                 of all that follows this line
//   accepted NANOSECONDS       since 1970
//   source BYTES               and so many bytes on the next lines, then a line end
//   version BYTES
//   text BYTES
constexpr std::string_view kTitle = "sluice last good rules ";
constexpr std::string_view kFormat = "1";
constexpr std::size_t kAroundTextMax = std::size_t{64} << 10U;

std::string field(std::string_view name, std::string_view value) {
  return fmt::format("{} {}\n{}\n", name, value.size(), value);
}

tl::unexpected<Diagnostic> ignored(const std::string& path, std::string_view why,
                                   std::string remedy) {
  return mistake(fmt::format("{} is ignored: {}", path, why), std::move(remedy));
}

tl::unexpected<Diagnostic> damaged(const std::string& path) {
  return ignored(path, "it is damaged",
                 "delete it; the next accepted rules replace it in any case");
}

// Takes one line off the front and returns the text after the name; nothing for another name.
std::optional<std::string_view> take_line(std::string_view& file, std::string_view name) {
  const std::size_t end = file.find('\n');
  if (end == std::string_view::npos || !file.starts_with(name)) return std::nullopt;
  if (end < name.size()) return std::nullopt;
  const std::string_view value = file.substr(name.size(), end - name.size());
  file.remove_prefix(end + 1);
  return value;
}

std::optional<std::uint64_t> take_number(std::string_view& file, std::string_view name) {
  const std::optional<std::string_view> digits = take_line(file, name);
  return digits ? parse_number(*digits) : std::nullopt;
}

std::optional<std::string> take_field(std::string_view& file, std::string_view name) {
  const std::optional<std::uint64_t> size = take_number(file, name);
  if (!size || *size >= file.size() || file[*size] != '\n') return std::nullopt;
  std::string value{file.substr(0, *size)};
  file.remove_prefix(*size + 1);
  return value;
}

std::optional<WallTime> take_instant(std::string_view& file, std::string_view name) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const std::optional<std::uint64_t> nanos = take_number(file, name);
  if (!nanos || *nanos > kMax) return std::nullopt;
  return WallTime{Nanos{static_cast<std::int64_t>(*nanos)}};
}

}  // namespace

LastGood::LastGood(LastGoodPlace place) : place_(std::move(place)) {}

Parsed<void> LastGood::keep(const Kept& kept, const std::function<void()>& before_rename) const {
  if (kept.text.size() > place_.bytes_max) {
    return mistake(fmt::format("{} bytes of rules are more than {} keeps, {}", kept.text.size(),
                               path(), place_.bytes_max),
                   "raise the limit on the size of rules");
  }
  const std::size_t slash = path().rfind('/');
  // If it fails, so does writing, which reports why.
  if (slash != std::string::npos) ::mkdir(path().substr(0, slash).c_str(), S_IRWXU);
  return replace_file(path(), last_good_file(place_.source, kept), before_rename);
}

Parsed<std::optional<Kept>> LastGood::load() const {
  const auto file = read_settled_file(
      path(), {.bytes_max = place_.bytes_max + kAroundTextMax, .follow_link = false});
  if (!file) {
    if (file.error().missing) return std::nullopt;
    return tl::unexpected(file.error().what);
  }
  Parsed<Kept> kept = parse_last_good(*file, place_.source, path());
  if (!kept) return tl::unexpected(std::move(kept.error()));
  return *std::move(kept);
}

std::string last_good_file(std::string_view source, const Kept& kept) {
  const Nanos accepted = std::max(kept.accepted.time_since_epoch(), Nanos{0});
  const std::string below =
      fmt::format("accepted {}\n{}{}{}", accepted.count(), field("source", source),
                  field("version", kept.version), field("text", kept.text));
  return fmt::format("{}{}\ndigest {}\n{}", kTitle, kFormat, digest_text(below), below);
}

Parsed<Kept> parse_last_good(std::string_view file, std::string_view source,
                             const std::string& path) {
  const std::optional<std::string_view> format = take_line(file, kTitle);
  if (!format) return ignored(path, "it holds no rules kept by sluice", "move it elsewhere");
  if (*format != kFormat) {
    return ignored(path, "another version of sluice has written it",
                   "delete it, or go on with that version");
  }
  const std::optional<std::string_view> digest = take_line(file, "digest ");
  if (!digest || *digest != digest_text(file)) return damaged(path);

  const std::optional<WallTime> accepted = take_instant(file, "accepted ");
  const std::optional<std::string> kept_source = take_field(file, "source ");
  std::optional<std::string> version = take_field(file, "version ");
  std::optional<std::string> text = take_field(file, "text ");
  if (!accepted || !kept_source || !version || !text || !file.empty()) return damaged(path);
  if (*kept_source != source) {
    return ignored(
        path,
        fmt::format("it holds rules from {}, not from {}", quoted(*kept_source), quoted(source)),
        "delete it if the source was changed on purpose, or name another file for them");
  }
  return Kept{.text = *std::move(text), .version = *std::move(version), .accepted = *accepted};
}

}  // namespace sluice::rules
