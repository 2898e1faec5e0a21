#include "frontend/responses/problem.h"

#include "frontend/responses/limit_view.h"

#include <array>

namespace sluice::frontend {
namespace {

using engine::Op;
using engine::Reason;

// As registered by the draft on RateLimit headers.
constexpr std::string_view kQuotaExceeded =
    "https://iana.org/assignments/http-problem-types#quota-exceeded";
constexpr std::string_view kReducedCapacity =
    "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";
constexpr std::string_view kAbnormalUsage =
    "https://iana.org/assignments/http-problem-types#abnormal-usage-detected";
constexpr std::string_view kNothingSpecial = "about:blank";

constexpr std::size_t kRequestIdBytes = 128;
constexpr std::size_t kRuleNameBytes = 160;

void put_retry_and_id(TextWriter& writer, const Problem& problem) noexcept {
  if (problem.retry_after_s) {
    writer.put(",\"retry_after\":");
    writer.number(*problem.retry_after_s);
  }
  if (!problem.request_id.empty()) {
    writer.put(",\"request_id\":");
    writer.json(problem.request_id.substr(0, kRequestIdBytes));
  }
}

// As many as fit, and always the end of the list.
void put_violated(TextWriter& writer, LimitViews& views, std::size_t room) noexcept {
  constexpr std::string_view kEnd = "]}";
  bool is_first = true;
  views.for_each([&](const LimitView& view) {
    if (view.verdict == Verdict::allowed) return;
    const std::size_t before = writer.size();
    std::array<char, kRuleNameBytes> name_room;
    writer.put(is_first ? ",\"violated-policies\":[" : ",");
    writer.json(name_of(view, name_room));
    if (writer.is_full() || writer.size() + kEnd.size() > room) {
      writer.rewind(before);
    } else {
      is_first = false;
    }
  });
  if (!is_first) writer.put(']');
}

// ---- details ----------------------------------------------------------------------------------

void put_amount(TextWriter& writer, std::uint64_t count, std::string_view unit) noexcept {
  writer.number(count);
  writer.put(unit);
  if (count != 1) writer.put('s');
}

void put_retry(TextWriter& writer, const Op& op) noexcept {
  const std::optional<std::uint64_t> wait = retry_after_s(op);
  if (!wait) return;
  writer.put(" Try again in ");
  put_amount(writer, *wait, " second");
  writer.put('.');
}

void put_limit(TextWriter& writer, LimitViews& views) noexcept {
  const std::optional<LimitView> tightest = views.tightest();
  if (!tightest || !tightest->has_policy) {
    writer.put("The limit is reached.");
    return;
  }
  const Policy& policy = tightest->policy;
  writer.put("The limit of ");
  put_amount(writer, policy.quota, " request");
  if (policy.window_s == 0) {
    writer.put(" at a time is reached.");
    return;
  }
  writer.put(" in ");
  put_amount(writer, policy.window_s, " second");
  writer.put(" is reached.");
}

// The gateway's own text: nothing has to be escaped.
void put_detail(TextWriter& writer, const Op& op, LimitViews& views) noexcept {
  switch (op.reason) {
    case Reason::limited: put_limit(writer, views); break;
    case Reason::never:
      writer.put("This request costs more than the limit ever allows. Waiting does not help.");
      break;
    case Reason::queue_full: writer.put("The limit is reached, and the queue is full."); break;
    case Reason::blocked: writer.put("Too many requests were rejected before."); break;
    case Reason::deny_listed: writer.put("This client may not send requests."); break;
    case Reason::missing_value: writer.put("A value that identifies the client is missing."); break;
    case Reason::ambiguous_value:
      writer.put("A value that identifies the client is sent twice, differently. Send it once.");
      break;
    case Reason::ambiguous_credentials:
      writer.put("The credentials are ambiguous. Send one Authorization header, and one API key.");
      break;
    case Reason::unauthenticated: writer.put("A valid token or API key is required."); break;
    case Reason::no_rule: writer.put("No rule allows this request."); break;
    case Reason::too_many_rules:
      writer.put("This request falls under more limits than can be checked at once.");
      break;
    case Reason::bad_target: writer.put("The path or the host cannot be read."); break;
    case Reason::store_failed: writer.put("The limits cannot be checked at the moment."); break;
    case Reason::allowed:
    case Reason::unmatched:
    case Reason::allow_listed:
    case Reason::preflight: break;
  }
  put_retry(writer, op);
}

}  // namespace

std::string_view problem_type(Reason reason) noexcept {
  switch (reason) {
    case Reason::limited:
    case Reason::never:
    case Reason::queue_full: return kQuotaExceeded;
    case Reason::blocked: return kAbnormalUsage;
    case Reason::store_failed:
    case Reason::too_many_rules: return kReducedCapacity;
    default: return kNothingSpecial;
  }
}

std::string_view problem_type(std::uint16_t status) noexcept {
  return status == 503 ? kReducedCapacity : kNothingSpecial;
}

std::string_view write_detail(std::span<char> room, const Op& op) noexcept {
  TextWriter writer{room};
  LimitViews views{op};
  put_detail(writer, op, views);
  return writer.text();
}

std::string_view usual_detail(std::uint16_t status) noexcept {
  switch (status) {
    case 400: return "The request cannot be understood.";
    case 401: return "A valid token or API key is required.";
    case 403: return "This is not allowed.";
    case 404: return "Nothing is served under this path.";
    case 405: return "This method is not allowed here.";
    case 408: return "The request took too long to arrive.";
    case 413: return "The body of the request is larger than allowed.";
    case 414: return "The target of the request is longer than allowed.";
    case 417: return "What the request expects cannot be met.";
    case 421: return "This host is not served here.";
    case 431: return "The headers of the request are larger than allowed.";
    case 501: return "The request asks for something that is not implemented.";
    case 502: return "The server behind this gateway sent no valid response.";
    case 503: return "No server can take the request at the moment.";
    case 504: return "The server behind this gateway did not respond in time.";
    case 505: return "This version of HTTP is not supported.";
    case 508: return "The request has come through this gateway before.";
    default: return "The request failed.";
  }
}

std::string_view write_problem(std::span<char> room, const Problem& problem) noexcept {
  TextWriter writer{room};
  writer.put(R"({"type":")", problem.type, R"(","title":")", problem.title, R"(","status":)");
  writer.number(problem.status);
  writer.put(",\"detail\":");
  if (problem.refused == nullptr) {
    writer.json(problem.detail);
    put_retry_and_id(writer, problem);
  } else {
    const Op& op = *problem.refused;
    LimitViews views{op};
    writer.put('"');
    put_detail(writer, op, views);
    writer.put('"');
    if (problem.type == kNothingSpecial) {
      writer.put(R"(,"reason":")", engine::to_string(op.reason), "\"");
    }
    put_retry_and_id(writer, problem);
    if (!writer.is_full()) put_violated(writer, views, room.size());
  }
  writer.put('}');
  return writer.is_full() ? std::string_view{} : writer.text();
}

}  // namespace sluice::frontend
