#include "net/http/head_writer.h"

#include "net/http/characters.h"
#include "net/http/header_lists.h"
#include "net/http/scan.h"

#include <array>
#include <charconv>
#include <cstring>

namespace sluice::net {
namespace {

using Kind = BodyFraming::Kind;

constexpr std::size_t kDecimalDigitsMax = 20;  // of 64 bits

// Values lose their spaces at both ends when they are read, so those must not be there.
bool is_value(std::string_view text) noexcept {
  if (text.empty()) return true;
  if (is_space(text.front()) || is_space(text.back())) return false;
  return find_control(text) == text.size();
}

char* append(char* at, std::string_view text) noexcept {
  // An empty view may point nowhere, which memcpy must not see.
  if (!text.empty()) std::memcpy(at, text.data(), text.size());
  return at + text.size();
}

bool is_target(std::string_view text) noexcept {
  return !text.empty() && find_not_target(text) == text.size();
}

std::string_view decimal(std::uint64_t number, std::span<char, kDecimalDigitsMax> into) noexcept {
  const char* const end = std::to_chars(into.data(), into.data() + into.size(), number).ptr;
  return {into.data(), static_cast<std::size_t>(end - into.data())};
}

void write_end_to_end(HeadWriter& writer, const MessageHead& head) noexcept {
  for (std::size_t i = 0; i < head.headers.size(); ++i) {
    const HeaderView& header = head.headers[i];
    if (head.restated.contains(i)) continue;
    if (head.connection_names_headers && is_hop_by_hop(header.name, head.headers)) continue;
    writer.header(header.name, header.value);
  }
}

// "a, b": the options of a Connection line. All of them together fit.
class OptionList {
 public:
  void add(std::string_view option) noexcept {
    if (size_ > 0) append(", ");
    append(option);
  }
  [[nodiscard]] std::string_view text() const noexcept { return {text_.data(), size_}; }

 private:
  void append(std::string_view part) noexcept {
    std::memcpy(text_.data() + size_, part.data(), part.size());
    size_ += part.size();
  }

  std::array<char, 32> text_;
  std::size_t size_ = 0;
};

void write_connection(HeadWriter& writer, Forwarding::Persistence persistence, bool upgrades,
                      bool accepts_trailers) noexcept {
  OptionList options;
  if (persistence == Forwarding::Persistence::close) options.add("close");
  if (persistence == Forwarding::Persistence::keep_alive) options.add("keep-alive");
  if (upgrades) options.add("Upgrade");
  if (accepts_trailers) options.add("TE");
  if (!options.text().empty()) writer.header("Connection", options.text());
}

}  // namespace

void HeadWriter::put(std::string_view text) noexcept {
  if (buffer_.size() - size_ < text.size()) {
    is_full_ = true;
    return;
  }
  append(buffer_.data() + size_, text);
  size_ += text.size();
}

void HeadWriter::refuse(const char* why) noexcept {
  if (mistake_ == nullptr) mistake_ = why;
}

void HeadWriter::request_line(std::string_view method, std::string_view target) noexcept {
  if (!is_token(method)) return refuse("not a method");
  if (!is_target(target)) return refuse("not a target");
  put(method);
  put(" ");
  put(target);
  put(" HTTP/1.1\r\n");
}

void HeadWriter::status_line(std::uint16_t status, std::string_view reason) noexcept {
  if (status < 100 || status > 999) return refuse("not a status");
  if (find_control(reason) != reason.size()) return refuse("not a reason");
  put("HTTP/1.1 ");
  std::array<char, kDecimalDigitsMax> digits;
  put(decimal(status, digits));
  put(" ");
  put(reason);
  put("\r\n");
}

void HeadWriter::last_chunk() noexcept { put("0\r\n"); }

void HeadWriter::header(std::string_view name, std::string_view value) noexcept {
  if (!is_token(name)) return refuse("not the name of a header");
  if (!is_value(value)) return refuse("not the value of a header");
  if (buffer_.size() - size_ < name.size() + value.size() + 4) {
    is_full_ = true;
    return;
  }
  char* at = buffer_.data() + size_;
  at = append(at, name);
  at = append(at, ": ");
  at = append(at, value);
  at = append(at, "\r\n");
  size_ = static_cast<std::size_t>(at - buffer_.data());
}

void HeadWriter::header(std::string_view name, std::uint64_t number) noexcept {
  std::array<char, kDecimalDigitsMax> digits;
  header(name, decimal(number, digits));
}

void HeadWriter::framing(const BodyFraming& body) noexcept {
  if (body.kind == Kind::length) header("Content-Length", body.length);
  if (body.kind == Kind::chunked) header("Transfer-Encoding", "chunked");
}

Result<std::string_view> HeadWriter::finish() noexcept {
  put("\r\n");
  if (mistake_ != nullptr) {
    return tl::unexpected{Error{.code = Errc::invalid_argument, .where = mistake_}};
  }
  if (is_full_) {
    return tl::unexpected{
        Error{.code = Errc::unsupported, .where = "headers larger than the buffer"}};
  }
  return std::string_view{buffer_.data(), size_};
}

void write_persistence(HeadWriter& writer, Forwarding::Persistence persistence) noexcept {
  write_connection(writer, persistence, false, false);
}

void write_request(HeadWriter& writer, const RequestHead& head, const Forwarding& how) noexcept {
  const bool upgrades = how.upgrade && !head.upgrade.empty();
  writer.request_line(head.method, head.path_and_query);
  if (!head.host.empty()) writer.header("Host", head.host);
  write_connection(writer, how.persistence, upgrades, head.accepts_trailers);
  if (upgrades) writer.header("Upgrade", head.upgrade);
  if (head.accepts_trailers) writer.header("TE", "trailers");
  if (how.expect_continue && head.expects_continue) writer.header("Expect", "100-continue");
  writer.framing(head.body);
  write_end_to_end(writer, head);
}

void write_response(HeadWriter& writer, const ResponseHead& head, const BodyFraming& body,
                    const Forwarding& how) noexcept {
  const bool upgrades = how.upgrade && !head.upgrade.empty();
  writer.status_line(head.status, head.reason);
  write_connection(writer, how.persistence, upgrades, false);
  if (upgrades) writer.header("Upgrade", head.upgrade);
  writer.framing(body);
  // Without a body it tells how long one would have been; 204 has none to tell about.
  if (body.kind == Kind::none && head.declared_length && head.status != 204) {
    writer.header("Content-Length", *head.declared_length);
  }
  write_end_to_end(writer, head);
}

std::string_view format_chunk_head(std::uint64_t data_bytes,
                                   std::span<char, kChunkHeadBytesMax> into) noexcept {
  char* const begin = into.data();
  char* const end = std::to_chars(begin, begin + into.size() - 2, data_bytes, 16).ptr;
  end[0] = '\r';
  end[1] = '\n';
  return {begin, static_cast<std::size_t>(end - begin) + 2};
}

}  // namespace sluice::net
