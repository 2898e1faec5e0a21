// What the gateway says by itself.
#include "frontend/gateway/answers.h"
#include "frontend/gateway/connection.h"
#include "frontend/gateway/gateway.h"

#include <algorithm>

namespace sluice::gateway {

Connection::Step Connection::refuse() {
  Exchange& exchange = *exchange_;
  if (exchange.answer_buffer == nullptr) exchange.answer_buffer = gateway_.buffers_.take();
  if (!skip_body()) keep_alive_ = false;
  return answer_with(
      write_refusal({exchange.answer_buffer.get(), BufferPool::kBytes}, exchange.op,
                    {.close = !keep_alive_,
                     .without_body = head().method == "HEAD",
                     .request_id = {exchange.request_id.data(), exchange.request_id_bytes}}),
      exchange.op.status);
}

Connection::Step Connection::answer(std::uint16_t status, const char* why) {
  Exchange& exchange = *exchange_;
  if (exchange.answer_buffer == nullptr) exchange.answer_buffer = gateway_.buffers_.take();
  const bool was_parsed = in_.floor > 0;
  if (was_parsed && !skip_body()) keep_alive_ = false;
  if (exchange.fault[0] == '\0') exchange.fault = why;
  return answer_with(
      write_problem({exchange.answer_buffer.get(), BufferPool::kBytes}, status, why,
                    {.close = !keep_alive_,
                     .without_body = was_parsed && head().method == "HEAD",
                     .request_id = {exchange.request_id.data(), exchange.request_id_bytes}}),
      status);
}

Connection::Step Connection::answer_with(std::string_view bytes, std::uint16_t status) {
  if (bytes.empty()) return cut();
  answer_ = bytes;
  exchange_->status = status;
  phase_ = Phase::answering;
  arm(options().written_within);
  return Step::again;
}

Connection::Step Connection::write_answer() {
  while (!answer_.empty()) {
    const net::IoResult result = stream_.write(answer_);
    if (result.is_blocked()) return Step::wait;
    if (!result.is_done()) return Step::gone;
    answer_.remove_prefix(result.bytes);
  }
  if (keep_alive_) return end_exchange();
  // Something of the request may still be on its way: closing now would destroy the answer.
  give_back_exchange();
  return linger();
}

// Whether what follows in the buffer is the next request: the body was passed on, or all of it has
// come already and can be thrown away.
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
