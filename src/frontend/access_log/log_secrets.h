// Keeps secrets out of logs: values of query fields, headers and cookies with known secret names.
// Pure once made; immutable, so workers share it.
//
// Names are compared decoded, without case and word separators, since servers and people differ in
// both: `Api%5Fkey`, `api-key` and `apiKey` are one name. A secret in a path cannot be recognised.
#pragma once

#include "base/text_writer.h"

#include <string>
#include <string_view>
#include <vector>

namespace sluice::frontend {

inline constexpr std::string_view kHidden = "***";

// Fields that usually hold credentials.
[[nodiscard]] std::vector<std::string> usual_secret_fields();
[[nodiscard]] std::vector<std::string> usual_secret_headers();
[[nodiscard]] std::vector<std::string> usual_secret_cookies();

class LogSecrets {
 public:
  LogSecrets() : LogSecrets(usual_secret_fields(), usual_secret_headers()) {}
  LogSecrets(std::vector<std::string> query_fields, std::vector<std::string> headers,
             std::vector<std::string> cookies = usual_secret_cookies());

  // A target or a whole URL, with hidden values, and without user and password before the host.
  void write_target(TextWriter& writer, std::string_view target) const noexcept;

  [[nodiscard]] bool is_secret_header(std::string_view name) const noexcept;
  [[nodiscard]] bool is_secret_cookie(std::string_view name) const noexcept;

 private:
  [[nodiscard]] bool is_secret_field(std::string_view encoded_name) const noexcept;
  void write_query(TextWriter& writer, std::string_view query) const noexcept;

  // Sorted, in lower case, without separators.
  std::vector<std::string> fields_;
  std::vector<std::string> headers_;
  std::vector<std::string> cookies_;
};

}  // namespace sluice::frontend
