// One request in one line of an access log.
//
//   json   an object with what `sluice replay --rules` reads, under the names that it reads, and
//          more: how the request was decided, by which rule, its upstream, its duration.
//   text   nginx's combined format, which the same command and many others read, followed by the
//          decision.
//
// Whatever clients send, a line stays a line: bytes that could end it or forge another field are
// escaped. Secrets are hidden. No allocation.
#pragma once

#include "engine/op.h"
#include "frontend/access_log/log_secrets.h"
#include <sluice/address.h>
#include <sluice/request.h>
#include <sluice/time.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::frontend {

class UpstreamMeters;

// The upstream side of a request.
struct UpstreamRecord {
  std::string_view name;     // of the group; empty: not forwarded
  std::string_view address;  // of the server
  std::uint16_t status = 0;  // 0: no response
  bool broke_off = false;    // within its response
  Nanos first_byte{0};
  std::uint32_t retries = 0;               // how often it was forwarded again
  const UpstreamMeters* meters = nullptr;  // null: not counted
};

// Views into the front end's state at the end of a request.
struct AccessRecord {
  WallTime at;              // when the request came
  Nanos duration{0};        // until the last byte of the response
  IpAddress ip;             // of the client, behind trusted proxies
  bool is_local = false;    // through a Unix socket: the client has no address
  std::string_view method;  // empty: a malformed request
  std::string_view host;
  std::string_view target;
  std::string_view protocol = "HTTP/1.1";
  std::span<const HeaderView> headers;  // of the request; only configured ones are written
  bool through_trusted = false;         // a trusted proxy forwarded it
  std::string_view user;
  std::string_view api_key;  // its public name
  std::string_view tenant;
  std::string_view tier;
  std::string_view country;
  std::uint32_t asn = 0;
  std::string_view request_id;
  std::string_view trace_id;      // of a trace generated here; empty: that of the headers, if any
  std::string_view fault;         // what went wrong, for people; static text, empty: nothing
  std::string_view fault_reason;  // and why, from the system or OpenSSL
  std::uint16_t status = 0;       // 0: closed without a response
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  UpstreamRecord upstream;
  const engine::Op* op = nullptr;  // decided and not settled; null: not decided
  // Of the configuration that decided the request; null: that of the format. A reload may have
  // moved keys to another header, field or cookie since.
  const LogSecrets* secrets = nullptr;
};

// Whether the gateway itself rejected the request.
[[nodiscard]] bool is_refusal(const AccessRecord& record) noexcept;

enum class LogForm : std::uint8_t { text, json };

// Immutable, so workers share it.
class AccessFormat {
 public:
  struct Options {
    LogForm form = LogForm::text;
    // Written in JSON; of the latter two only their presence.
    std::vector<std::string> headers;
    std::vector<std::string> cookies;
    std::vector<std::string> header_names;
    std::vector<std::string> cookie_names;
    bool trust = false;  // whether a trusted proxy forwarded the request, in JSON
    LogSecrets secrets;
  };
  explicit AccessFormat(Options options);

  // The line with its end; empty if it does not fit. `suppressed` is how many lines like it were
  // omitted before.
  [[nodiscard]] std::string_view write(std::span<char> room, const AccessRecord& record,
                                       std::uint64_t suppressed = 0) const noexcept;

 private:
  void write_json(TextWriter& line, const AccessRecord& record,
                  std::uint64_t suppressed) const noexcept;
  void write_text(TextWriter& line, const AccessRecord& record,
                  std::uint64_t suppressed) const noexcept;
  // What is written of one header or cookie.
  struct Wanted {
    std::string name;  // of a header in lower case
    bool is_hidden = false;
  };
  template <class IsSecret>
  [[nodiscard]] static std::vector<Wanted> wanted(std::vector<std::string> shown,
                                                  std::vector<std::string> named,
                                                  IsSecret&& is_secret);
  [[nodiscard]] bool write_headers(TextWriter& line, const AccessRecord& record) const noexcept;
  [[nodiscard]] bool write_cookies(TextWriter& line, const AccessRecord& record) const noexcept;
  [[nodiscard]] const LogSecrets& secrets_of(const AccessRecord& record) const noexcept {
    return record.secrets != nullptr ? *record.secrets : secrets_;
  }

  LogForm form_;
  std::vector<Wanted> headers_;  // by name, each once
  std::vector<Wanted> cookies_;  // the same
  bool trust_;
  LogSecrets secrets_;
};

// No line is longer: `sluice replay` would reject it.
inline constexpr std::size_t kLogLineBytesMax = 32U << 10U;

}  // namespace sluice::frontend
