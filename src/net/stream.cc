#include "net/stream.h"

#include <utility>

namespace sluice::net {

IoResult Stream::open(EventLoop& loop, FileDescriptor descriptor) noexcept {
  tls_.reset();
  return socket_.open(loop, std::move(descriptor));
}

IoResult Stream::connect(EventLoop& loop, const SocketAddress& address) noexcept {
  tls_.reset();
  return socket_.connect(loop, address);
}

bool Stream::start_tls(std::shared_ptr<const TlsServer> server) {
  tls_ = TlsSession::accept(std::move(server), socket_);
  return tls_ != nullptr;
}

bool Stream::start_tls(const TlsClient& client, const std::string& host) {
  tls_ = TlsSession::connect(client, socket_, host);
  return tls_ != nullptr;
}

IoResult Stream::establish() noexcept {
  const IoResult connected = socket_.connected();
  return connected.is_done() && tls_ != nullptr ? tls_->handshake() : connected;
}

IoResult Stream::read(std::span<char> into) noexcept {
  return tls_ != nullptr ? tls_->read(into) : socket_.receive(into);
}

IoResult Stream::write(std::span<const iovec> parts) noexcept {
  return tls_ != nullptr ? tls_->write(parts) : socket_.send(parts);
}

IoResult Stream::write(std::string_view bytes) noexcept {
  const iovec part = part_of(bytes);
  return write({&part, 1});
}

bool Stream::can_read() const noexcept {
  return socket_.can_read() || (tls_ != nullptr && tls_->has_pending());
}

void Stream::finish_writing() noexcept {
  if (tls_ != nullptr) tls_->finish_writing();
  socket_.finish_writing();
}

void Stream::close() noexcept {
  if (tls_ != nullptr) tls_->finish_writing();
  tls_.reset();
  socket_.close();
}

void Stream::reset() noexcept {
  tls_.reset();
  socket_.reset();
}

FileDescriptor Stream::release() noexcept {
  if (tls_ != nullptr) tls_->finish_writing();
  tls_.reset();
  return socket_.release();
}

}  // namespace sluice::net
