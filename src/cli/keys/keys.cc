#include "cli/keys/keys.h"

#include "app/config/configuration.h"
#include "base/duration.h"
#include "base/read_file.h"
#include "base/replace_file.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "cli/terminal.h"
#include "config/secret_file.h"
#include "embed/config/api_key_file.h"
#include "identity/api_keys.h"
#include <sluice/clock.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace sluice::cli {
namespace {

using identity::ApiKeyRecord;

constexpr std::string_view kCreate = "keys create";
constexpr std::string_view kList = "keys list";

ExitCode fail(std::string_view command, const Diagnostic& mistake, ExitCode code) {
  complain(command, mistake.text());
  return code;
}

std::string or_null(std::string_view text) { return text.empty() ? "null" : json_string(text); }

// ---- new --------------------------------------------------------------------------------------

Parsed<WallTime> parse_expires(std::string_view text, WallTime now) {
  if (const auto instant = parse_rfc3339(text)) {
    if (*instant > now) return *instant;
    return mistake(fmt::format("--expires {} is in the past", text), "name a time to come");
  }
  const auto duration = parse_duration(text);
  if (!duration || *duration <= Nanos{0} || *duration > kWallTimeEnd - now) {
    return mistake(
        fmt::format("--expires {} is neither a length of time nor a time", sluice::quoted(text)),
        "write 90d, or 2030-01-01T00:00:00Z");
  }
  // To the second.
  return WallTime{std::chrono::ceil<std::chrono::seconds>((now + *duration).time_since_epoch())};
}

Parsed<void> add_attribute(std::string_view text, ApiKeyRecord& record) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
    return mistake(fmt::format("--attribute {} is no name and value", sluice::quoted(text)),
                   "write NAME=VALUE, as in plan.seats=5");
  }
  const std::string_view name = text.substr(0, equals);
  if (std::ranges::find(record.attributes, name, [](const auto& one) -> std::string_view {
        return one.first;
      }) != record.attributes.end()) {
    return mistake(fmt::format("the attribute {} is given twice", sluice::quoted(name)),
                   "keep one of them");
  }
  record.attributes.emplace_back(name, text.substr(equals + 1));
  return {};
}

// All but the hash.
Parsed<ApiKeyRecord> record_of(const CreateKeyOptions& options, WallTime now) {
  ApiKeyRecord record{.name = options.name,
                      .hash = {},
                      .user = options.user,
                      .tenant = options.tenant,
                      .tier = options.tier,
                      .attributes = {},
                      .expires = {}};
  if (record.name.empty()) return mistake("--name is empty", "give the key a name");
  if (options.file && options.file->empty()) return mistake("--file is empty", "name a file");
  for (const std::string& attribute : options.attributes) {
    if (Parsed<void> added = add_attribute(attribute, record); !added) {
      return tl::unexpected(std::move(added.error()));
    }
  }
  if (options.expires) {
    const Parsed<WallTime> expires = parse_expires(*options.expires, now);
    if (!expires) return tl::unexpected(expires.error());
    record.expires = *expires;
  }
  return record;
}

// The file that a link leads to: replacing the link would leave the file as it is.
std::string behind_links(const std::string& path) {
  std::error_code failed;
  const auto real = std::filesystem::canonical(path, failed);
  return failed ? path : real.string();
}

Parsed<void> add_to_file(const std::string& path, const ApiKeyRecord& record) {
  Parsed<FileReplacement> replacement = FileReplacement::begin(behind_links(path), WhenBusy::wait);
  if (!replacement) return tl::unexpected(std::move(replacement.error()));
  std::string longer;
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    const Parsed<std::string> text = sluice::read_file(path, embed::kKeyFileBytesMax);
    if (!text) return tl::unexpected(text.error());
    Parsed<std::string> added = embed::with_api_key(*text, path, record);
    if (!added) return tl::unexpected(std::move(added.error()));
    longer = *std::move(added);
  } else {
    longer = embed::key_file_text({record});
  }
  return replacement->finish(longer, FileAccess::as_before);
}

std::string json_of(const ApiKeyRecord& record) {
  std::string attributes;
  for (const auto& [name, value] : record.attributes) {
    attributes += fmt::format("{}{}:{}", attributes.empty() ? "" : ",", json_string(name),
                              json_string(value));
  }
  return fmt::format(
      R"("name":{},"user":{},"tenant":{},"tier":{},"attributes":{{{}}},"expires":{})",
      json_string(record.name), or_null(record.user), or_null(record.tenant), or_null(record.tier),
      attributes, record.expires ? json_string(format_rfc3339(*record.expires)) : "null");
}

void tell(const std::string& key, const ApiKeyRecord& record, const CreateKeyOptions& options,
          Output& output) {
  output.write(fmt::format("{}{}{}\n", output.style(kBold), key, output.style(kPlain)));
  output.write("This key is shown only now; what is kept of it is its hash.\n\n");
  if (!options.file) {
    output.write(
        fmt::format("Below 'keys:' in the file of keys:\n\n{}", embed::key_file_item(record, 2)));
    return;
  }
  output.write(fmt::format("{} has it as {}. Next:\n  sluice keys list --file {}\n", *options.file,
                           sluice::quoted(record.name), *options.file));
}

// ---- list -------------------------------------------------------------------------------------

std::string expires_text(const ApiKeyRecord& record, WallTime now) {
  if (!record.expires) return "never";
  return format_rfc3339(*record.expires) + (*record.expires <= now ? ", expired" : "");
}

std::string table_of(const std::vector<ApiKeyRecord>& records, WallTime now, const Output& output) {
  Table table{{{"name"}, {"user"}, {"tenant"}, {"tier"}, {"expires"}}};
  const auto cell = [](const std::string& text) { return text.empty() ? "-" : text; };
  for (const ApiKeyRecord& record : records) {
    table.add({record.name, cell(record.user), cell(record.tenant), cell(record.tier),
               expires_text(record, now)});
  }
  return table.text(output);
}

}  // namespace

ExitCode create_key(const CreateKeyOptions& options) {
  Parsed<ApiKeyRecord> record = record_of(options, SystemClock{}.now().wall());
  if (!record) return fail(kCreate, record.error(), ExitCode::usage);
  std::string secret;
  if (!options.secret_file.empty()) {
    Parsed<std::string> read = config::read_secret(options.secret_file);
    if (!read) return fail(kCreate, read.error(), ExitCode::failure);
    secret = *std::move(read);
  }
  const std::string key = identity::new_api_key();
  record->hash = identity::hash_api_key(key, secret);
  if (options.file) {
    const Parsed<void> added = add_to_file(*options.file, *record);
    if (!added) return fail(kCreate, added.error(), ExitCode::failure);
  }
  Output output;
  if (options.json) {
    output.write(fmt::format("{{\"key\":{},\"hash\":{},{}}}\n", json_string(key),
                             json_string(record->hash), json_of(*record)));
  } else {
    tell(key, *record, options, output);
  }
  return output.finish(kCreate, ExitCode::ok);
}

ExitCode list_keys(const ListKeysOptions& options) {
  const Parsed<std::string> text = sluice::read_file(options.file, embed::kKeyFileBytesMax);
  if (!text) return fail(kList, text.error(), ExitCode::failure);
  config::Diagnostics diagnostics;
  const auto records = embed::read_api_keys(*text, options.file, diagnostics);
  if (!diagnostics.ok()) {
    fmt::print(stderr, "{}", diagnostics.text());
    return ExitCode::failure;
  }
  const WallTime now = SystemClock{}.now().wall();
  Output output;
  if (options.json) {
    for (const ApiKeyRecord& record : records) {
      output.write(fmt::format("{{{},\"expired\":{}}}\n", json_of(record),
                               record.expires && *record.expires <= now));
    }
  } else if (records.empty()) {
    output.write(fmt::format("{} has no keys yet; 'sluice keys create' makes one\n", options.file));
  } else {
    output.write(table_of(records, now, output));
  }
  return output.finish(kList, ExitCode::ok);
}

}  // namespace sluice::cli
