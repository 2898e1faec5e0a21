#include "frontend/access_log/access_record.h"

#include "base/characters.h"
#include "base/rfc3339.h"
#include "frontend/access_log/decision_word.h"
#include "frontend/access_log/trace_context.h"
#include "identity/fields.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <tuple>

namespace sluice::frontend {
namespace {

// More of one value is noise, and a line with all of it might be too long to be read.
constexpr std::size_t kTargetBytes = 4096;
constexpr std::size_t kValueBytes = 512;
constexpr std::size_t kMapBytes = 4096;
// The longest duration of a request that `replay` accepts.
constexpr Nanos kDurationMax = std::chrono::hours{24};

std::uint64_t count_of(Nanos time) noexcept {
  return static_cast<std::uint64_t>(std::clamp(time, Nanos{0}, kDurationMax).count());
}

// Strict JSON readers reject a zero character, and HTTP has none: it ends the text.
std::string_view up_to_zero(std::string_view text) noexcept {
  return text.substr(0, text.find('\0'));
}

// A target with its secrets hidden. It always has room: *** may be longer than the value, then the
// target is a little shorter.
class ShownTarget {
 public:
  ShownTarget(const LogSecrets& secrets, std::string_view target) noexcept {
    is_cut_ = target.size() > kTargetBytes;
    secrets.write_target(writer_, target.substr(0, kTargetBytes));
    is_cut_ |= writer_.is_full();
  }
  [[nodiscard]] std::string_view text() const noexcept { return writer_.text(); }
  [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }

 private:
  std::array<char, kTargetBytes + kValueBytes> room_;
  TextWriter writer_{room_};
  bool is_cut_ = false;
};

std::string_view trace_of(const AccessRecord& record) noexcept {
  return record.trace_id.empty() ? trace_id_of(record.headers) : record.trace_id;
}

// "unix" for clients without an address.
void put_ip(TextWriter& line, const AccessRecord& record) noexcept {
  if (record.is_local) return line.put("unix");
  line.address(record.ip);
}

bool is_before_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return std::ranges::lexicographical_compare(a, b, {}, lower, lower);
}

// Shadow (log only) rules that would have rejected: a,b. There is room for as many as are checked.
class ShadowRefusals {
 public:
  explicit ShadowRefusals(const engine::Op& op) noexcept {
    const rules::Rule* last = nullptr;  // the limits of a rule are adjacent
    for (const engine::LimitOutcome& outcome : op.limits()) {
      if (!outcome.shadow || outcome.decision.allowed() || outcome.rule == last) continue;
      if (last != nullptr) writer_.put(',');
      writer_.put(outcome.rule->name);
      last = outcome.rule;
    }
  }
  [[nodiscard]] std::string_view names() const noexcept { return writer_.text(); }

 private:
  std::array<char, store::kCallChecksMax * 65> room_;
  TextWriter writer_{room_};
};

// ---- JSON -------------------------------------------------------------------------------------

class JsonLine {
 public:
  explicit JsonLine(TextWriter& line) noexcept : line_(line) {}

  void text(std::string_view name, std::string_view value) noexcept {
    if (value.empty()) return;
    begin(name);
    line_.json(shortened(value));
  }
  void whole_text(std::string_view name, std::string_view value) noexcept {
    begin(name);
    line_.json(value);
  }
  void number(std::string_view name, std::uint64_t value) noexcept {
    begin(name);
    line_.number(value);
  }
  void number_if(std::string_view name, std::uint64_t value) noexcept {
    if (value > 0) number(name, value);
  }
  void begin(std::string_view name) noexcept {
    line_.put(is_first_ ? '{' : ',');
    is_first_ = false;
    line_.json(name);
    line_.put(':');
  }
  std::string_view shortened(std::string_view value) noexcept {
    const std::string_view shown = up_to_zero(value.substr(0, kValueBytes));
    is_cut_ |= shown.size() < value.size();
    return shown;
  }
  [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }

 private:
  TextWriter& line_;
  bool is_first_ = true;
  bool is_cut_ = false;
};

// Names and values that clients sent. They are bounded together, so that a line has room for the
// rest: values that do not fit are omitted.
class JsonMap {
 public:
  JsonMap(TextWriter& line, std::string_view name) noexcept
      : line_(line), name_(name), begin_(line.size()) {}

  void add(std::string_view name, std::string_view value) noexcept {
    if (line_.is_full()) return;
    const std::size_t before = line_.size();
    const std::string_view shown = up_to_zero(value.substr(0, kValueBytes));
    line_.put(',');
    if (before == begin_) {
      line_.json(name_);
      line_.put(":{");
    }
    line_.json(name);
    line_.put(':');
    line_.json(shown);
    const bool fits = !line_.is_full() && line_.size() - begin_ <= kMapBytes;
    if (!fits) line_.rewind(before);
    is_whole_ &= fits && shown.size() == value.size();
  }
  // False: something was omitted.
  [[nodiscard]] bool end() noexcept {
    if (line_.size() > begin_) line_.put('}');
    return is_whole_;
  }

 private:
  TextWriter& line_;
  std::string_view name_;
  std::size_t begin_;
  bool is_whole_ = true;
};

void put_client(JsonLine& json, const AccessRecord& record) noexcept {
  json.text("user", record.user);
  json.text("api_key", record.api_key);
  json.text("tenant", record.tenant);
  json.text("tier", record.tier);
  json.text("country", record.country);
  json.number_if("asn", record.asn);
}

void put_decision(JsonLine& json, const engine::Op& op) noexcept {
  json.text("decision", to_string(decision_word(op)));
  json.text("reason", engine::to_string(op.reason));
  if (op.rule != nullptr) {
    json.text("rule", op.rule->name);
    json.number("limit", op.decision.limit);
    json.number("remaining", op.decision.remaining);
  }
  if (const ShadowRefusals shadows{op}; !shadows.names().empty()) {
    json.whole_text("shadow", shadows.names());
  }
  json.number_if("delay_ns", count_of(op.decision.delay));
}

void put_upstream(JsonLine& json, const UpstreamRecord& upstream) noexcept {
  if (upstream.name.empty()) return;
  json.text("upstream", upstream.name);
  json.text("upstream_address", upstream.address);
  json.number_if("upstream_status", upstream.status);
  json.number_if("upstream_first_byte_ns", count_of(upstream.first_byte));
}

// ---- text -------------------------------------------------------------------------------------

bool needs_escape(char c) noexcept { return c <= 0x1f || c >= 0x7f; }

void put_escaped_byte(TextWriter& line, char c) noexcept {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  const std::array<char, 4> code{'\\', 'x', kHex[byte >> 4U], kHex[byte & 15U]};
  line.put(std::string_view{code.data(), code.size()});
}

// Between quotes, like nginx; a quote and a backslash get a backslash.
void put_quotable(TextWriter& line, std::string_view value) noexcept {
  for (const char c : value) {
    if (needs_escape(c)) {
      put_escaped_byte(line, c);
      continue;
    }
    if (c == '"' || c == '\\') line.put('\\');
    line.put(c);
  }
}

void put_quoted(TextWriter& line, std::string_view value) noexcept {
  line.put('"');
  put_quotable(line, value.empty() ? "-" : value.substr(0, kValueBytes));
  line.put('"');
}

// A word: bytes that could end it are escaped.
void put_word(TextWriter& line, std::string_view value) noexcept {
  if (value.empty()) return line.put('-');
  for (const char c : value.substr(0, kValueBytes)) {
    if (needs_escape(c) || c == ' ' || c == '"' || c == '\\') {
      put_escaped_byte(line, c);
    } else {
      line.put(c);
    }
  }
}

void put_pair(TextWriter& line, std::string_view name, std::string_view value) noexcept {
  if (value.empty()) return;
  line.put(' ');
  line.put(name);
  line.put('=');
  put_word(line, value);
}

// 12.345ms
void put_milliseconds(TextWriter& line, Nanos time) noexcept {
  const std::uint64_t micros = count_of(time) / 1000;
  line.number(micros / 1000);
  line.put('.');
  line.padded(micros % 1000, 3);
  line.put("ms");
}

void put_request(TextWriter& line, const AccessRecord& record, std::string_view target) noexcept {
  if (record.method.empty()) return line.put(" \"-\" ");
  line.put(" \"");
  put_quotable(line, record.method.substr(0, kValueBytes));
  line.put(' ');
  put_quotable(line, target);
  line.put(' ');
  put_quotable(line, record.protocol);
  line.put("\" ");
}

std::string_view header_of(const AccessRecord& record, std::string_view lower_name) noexcept {
  for (const HeaderView& header : record.headers) {
    if (equals_ignoring_case(header.name, lower_name)) return header.value;
  }
  return {};
}

void put_fault(TextWriter& line, const AccessRecord& record) noexcept {
  if (record.fault.empty()) return;
  line.put(" fault=\"");
  put_quotable(line, record.fault);
  if (!record.fault_reason.empty()) line.put(": ");
  put_quotable(line, record.fault_reason);
  line.put('"');
}

void put_decision(TextWriter& line, const engine::Op& op) noexcept {
  line.put(' ');
  line.put(to_string(decision_word(op)));
  if (op.rule != nullptr) put_pair(line, "rule", op.rule->name);
  put_pair(line, "reason", engine::to_string(op.reason));
  put_pair(line, "shadow", ShadowRefusals{op}.names());
  if (op.rule == nullptr) return;
  line.put(" left=");
  line.number(op.decision.remaining);
  line.put('/');
  line.number(op.decision.limit);
}

}  // namespace

bool is_refusal(const AccessRecord& record) noexcept {
  if (record.op != nullptr) return record.op->action != engine::Action::pass;
  return record.status >= 400 && record.status < 500;
}

AccessFormat::AccessFormat(Options options)
    : form_(options.form), trust_(options.trust), secrets_(std::move(options.secrets)) {
  for (auto* names : {&options.headers, &options.header_names}) {
    for (std::string& name : *names) std::ranges::transform(name, name.begin(), lower);
  }
  headers_ = wanted(std::move(options.headers), std::move(options.header_names),
                    [this](const std::string& name) { return secrets_.is_secret_header(name); });
  cookies_ = wanted(std::move(options.cookies), std::move(options.cookie_names),
                    [this](const std::string& name) { return secrets_.is_secret_cookie(name); });
}

// A name requested both ways is shown, unless it is a secret's.
template <class IsSecret>
std::vector<AccessFormat::Wanted> AccessFormat::wanted(std::vector<std::string> shown,
                                                       std::vector<std::string> named,
                                                       IsSecret&& is_secret) {
  std::vector<Wanted> all;
  for (std::string& name : shown) {
    const bool is_hidden = is_secret(name);
    all.push_back({.name = std::move(name), .is_hidden = is_hidden});
  }
  for (std::string& name : named) all.push_back({.name = std::move(name), .is_hidden = true});
  // A name wanted with its value sorts first and stays.
  std::ranges::sort(all, {}, [](const Wanted& one) { return std::tie(one.name, one.is_hidden); });
  all.erase(std::ranges::unique(all, {}, &Wanted::name).begin(), all.end());
  return all;
}

std::string_view AccessFormat::write(std::span<char> room, const AccessRecord& record,
                                     std::uint64_t suppressed) const noexcept {
  TextWriter line{room.first(std::min(room.size(), kLogLineBytesMax))};
  if (form_ == LogForm::json) {
    write_json(line, record, suppressed);
  } else {
    write_text(line, record, suppressed);
  }
  line.put('\n');
  return line.is_full() ? std::string_view{} : line.text();
}

// Each name once, with its first value: readers of a duplicate name may take either. Rules may name
// many headers, a request has few: the loop is over the request's. False: not everything fits.
bool AccessFormat::write_headers(TextWriter& line, const AccessRecord& record) const noexcept {
  if (headers_.empty()) return true;
  const std::span<const HeaderView> headers = record.headers;
  JsonMap map{line, "headers"};
  for (std::size_t i = 0; i < headers.size(); ++i) {
    const auto found =
        std::ranges::lower_bound(headers_, headers[i].name, is_before_ignoring_case, &Wanted::name);
    if (found == headers_.end() || !equals_ignoring_case(found->name, headers[i].name)) continue;
    const auto is_same = [&](const HeaderView& one) {
      return equals_ignoring_case(one.name, headers[i].name);
    };
    if (std::ranges::any_of(headers.first(i), is_same)) continue;
    const bool is_hidden = found->is_hidden || secrets_of(record).is_secret_header(found->name);
    map.add(found->name, is_hidden ? kHidden : headers[i].value);
  }
  return map.end();
}

bool AccessFormat::write_cookies(TextWriter& line, const AccessRecord& record) const noexcept {
  if (cookies_.empty()) return true;
  const std::span<const HeaderView> headers = record.headers;
  const bool has_any = std::ranges::any_of(
      headers, [](const HeaderView& one) { return equals_ignoring_case(one.name, "cookie"); });
  if (!has_any) return true;
  JsonMap map{line, "cookies"};
  for (const Wanted& one : cookies_) {
    const auto value = identity::find_cookie(headers, one.name);
    const bool is_hidden = one.is_hidden || secrets_of(record).is_secret_cookie(one.name);
    if (value) map.add(one.name, is_hidden ? kHidden : *value);
  }
  return map.end();
}

void AccessFormat::write_json(TextWriter& line, const AccessRecord& record,
                              std::uint64_t suppressed) const noexcept {
  const ShownTarget target{secrets_of(record), record.target};
  JsonLine json{line};
  json.begin("time");
  line.put('"');
  write_rfc3339(line, record.at);
  line.put('"');
  json.begin("ip");
  line.put('"');
  put_ip(line, record);
  line.put('"');
  json.text("method", record.method);
  json.text("host", record.host);
  if (record.method.empty()) {
    // A malformed request: no reader must take it for a request and replay it.
    json.begin("malformed");
    line.put("true");
  } else {
    json.begin("target");
    line.json(up_to_zero(target.text()));
    json.text("protocol", record.protocol);
  }
  json.number("status", record.status);
  json.number("duration_ns", count_of(record.duration));
  put_client(json, record);
  if (trust_ && record.through_trusted) {
    json.begin("through_trusted");
    line.put("true");
  }
  bool is_whole = write_headers(line, record);
  is_whole &= write_cookies(line, record);
  json.text("request_id", record.request_id);
  json.text("trace_id", trace_of(record));
  json.number("bytes_in", record.bytes_in);
  json.number("bytes_out", record.bytes_out);
  if (record.op != nullptr) put_decision(json, *record.op);
  put_upstream(json, record.upstream);
  json.text("fault", record.fault);
  json.text("fault_reason", record.fault_reason);
  json.number_if("suppressed", suppressed);
  // No reader must take a part for the whole.
  if (target.is_cut() || json.is_cut() || !is_whole) line.put(",\"cut\":true");
  line.put('}');
}

void AccessFormat::write_text(TextWriter& line, const AccessRecord& record,
                              std::uint64_t suppressed) const noexcept {
  put_ip(line, record);
  line.put(" - ");
  put_word(line, record.user);
  line.put(" [");
  write_log_time(line, record.at);
  line.put(']');
  put_request(line, record, ShownTarget{secrets_of(record), record.target}.text());
  line.number(record.status);
  line.put(' ');
  line.number(record.bytes_out);
  line.put(' ');
  const ShownTarget referer{secrets_of(record), header_of(record, "referer")};
  put_quoted(line, referer.text());
  line.put(' ');
  put_quoted(line, header_of(record, "user-agent"));
  line.put(' ');
  put_milliseconds(line, record.duration);
  if (record.op != nullptr) put_decision(line, *record.op);
  put_pair(line, "upstream", record.upstream.name);
  put_pair(line, "at", record.upstream.address);
  put_pair(line, "host", record.host);
  put_pair(line, "id", record.request_id);
  put_pair(line, "trace", trace_of(record));
  put_fault(line, record);
  if (suppressed > 0) {
    line.put(" suppressed=");
    line.number(suppressed);
  }
}

}  // namespace sluice::frontend
