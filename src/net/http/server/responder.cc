#include "net/http/server/responder.h"

#include "net/http/server/http_connection.h"

#include <utility>

namespace sluice::net {

// ---- what both have in common -----------------------------------------------------------------

ResponseHandle::ResponseHandle(HttpConnection& connection) noexcept : connection_(&connection) {
  connection.handle_ = this;
}

ResponseHandle::ResponseHandle(ResponseHandle&& other) noexcept
    : connection_(std::exchange(other.connection_, nullptr)),
      on_gone_(std::exchange(other.on_gone_, nullptr)) {
  if (connection_ != nullptr) connection_->handle_ = this;
}

// Whatever this stood for has to be ended before.
ResponseHandle& ResponseHandle::operator=(ResponseHandle&& other) noexcept {
  connection_ = std::exchange(other.connection_, nullptr);
  on_gone_ = std::exchange(other.on_gone_, nullptr);
  if (connection_ != nullptr) connection_->handle_ = this;
  return *this;
}

HttpConnection* ResponseHandle::detach() noexcept {
  if (connection_ != nullptr) connection_->handle_ = nullptr;
  return std::exchange(connection_, nullptr);
}

void ResponseHandle::lose() {
  detach();
  const std::function<void()> tell = std::exchange(on_gone_, nullptr);
  if (tell) tell();
}

// ---- responses in pieces ----------------------------------------------------------------------

ResponseStream& ResponseStream::operator=(ResponseStream&& other) noexcept {
  if (this == &other) return *this;
  abandon();
  on_drained_ = std::exchange(other.on_drained_, nullptr);
  ResponseHandle::operator=(std::move(other));
  return *this;
}

ResponseStream::~ResponseStream() { abandon(); }

void ResponseStream::abandon() noexcept {
  if (HttpConnection* const connection = detach()) connection->cut_stream();
}

bool ResponseStream::write(std::string_view bytes) {
  return is_open() && connection_->write_piece(bytes);
}

std::size_t ResponseStream::buffered() const noexcept {
  return is_open() ? connection_->unwritten() : 0;
}

void ResponseStream::finish() {
  if (HttpConnection* const connection = detach()) connection->finish_stream();
}

// ---- whole responses --------------------------------------------------------------------------

Responder& Responder::operator=(Responder&& other) noexcept {
  if (this == &other) return *this;
  abandon();
  ResponseHandle::operator=(std::move(other));
  return *this;
}

Responder::~Responder() { abandon(); }

void Responder::abandon() {
  if (HttpConnection* const connection = detach()) connection->respond_for_nobody();
}

const HttpRequest& Responder::request() const noexcept { return connection_->request_; }

void Responder::send(HttpResponse response) {
  if (HttpConnection* const connection = detach()) connection->respond(std::move(response));
}

void Responder::set_deadline(Nanos after, HttpResponse otherwise) {
  if (is_open()) connection_->set_deadline(after, std::move(otherwise));
}

ResponseStream Responder::stream(HttpResponse headers, const StreamOptions& options) {
  HttpConnection* const connection = detach();
  const bool has_begun =
      connection != nullptr && connection->begin_stream(std::move(headers), options);
  return has_begun ? ResponseStream{*connection} : ResponseStream{};
}

}  // namespace sluice::net
