#include "base/text_writer.h"

#include "base/json_escape.h"

#include <arpa/inet.h>
#include <array>

namespace sluice {

void TextWriter::padded(std::uint64_t value, unsigned width) noexcept {
  constexpr std::string_view kZeros = "00000000000000000000";
  char digits[20];
  const char* const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  const auto count = static_cast<std::size_t>(end - digits);
  if (count < width) put(kZeros.substr(0, width - count));
  put(std::string_view{digits, count});
}

void TextWriter::json(std::string_view text) noexcept {
  if (is_plain_in_json(text)) return put("\"", text, "\"");
  put('"');
  escape_json(text, [this](std::string_view piece) { put(piece); });
  put('"');
}

void TextWriter::address(const IpAddress& address) noexcept {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(address.is_v4 ? AF_INET : AF_INET6, address.bytes.data(), text.data(), text.size());
  put(std::string_view{text.data()});
}

}  // namespace sluice
