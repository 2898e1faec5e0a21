// Lines of our own access log: whatever clients send, what is written is one line, and is read back
// as what it was.

#include "base/text.h"
#include "cli/replay/access_log.h"
#include "frontend/access_log/access_record.h"
#include "fuzz.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

using sluice::fuzz::expect;
namespace frontend = sluice::frontend;

namespace {

// Takes a text off the front: a byte that says how long it is, then its bytes.
std::string take(std::string_view& rest) {
  if (rest.empty()) return {};
  const auto size = static_cast<std::size_t>(static_cast<unsigned char>(rest.front()));
  rest.remove_prefix(1);
  std::string text{rest.substr(0, size)};
  rest.remove_prefix(std::min(size, rest.size()));
  return text;
}

// What is no text comes back with a mark in its place, or shorter.
bool is_same(std::string_view read, std::string_view written) {
  const bool is_text = sluice::valid_utf8_prefix(written) == written.size() &&
                       written.find('\0') == std::string_view::npos;
  return read == written || !is_text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input{data, data + size};
  std::string_view rest = input;
  const std::string method = take(rest);
  const std::string target = take(rest);
  const std::string host = take(rest);
  const std::string user = take(rest);
  const std::string plan = take(rest);
  const std::string agent = take(rest);
  const std::string id = take(rest);
  const std::vector<sluice::HeaderView> headers{
      {"X-Plan", plan}, {"User-Agent", agent}, {"Referer", target}, {"X-Plan", agent}};
  const frontend::AccessRecord record{.at = sluice::WallTime{std::chrono::seconds{1'700'000'000}},
                                      .duration = sluice::Nanos{static_cast<std::int64_t>(size)},
                                      .method = method,
                                      .host = host,
                                      .target = target,
                                      .headers = headers,
                                      .user = user,
                                      .request_id = id,
                                      .status = 200};
  std::vector<char> room(frontend::kLogLineBytesMax);
  const frontend::LogSecrets none{{}, {}};
  for (const frontend::LogForm form : {frontend::LogForm::json, frontend::LogForm::text}) {
    const frontend::AccessFormat open{{.form = form, .headers = {"x-plan"}, .secrets = none}};
    const std::string_view line = open.write(room, record);
    expect(!line.empty(), "there is room for every line");
    expect(line.find('\n') == line.size() - 1, "a line is one line");
    const std::string_view content = line.substr(0, line.size() - 1);
    const auto read = form == frontend::LogForm::json ? sluice::cli::parse_json_line(content)
                                                      : sluice::cli::parse_combined(content);
    expect(read.has_value(), "what is written can be read");
    expect(read->at == record.at && read->status == 200, "time and status come back");
    if (form == frontend::LogForm::text) continue;
    if (!method.empty()) expect(is_same(read->method, method), "the method comes back");
    if (!target.empty() && target.find("://") == std::string::npos) {
      expect(is_same(read->target, target), "the target comes back");
    }
    expect(is_same(read->host, host) && is_same(read->user, user), "texts come back");
    expect(read->headers.empty() || is_same(read->headers[0].second, plan), "the first one counts");
  }
  // A secret is nowhere, whatever stands around it.
  const std::string with_secret = "/?" + target + "&token=s3cr3t" + host;
  frontend::AccessRecord hiding = record;
  hiding.target = with_secret;
  const frontend::AccessFormat hides{{.form = frontend::LogForm::json}};
  const std::string_view hidden = hides.write(room, hiding);
  if (input.find("s3cr3t") == std::string::npos) {
    expect(hidden.find("s3cr3t") == std::string_view::npos, "a secret is hidden");
  }
  return 0;
}
