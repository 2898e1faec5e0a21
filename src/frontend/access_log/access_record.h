// One request in one line of an access log.
//
//   json   an object with what `sluice replay --rules` reads, under the names that it reads, and
//          more: how the request was decided, by which rule, who answered it, how long that took.
//   text   nginx's combined format, which is read by the same command and by many others, with the
//          decision behind it.
//
// Whatever clients send, a line stays a line: what could end it or pretend to be another field is
// escaped. Secrets are hidden. Nothing is allocated.
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

// Where a request was passed on to.
struct UpstreamRecord {
  std::string_view name;     // of the group, empty: nowhere
  std::string_view address;  // of the server
  std::uint16_t status = 0;  // 0: it gave no answer
  bool broke_off = false;    // in the middle of it
  Nanos first_byte{0};
  std::uint32_t retries = 0;               // it was passed on once more so often
  const UpstreamMeters* meters = nullptr;  // null: nobody counts
};

// Views into what the front end holds at the end of a request.
struct AccessRecord {
  WallTime at;              // when the request came
  Nanos duration{0};        // until the last byte of the answer
  IpAddress ip;             // of the client, behind trusted proxies
  bool is_local = false;    // the client came through a Unix socket, and has no address
  std::string_view method;  // empty: what came was no request
  std::string_view host;
  std::string_view target;
  std::string_view protocol = "HTTP/1.1";
  std::span<const HeaderView> headers;  // of the request; those that were asked for are written
  bool through_trusted = false;         // a proxy that is trusted passed it on
  std::string_view user;
  std::string_view api_key;  // its public name
  std::string_view tenant;
  std::string_view tier;
  std::string_view country;
  std::uint32_t asn = 0;
  std::string_view request_id;
  std::string_view trace_id;      // of a trace that began here; empty: that of the headers, if any
  std::string_view fault;         // what went wrong, for people; static text, empty: nothing
  std::string_view fault_reason;  // and why, where the system or OpenSSL told
  std::uint16_t status = 0;       // 0: it was closed without an answer
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  UpstreamRecord upstream;
  const engine::Op* op = nullptr;  // decided and not settled; null: it never came to that
  // Of the configuration that the request was decided by; null: that of the format. A reload may
  // have moved keys to another header, field or cookie since.
  const LogSecrets* secrets = nullptr;
};

// Whether the gateway itself said no.
[[nodiscard]] bool is_refusal(const AccessRecord& record) noexcept;

enum class LogForm : std::uint8_t { text, json };

// Immutable, so workers share it.
class AccessFormat {
 public:
  struct Options {
    LogForm form = LogForm::text;
    // Of requests, to be written in JSON; of the latter two only that they were there.
    std::vector<std::string> headers;
    std::vector<std::string> cookies;
    std::vector<std::string> header_names;
    std::vector<std::string> cookie_names;
    bool trust = false;  // whether a trusted proxy passed a request on, in JSON
    LogSecrets secrets;
  };
  explicit AccessFormat(Options options);

  // The line with its end; empty if there is no room for it. `suppressed` is how many lines like it
  // were left out before.
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

// No line is longer: `sluice replay` would refuse to read it.
inline constexpr std::size_t kLogLineBytesMax = 32U << 10U;

}  // namespace sluice::frontend
