#include "engine/block_label.h"

#include <sluice/address.h>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <charconv>

namespace sluice::engine {
namespace {

using rules::Per;

class Writer {
 public:
  explicit Writer(std::span<char> to) noexcept : to_(to) {}

  void add(std::string_view text) noexcept {
    const std::size_t size = std::min(text.size(), to_.size() - size_);
    std::ranges::copy(text.substr(0, size), to_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += size;
  }
  // Bytes chosen by clients: omits bytes that would upset a terminal or a log.
  void add_shown(std::string_view value) noexcept {
    for (const char& c : value) {
      const auto byte = static_cast<unsigned char>(c);
      add(byte < 0x20 || byte == 0x7f ? std::string_view{"?"} : std::string_view{&c, 1});
    }
  }
  void add(unsigned number) noexcept {
    std::array<char, 12> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number);
    add({digits.data(), static_cast<std::size_t>(end.ptr - digits.data())});
  }
  [[nodiscard]] std::string_view written() const noexcept { return {to_.data(), size_}; }

 private:
  std::span<char> to_;
  std::size_t size_ = 0;
};

std::string_view word(Per::Kind kind) noexcept {
  switch (kind) {
    case Per::Kind::user: return "user";
    case Per::Kind::api_key: return "api_key";
    case Per::Kind::tenant: return "tenant";
    case Per::Kind::ip: return "ip";
    case Per::Kind::country: return "country";
    case Per::Kind::asn: return "asn";
    case Per::Kind::method: return "method";
    case Per::Kind::route: return "route";
    case Per::Kind::path: return "path";
    case Per::Kind::header: return "header";
    case Per::Kind::query: return "query";
    case Per::Kind::claim: return "claim";
    case Per::Kind::attribute: return "attribute";
    case Per::Kind::descriptor: return "descriptor";
  }
  return "unknown";
}

void add_address(Writer& label, std::string_view bytes, const Per& per) noexcept {
  const bool v4 = bytes.size() == 4;
  // Clients of Unix sockets have no address; only they are counted by 0.0.0.0.
  if (v4 && bytes == std::string_view{"\0\0\0\0", 4}) return label.add("unix");
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::inet_ntop(v4 ? AF_INET : AF_INET6, bytes.data(), text.data(), text.size()) == nullptr) {
    return;
  }
  label.add(std::string_view{text.data()});
  const unsigned bits = per.kind != Per::Kind::ip ? (v4 ? 32 : 64) : v4 ? per.v4_bits : per.v6_bits;
  if (bits == (v4 ? 32 : 128)) return;
  label.add("/");
  label.add(bits);
}

void add_value(Writer& label, Per::Kind kind, std::string_view value, const Per& per) noexcept {
  constexpr std::size_t kShown = 4;
  label.add(word(kind));
  if (kind == per.kind && !per.name.empty()) {
    label.add(".");
    label.add(per.name);
  }
  label.add("=");
  if (kind == Per::Kind::ip) return add_address(label, value, per);
  const bool may_be_secret = kind == Per::Kind::header || kind == Per::Kind::query;
  const bool hidden = may_be_secret && value.size() > kShown;
  label.add_shown(hidden ? value.substr(0, kShown) : value);
  if (hidden) label.add("...");
}

}  // namespace

std::string_view write_label(std::string_view captured, const rules::Rule& rule,
                             std::span<char> to) noexcept {
  Writer label{to};
  if (rule.per.empty()) label.add("everybody");
  for (const Per& one : rule.per) {
    if (captured.size() < 2) break;
    const auto kind = static_cast<Per::Kind>(captured[0]);
    const auto size = std::size_t{static_cast<unsigned char>(captured[1])};
    if (&one != rule.per.data()) label.add(" ");
    add_value(label, kind, captured.substr(2, size), one);
    captured.remove_prefix(std::min(captured.size(), size + 2));
  }
  if (rule.domain != rules::kDefaultDomain) {
    label.add(" domain=");
    label.add(rule.domain);
  }
  return label.written();
}

}  // namespace sluice::engine
