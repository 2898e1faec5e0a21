#include "identity/proxy_protocol.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <optional>

namespace sluice::identity {
namespace {

using State = ProxyParse::State;

constexpr std::string_view kSignature1 = "PROXY ";
constexpr std::string_view kSignature2{"\r\n\r\n\0\r\nQUIT\n", 12};
constexpr std::size_t kLine1Max = 107;  // the longest line that the protocol allows, with its end
constexpr std::size_t kFixed2 = 16;     // signature, command, family, length
constexpr std::size_t kUniqueIdMax = 128;

ProxyParse malformed(const char* why) noexcept { return {.state = State::malformed, .why = why}; }

// True while the bytes could still become the signature.
bool may_begin_with(std::string_view bytes, std::string_view signature) noexcept {
  const std::size_t shared = std::min(bytes.size(), signature.size());
  return bytes.substr(0, shared) == signature.substr(0, shared);
}

// ---- version 1 --------------------------------------------------------------------------------

std::optional<std::uint16_t> parse_port(std::string_view digits) noexcept {
  const std::optional<std::uint64_t> port = parse_number(digits);
  const bool padded = digits.size() > 1 && digits.front() == '0';
  if (!port || padded || *port > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(*port);
}

// Up to the next space, which goes too; parts are separated by exactly one.
std::string_view take_word(std::string_view& rest) noexcept {
  const std::size_t space = rest.find(' ');
  const std::string_view word = rest.substr(0, space);
  rest.remove_prefix(space == std::string_view::npos ? rest.size() : space + 1);
  return word;
}

ProxyParse parse_addresses1(std::string_view line, bool is_v6) noexcept {
  const std::string_view source_text = take_word(line);
  const std::string_view destination_text = take_word(line);
  const std::string_view source_port_text = take_word(line);
  const auto is_of_family = [is_v6](std::string_view text) {
    return (text.find(':') != std::string_view::npos) == is_v6;
  };
  if (!is_of_family(source_text) || !is_of_family(destination_text)) {
    return malformed("an address of the other family");
  }
  const std::optional<IpAddress> source = IpAddress::parse(source_text);
  const std::optional<IpAddress> destination = IpAddress::parse(destination_text);
  if (!source || !destination) return malformed("not an address");
  const std::optional<std::uint16_t> source_port = parse_port(source_port_text);
  const std::optional<std::uint16_t> destination_port = parse_port(line);
  if (!source_port || !destination_port) return malformed("not a port");
  ProxyParse parse{.state = State::done};
  parse.header = {.has_addresses = true,
                  .source = *source,
                  .destination = *destination,
                  .source_port = *source_port,
                  .destination_port = *destination_port,
                  .transport = ProxyTransport::stream};
  return parse;
}

ProxyParse parse_line1(std::string_view line) noexcept {
  line.remove_prefix(kSignature1.size());
  const std::string_view family = take_word(line);
  if (family == "TCP4") return parse_addresses1(line, false);
  if (family == "TCP6") return parse_addresses1(line, true);
  // Whatever else stands on the line of an unknown client is to be ignored.
  if (family == "UNKNOWN") return {.state = State::done};
  return malformed("an unknown protocol");
}

ProxyParse parse1(std::string_view bytes) noexcept {
  const std::string_view window = bytes.substr(0, kLine1Max);
  const std::size_t end = window.find_first_of("\r\n");
  if (end == std::string_view::npos) {
    return window.size() == kLine1Max ? malformed("the line is too long") : ProxyParse{};
  }
  if (window[end] != '\r') return malformed("the line ends without a carriage return");
  if (end + 1 == window.size()) {
    return window.size() == kLine1Max ? malformed("the line is too long") : ProxyParse{};
  }
  if (window[end + 1] != '\n') return malformed("a carriage return inside the line");
  ProxyParse parse = parse_line1(window.substr(0, end));
  if (parse.state == State::done) parse.consumed = end + 2;
  return parse;
}

// ---- version 2 --------------------------------------------------------------------------------

std::uint8_t byte_at(std::string_view bytes, std::size_t i) noexcept {
  return static_cast<std::uint8_t>(bytes[i]);
}

std::uint16_t u16_at(std::string_view bytes, std::size_t i) noexcept {
  return static_cast<std::uint16_t>(byte_at(bytes, i) << 8U | byte_at(bytes, i + 1));
}

std::uint32_t u32_at(std::string_view bytes, std::size_t i) noexcept {
  return std::uint32_t{u16_at(bytes, i)} << 16U | u16_at(bytes, i + 2);
}

IpAddress v6_at(std::string_view bytes, std::size_t i) noexcept {
  std::array<std::uint8_t, 16> address{};
  for (std::size_t k = 0; k < address.size(); ++k) address[k] = byte_at(bytes, i + k);
  return IpAddress::v6(address);
}

// Type, length, value; nothing when the length leads beyond the end.
struct Extension {
  std::uint8_t type = 0;
  std::string_view value;
};

constexpr std::size_t kExtensionHead = 3;

std::optional<Extension> take_extension(std::string_view& rest) noexcept {
  if (rest.size() < kExtensionHead) return std::nullopt;
  const std::size_t length = u16_at(rest, 1);
  if (rest.size() - kExtensionHead < length) return std::nullopt;
  const Extension extension{byte_at(rest, 0), rest.substr(kExtensionHead, length)};
  rest.remove_prefix(kExtensionHead + length);
  return extension;
}

enum ExtensionType : std::uint8_t {
  alpn = 0x01,
  authority = 0x02,
  checksum = 0x03,
  unique_id = 0x05,
  tls = 0x20,
};

// One byte of flags and four of the verdict, then extensions of its own.
bool is_tls_extension(std::string_view value) noexcept {
  constexpr std::size_t kHead = 5;
  if (value.size() < kHead) return false;
  value.remove_prefix(kHead);
  while (!value.empty()) {
    if (!take_extension(value)) return false;
  }
  return true;
}

// The sum is computed as if its own four bytes were zero.
bool is_checksum_right(std::string_view header, std::string_view sum) noexcept {
  constexpr std::string_view kZeros{"\0\0\0\0", 4};
  const auto at = static_cast<std::size_t>(sum.data() - header.data());
  std::uint32_t computed = crc32c(header.substr(0, at));
  computed = crc32c(kZeros, computed);
  computed = crc32c(header.substr(at + kZeros.size()), computed);
  return computed == u32_at(sum, 0);
}

// Null: all is well.
const char* read_extensions(std::string_view header, std::size_t begin,
                            ProxyHeader& into) noexcept {
  std::string_view rest = header.substr(begin);
  bool summed = false;
  while (!rest.empty()) {
    const std::optional<Extension> extension = take_extension(rest);
    if (!extension) return "an extension is longer than the header";
    const std::string_view value = extension->value;
    switch (extension->type) {
      case ExtensionType::alpn: into.alpn = value; break;
      case ExtensionType::authority: into.authority = value; break;
      case ExtensionType::checksum:
        if (value.size() != 4 || summed) return "not a checksum";
        if (!is_checksum_right(header, value)) return "the checksum is wrong";
        summed = true;
        break;
      case ExtensionType::unique_id:
        if (value.size() > kUniqueIdMax) return "the unique id is too long";
        into.unique_id = value;
        break;
      case ExtensionType::tls:
        if (!is_tls_extension(value)) return "not a TLS extension";
        break;
      default: break;  // others are none of our business
    }
  }
  return nullptr;
}

// How many bytes the addresses of a family take; nothing for a family that does not exist.
std::optional<std::size_t> address_bytes(std::uint8_t family) noexcept {
  switch (family) {
    case 0x00: return 0;
    case 0x11:
    case 0x12: return 12;
    case 0x21:
    case 0x22: return 36;
    case 0x31:
    case 0x32: return 216;
    default: return std::nullopt;
  }
}

void read_addresses(std::string_view bytes, std::uint8_t family, ProxyHeader& into) noexcept {
  constexpr std::uint8_t kV4 = 1;
  constexpr std::uint8_t kV6 = 2;
  if ((family & 0x0fU) == 1) into.transport = ProxyTransport::stream;
  if ((family & 0x0fU) == 2) into.transport = ProxyTransport::datagram;
  if (family >> 4U == kV4) {
    into.source = IpAddress::v4(u32_at(bytes, 0));
    into.destination = IpAddress::v4(u32_at(bytes, 4));
    into.source_port = u16_at(bytes, 8);
    into.destination_port = u16_at(bytes, 10);
    into.has_addresses = true;
  } else if (family >> 4U == kV6) {
    into.source = v6_at(bytes, 0);
    into.destination = v6_at(bytes, 16);
    into.source_port = u16_at(bytes, 32);
    into.destination_port = u16_at(bytes, 34);
    into.has_addresses = true;
  }
}

ProxyParse parse_whole2(std::string_view header, std::uint8_t command) noexcept {
  ProxyParse parse{.state = State::done, .consumed = header.size()};
  if (command == 0) {  // LOCAL: family and block are to be ignored
    parse.header.is_local = true;
    return parse;
  }
  const std::uint8_t family = byte_at(header, 13);
  const std::optional<std::size_t> addresses = address_bytes(family);
  if (!addresses) return malformed("an unknown family");
  if (header.size() - kFixed2 < *addresses) return malformed("too short for its addresses");
  read_addresses(header.substr(kFixed2), family, parse.header);
  const char* const wrong = read_extensions(header, kFixed2 + *addresses, parse.header);
  return wrong == nullptr ? parse : malformed(wrong);
}

ProxyParse parse2(std::string_view bytes, std::size_t header_bytes_max) noexcept {
  // What is wrong is told as soon as it is there, not after a wait for what will not come.
  if (bytes.size() > 12) {
    const std::uint8_t version_and_command = byte_at(bytes, 12);
    if (version_and_command >> 4U != 2) return malformed("an unknown version");
    if ((version_and_command & 0x0fU) > 1) return malformed("an unknown command");
  }
  if (bytes.size() < kFixed2) return {};
  const std::size_t size = kFixed2 + u16_at(bytes, 14);
  if (size > header_bytes_max) return malformed("the header is too long");
  if (bytes.size() < size) return {};
  return parse_whole2(bytes.substr(0, size), byte_at(bytes, 12) & 0x0fU);
}

constexpr std::array<std::uint32_t, 256> make_crc_table() noexcept {
  constexpr std::uint32_t kReversedPolynomial = 0x82f63b78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value & 1U) != 0 ? value >> 1U ^ kReversedPolynomial : value >> 1U;
    }
    table[i] = value;
  }
  return table;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes, std::uint32_t continued) noexcept {
  static constexpr std::array<std::uint32_t, 256> kTable = make_crc_table();
  std::uint32_t crc = ~continued;
  for (const char c : bytes) {
    crc = crc >> 8U ^ kTable[(crc ^ static_cast<std::uint8_t>(c)) & 0xffU];
  }
  return ~crc;
}

ProxyParse parse_proxy_header(std::string_view bytes, std::size_t header_bytes_max) noexcept {
  if (bytes.empty()) return {};
  if (may_begin_with(bytes, kSignature1)) {
    return bytes.size() < kSignature1.size() ? ProxyParse{} : parse1(bytes);
  }
  if (may_begin_with(bytes, kSignature2)) {
    return bytes.size() < kSignature2.size() ? ProxyParse{} : parse2(bytes, header_bytes_max);
  }
  return malformed("no PROXY header");
}

}  // namespace sluice::identity
