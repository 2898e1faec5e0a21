// Responses of the gateway itself.
#include "base/text_writer.h"
#include "frontend/gateway/connection.h"
#include "frontend/gateway/gateway.h"
#include "frontend/responses/answers.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace sluice::gateway {
namespace {

constexpr std::string_view kMethods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

struct Pieces {
  std::string_view head;
  std::string_view body;
};

// A body that has room behind its headers is moved there: sending one piece makes a rejection 3 %
// cheaper than two. `head` is at the start of the buffer; `body` may be in the buffer too.
Pieces brought_together(std::span<char> buffer, std::string_view head, std::string_view body) {
  const bool has_room = body.size() <= buffer.size() - head.size();
  if (body.empty() || !has_room) return {.head = head, .body = body};
  std::memmove(buffer.data() + head.size(), body.data(), body.size());
  return {.head = {buffer.data(), head.size() + body.size()}, .body = {}};
}

}  // namespace

Connection::Step Connection::refuse() {
  if (!skip_body()) keep_alive_ = false;
  const std::uint16_t status = exchange_->op.status;
  return answer_with(status, [this](net::HeadWriter& head, std::span<char> room) {
    return options().answers->refuse(head, room, exchange_->op, asking());
  });
}

Connection::Step Connection::answer(std::uint16_t status, const char* why) {
  Exchange& exchange = *exchange_;
  if (in_.floor > 0 && !skip_body()) keep_alive_ = false;
  if (exchange.fault[0] == '\0') exchange.fault = why;
  return answer_with(status, [&](net::HeadWriter& head, std::span<char> room) {
    return options().answers->fail(head, room,
                                   {.status = status,
                                    .detail = why,
                                    .retry_after_s = {},
                                    .allow = status == 405 ? kMethods : std::string_view{},
                                    .charged = exchange.decided ? &exchange.op : nullptr},
                                   asking());
  });
}

// OPTIONS addressed to the gateway: lists the methods that it forwards.
Connection::Step Connection::answer_options() {
  if (!skip_body()) keep_alive_ = false;
  return answer_with(204, [](net::HeadWriter& head, std::span<char> /*room*/) {
    head.status_line(204);
    head.own_header("allow", kMethods);
    return std::string_view{};
  });
}

// The client as one text for all kinds of names. It is only hashed, never shown.
std::string_view Connection::client_text() noexcept {
  Exchange& exchange = *exchange_;
  if (!exchange.decided) return {};
  const LoggedClient& who = exchange.who;
  TextWriter text{exchange.who_text};
  const std::string_view user = who.name(0);
  const std::string_view key = who.name(1);
  text.put(!user.empty() ? "user " : !key.empty() ? "key " : "ip ");
  if (user.empty() && key.empty()) {
    text.address(network_of(who.address));
  } else {
    text.put(!user.empty() ? user : key);
  }
  return text.text();
}

frontend::Asking Connection::asking() noexcept {
  const Exchange& exchange = *exchange_;
  frontend::Asking asking{.now = now().wall(),
                          .client = {},
                          .request_id = {exchange.request_id.data(), exchange.request_id_bytes},
                          .content_type = {},
                          .is_head = false,
                          .is_cors = false};
  if (in_.floor == 0) return asking;  // a malformed request
  if (options().answers->rate_headers().tells_partitions()) asking.client = client_text();
  asking.is_head = head().method == "HEAD";
  for (const HeaderView& header : head().headers) {
    if (equals_ignoring_case(header.name, "content-type")) asking.content_type = header.value;
    if (equals_ignoring_case(header.name, "origin")) asking.is_cors = true;
  }
  return asking;
}

// `write(head, room)` writes the headers and returns the body.
template <class Write>
Connection::Step Connection::answer_with(std::uint16_t status, Write&& write) {
  Exchange& exchange = *exchange_;
  if (exchange.routing == nullptr) exchange.routing = gateway_.routing_;  // a malformed request
  if (exchange.answer_buffer == nullptr) exchange.answer_buffer = gateway_.buffers_.take();
  const std::span<char> buffer{exchange.answer_buffer.get(), BufferPool::kBytes};
  // The gateway's own body is at the end of the buffer; a rule's body stays in the rule.
  const std::span<char> room = buffer.last(frontend::kProblemBytesMax);
  net::HeadWriter writer{buffer.first(buffer.size() - frontend::kProblemBytesMax)};
  const std::string_view body = write(writer, room);
  if (exchange.request_id_bytes > 0) {
    writer.own_header("x-request-id", {exchange.request_id.data(), exchange.request_id_bytes});
  }
  writer.own_header("date", gateway_.date());
  // After a malformed request the connection closes.
  net::write_persistence(
      writer, net::persistence_for(keep_alive_, in_.floor > 0 ? head().minor_version : 1));
  const Result<std::string_view> head = writer.finish();
  if (!head) return cut();
  const Pieces pieces = brought_together(buffer, *head, body);
  answer_ = pieces.head;
  answer_body_ = pieces.body;
  exchange.answer_bytes = body.size();
  exchange.status = status;
  phase_ = Phase::answering;
  arm(options().download_rate_interval);
  return Step::again;
}

Connection::Step Connection::write_answer() {
  while (!answer_.empty() || !answer_body_.empty()) {
    const std::array parts{net::part_of(answer_), net::part_of(answer_body_)};
    const std::size_t count = answer_body_.empty() ? 1 : 2;
    const net::IoResult result = stream_.write(std::span{parts}.first(count));
    if (result.is_blocked()) {
      wait_for_client();
      return Step::wait;
    }
    if (!result.is_done()) return Step::gone;
    const std::size_t of_head = std::min(result.bytes, answer_.size());
    answer_.remove_prefix(of_head);
    answer_body_.remove_prefix(result.bytes - of_head);
  }
  if (keep_alive_) return end_exchange();
  // The rest of the request may still arrive: closing now would destroy the response.
  give_back_exchange();
  return linger();
}

void Connection::wait_for_client() noexcept {
  unsent_seen_ = stream_.unsent();
  arm(options().download_rate_interval);
}

// A slow client is fine: no write succeeded, but the system has sent bytes. Below min_download_rate
// it is cut: it occupies a server's connection and a concurrency slot of rules.
Connection::Step Connection::not_taken() {
  const std::size_t seen = unsent_seen_;
  wait_for_client();
  const std::uint64_t taken = seen - std::min(seen, unsent_seen_);
  const std::uint64_t wanted =
      bytes_within(options().download_rate_interval, options().min_download_rate);
  if (taken >= std::max<std::uint64_t>(wanted, 1)) return Step::wait;
  ++gateway_.counts_.timeouts;
  exchange_->fault = taken == 0 ? "the client does not read the response"
                                : "the client reads the response too slowly";
  return cut();
}

// Whether the next bytes in the buffer are the next request: the body was forwarded, or it has
// arrived completely and can be skipped.
bool Connection::skip_body() noexcept {
  Exchange& exchange = *exchange_;
  if (exchange.upload.has_begun()) return exchange.upload.is_done();
  if (exchange.body_skipped) return true;
  net::BodyReader reader{head().body, exchange.request_trailers};
  std::size_t at = in_.begin;
  while (!reader.is_done()) {
    const net::BodyPiece piece = reader.feed({in_.buffer.data() + at, in_.end - at});
    if (piece.fault || (piece.consumed == 0 && !reader.is_done())) return false;
    at += piece.consumed;
  }
  in_.begin = at;
  exchange.body_skipped = true;
  return true;
}

}  // namespace sluice::gateway
