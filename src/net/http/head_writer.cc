#include "net/http/head_writer.h"

#include "net/http/characters.h"
#include "net/http/header_lists.h"
#include "net/http/scan.h"
#include "net/http/status_text.h"

#include <array>
#include <charconv>
#include <cstring>

namespace sluice::net {
namespace {

using Kind = BodyFraming::Kind;

bool is_target(std::string_view text) noexcept {
  return !text.empty() && find_not_target(text) == text.size();
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

void HeadWriter::request_line(std::string_view method, std::string_view target) noexcept {
  if (!is_token(method)) return refuse("not a method");
  if (!is_target(target)) return refuse("not a target");
  out_.put(method, " ", target, " HTTP/1.1\r\n");
}

void HeadWriter::status_line(std::uint16_t status, std::string_view reason) noexcept {
  if (find_control(reason) != reason.size()) return refuse("not a reason");
  write_status(status, reason);
}

void HeadWriter::status_line(std::uint16_t status) noexcept {
  write_status(status, reason_phrase(status));
}

void HeadWriter::write_status(std::uint16_t status, std::string_view reason) noexcept {
  if (status < 100 || status > 999) return refuse("not a status");
  out_.put("HTTP/1.1 ");
  out_.number(status);
  out_.put(" ", reason, "\r\n");
}

void HeadWriter::last_chunk() noexcept { out_.put("0\r\n"); }

void HeadWriter::header(std::string_view name, std::string_view value) noexcept {
  if (name.empty() || find_not_token(name) != name.size()) {
    return refuse("not the name of a header");
  }
  if (!is_value(value)) return refuse("not the value of a header");
  out_.put(name, ": ", value, "\r\n");
}

void HeadWriter::header(std::string_view name, std::uint64_t number) noexcept {
  std::array<char, 20> digits;  // of 64 bits
  TextWriter value{digits};
  value.number(number);
  header(name, value.text());
}

void HeadWriter::framing(const BodyFraming& body) noexcept {
  if (body.kind == Kind::length) own_header("Content-Length", body.length);
  if (body.kind == Kind::chunked) own_line("Transfer-Encoding: chunked");
}

Result<std::string_view> HeadWriter::finish() noexcept {
  out_.put("\r\n");
  if (mistake_ != nullptr) {
    return tl::unexpected{Error{.code = Errc::invalid_argument, .where = mistake_}};
  }
  if (out_.is_full()) {
    return tl::unexpected{
        Error{.code = Errc::unsupported, .where = "headers larger than the buffer"}};
  }
  return out_.text();
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
