// http_parser, which read HTTP for Node.js for ten years, as a second opinion: whatever we accept,
// it must read the same.
//
// It accepts much that we refuse. It knows a fixed list of methods, so that it is given POST
// instead of any other: the rest of a head does not depend on the method.
#pragma once

#include "net/http/http_fixture.h"

#include <http_parser.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::net::fixture {

// Collects what http_parser reports of one message.
class OtherReader {
 public:
  explicit OtherReader(http_parser_type type) {
    http_parser_set_max_header_size(std::uint32_t{1} << 30U);
    http_parser_init(&parser_, type);
    parser_.data = this;
  }
  OtherReader(const OtherReader&) = delete;
  OtherReader& operator=(const OtherReader&) = delete;
  ~OtherReader() = default;

  void read(std::string_view bytes) {
    http_parser_settings settings;
    http_parser_settings_init(&settings);
    settings.on_url = append<&OtherReader::start_>;
    settings.on_status = append<&OtherReader::start_>;
    settings.on_header_field = [](http_parser* parser, const char* at, std::size_t size) {
      OtherReader& self = of(parser);
      self.end_line();
      self.name_.append(at, size);
      return 0;
    };
    settings.on_header_value = append<&OtherReader::value_>;
    settings.on_headers_complete = [](http_parser* parser) {
      of(parser).end_head();
      return 0;
    };
    settings.on_body = append<&OtherReader::body_>;
    settings.on_message_complete = [](http_parser* parser) {
      of(parser).is_done_ = true;
      return 0;
    };
    consumed_ = http_parser_execute(&parser_, &settings, bytes.data(), bytes.size());
  }

  [[nodiscard]] bool has_head() const { return error().empty() && !framing_.empty(); }
  [[nodiscard]] bool is_done() const { return error().empty() && is_done_; }
  [[nodiscard]] std::string error() const {
    const auto code = static_cast<http_errno>(parser_.http_errno);
    return code == HPE_OK ? std::string{} : http_errno_description(code);
  }
  [[nodiscard]] std::size_t consumed() const { return consumed_; }
  [[nodiscard]] unsigned status() const { return parser_.status_code; }
  [[nodiscard]] const std::string& start() const { return start_; }  // target or reason
  [[nodiscard]] const std::string& framing() const { return framing_; }
  [[nodiscard]] const std::string& lines() const { return lines_; }
  [[nodiscard]] const std::string& body() const { return body_; }

 private:
  static OtherReader& of(http_parser* parser) { return *static_cast<OtherReader*>(parser->data); }

  template <std::string OtherReader::* Text>
  static int append(http_parser* parser, const char* at, std::size_t size) {
    (of(parser).*Text).append(at, size);
    return 0;
  }

  // It leaves blanks behind a value where they are.
  void end_line() {
    if (name_.empty()) return;
    value_.erase(value_.find_last_not_of(" \t") + 1);
    lines_ += line(name_, value_);
    name_.clear();
    value_.clear();
  }

  // What says how long the body is; the parser reuses its length for chunks.
  void end_head() {
    end_line();
    if ((parser_.flags & F_CHUNKED) != 0) {
      framing_ = "chunked";
    } else if ((parser_.flags & F_CONTENTLENGTH) != 0) {
      framing_ = "length " + std::to_string(parser_.content_length);
    } else {
      framing_ = parser_.type == HTTP_RESPONSE ? "until close" : "none";
    }
  }

  http_parser parser_{};
  std::string start_;
  std::string name_;
  std::string value_;
  std::string lines_;
  std::string framing_;
  std::string body_;
  std::size_t consumed_ = 0;
  bool is_done_ = false;
};

inline std::string describe_lines(const MessageHead& head) {
  std::string text;
  for (const HeaderView& one : head.headers) text += line(one.name, one.value);
  return text;
}

inline std::string head_text(std::size_t bytes, const std::string& framing,
                             const std::string& start, const std::string& lines) {
  return "complete at " + std::to_string(bytes) + ", " + framing + "\n" + start + "\n" + lines;
}

// `added`: how much longer the bytes were made.
inline std::string head_text(const OtherReader& reader, const std::string& start_begins,
                             std::size_t added = 0) {
  if (!reader.error().empty()) return "refused: " + reader.error();
  if (!reader.has_head()) return "needs more";
  return head_text(reader.consumed() - added, reader.framing(), start_begins + reader.start(),
                   reader.lines());
}

inline std::string request_by_http_parser(std::string_view head_bytes) {
  const std::string method{head_bytes.substr(0, head_bytes.find(' '))};
  const std::string given = method == "CONNECT" ? method : "POST";
  OtherReader reader{HTTP_REQUEST};
  reader.read(given + std::string{head_bytes.substr(method.size())});
  return head_text(reader, method + " ", given.size() - method.size());
}

inline std::string response_by_http_parser(std::string_view head_bytes) {
  OtherReader reader{HTTP_RESPONSE};
  reader.read(head_bytes);
  return head_text(reader, std::to_string(reader.status()) + " ");
}

inline std::string as_http_parser_says_it(const RequestHead& head, std::size_t head_bytes) {
  return head_text(head_bytes, describe(head.body),
                   std::string{head.method} + " " + std::string{head.target}, describe_lines(head));
}

inline std::string as_http_parser_says_it(const ResponseHead& head, std::size_t head_bytes) {
  return head_text(head_bytes, describe(head.body),
                   std::to_string(head.status) + " " + std::string{head.reason},
                   describe_lines(head));
}

// The data of a chunked body, behind a head that announces it.
inline std::string body_by_http_parser(std::string_view chunks) {
  OtherReader reader{HTTP_REQUEST};
  reader.read("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string{chunks});
  if (!reader.error().empty()) return "refused: " + reader.error();
  return (reader.is_done() ? "done\n" : "not done\n") + reader.body();
}

}  // namespace sluice::net::fixture
