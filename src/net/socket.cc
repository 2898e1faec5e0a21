#include "net/socket.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <utility>

namespace sluice::net {
namespace {

// As many as the operating system takes at once.
std::span<const iovec> first_parts(std::span<const iovec> parts) noexcept {
  return parts.first(std::min<std::size_t>(parts.size(), IOV_MAX));
}

std::size_t total_bytes(std::span<const iovec> parts) noexcept {
  std::size_t sum = 0;
  for (const iovec& part : parts) sum += part.iov_len;
  return sum;
}

ssize_t send_once(int descriptor, std::span<const iovec> parts) noexcept {
  if (parts.size() == 1) {
    return ::send(descriptor, parts.front().iov_base, parts.front().iov_len, MSG_NOSIGNAL);
  }
  msghdr message{};
  // The interface knows no const. NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  return ::sendmsg(descriptor, &message, MSG_NOSIGNAL);
}

bool is_not_ready(int error) noexcept { return error == EAGAIN || error == EWOULDBLOCK; }

// Answers are written whole: waiting for more to send along would only delay them.
void send_at_once(int descriptor) noexcept {
  const int on = 1;
  (void)::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

IoResult Socket::watch(EventLoop& loop, FileDescriptor descriptor) noexcept {
  close();
  if (!watcher_.start(loop, descriptor.get())) return IoResult::system_failure(errno);
  descriptor_ = std::move(descriptor);
  return IoResult::done();
}

IoResult Socket::open(EventLoop& loop, FileDescriptor descriptor) noexcept {
  const IoResult watched = watch(loop, std::move(descriptor));
  writable_ = watched.is_done();  // a new connection always is
  return watched;
}

IoResult Socket::connect(EventLoop& loop, const SocketAddress& address) noexcept {
  FileDescriptor descriptor{
      ::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (!descriptor) return IoResult::system_failure(errno);
  if (address.is_ip()) send_at_once(descriptor.get());
  const bool connected = ::connect(descriptor.get(), address.get(), address.size()) == 0;
  if (!connected && errno != EINPROGRESS) return IoResult::system_failure(errno);
  const IoResult watched = watch(loop, std::move(descriptor));
  if (!watched.is_done()) return watched;
  connecting_ = !connected;
  writable_ = connected;
  return connected ? watched : IoResult::would_block();
}

IoResult Socket::connected() noexcept {
  if (!connecting_) return IoResult::done();
  if (!writable_) return IoResult::would_block();
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(descriptor_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return IoResult::system_failure(error);
  connecting_ = false;
  return IoResult::done();
}

// Nothing below may touch this object after the call: its owner may have ended it.
void Socket::on_events(Events events) {
  const bool news = (events.readable && !readable_) || (events.writable && !writable_) ||
                    (events.hung_up && !hung_up_) || (events.failed && !broken_);
  readable_ = readable_ || events.readable;
  writable_ = writable_ || events.writable;
  hung_up_ = hung_up_ || events.hung_up;
  broken_ = broken_ || events.failed;
  if (news) on_ready_();
}

IoResult Socket::receive(std::span<char> into) noexcept {
  if (into.empty()) return IoResult::done();  // nothing read must not look like the end
  if (ended_) return IoResult::closed();
  if (!readable_) return IoResult::would_block();
  ssize_t got = 0;
  do {
    got = ::recv(descriptor_.get(), into.data(), into.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got > 0) {
    // What comes later is told anew; but the end behind the last bytes may have been told already.
    const auto bytes = static_cast<std::size_t>(got);
    readable_ = bytes == into.size() || hung_up_;
    return IoResult::done(bytes);
  }
  if (got < 0 && !is_not_ready(errno)) return IoResult::system_failure(errno);
  readable_ = false;
  if (got < 0) return IoResult::would_block();
  ended_ = true;
  return IoResult::closed();
}

IoResult Socket::peek(std::span<char> into) noexcept {
  if (!readable_) return IoResult::would_block();
  ssize_t got = 0;
  do {
    got = ::recv(descriptor_.get(), into.data(), into.size(), MSG_PEEK);
  } while (got < 0 && errno == EINTR);
  if (got > 0) return IoResult::done(static_cast<std::size_t>(got));
  if (got == 0) return IoResult::closed();
  if (!is_not_ready(errno)) return IoResult::system_failure(errno);
  readable_ = false;
  return IoResult::would_block();
}

bool Socket::is_silent() const noexcept {
  char byte = 0;
  ssize_t got = 0;
  do {
    got = ::recv(descriptor_.get(), &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  return got < 0 && is_not_ready(errno);
}

IoResult Socket::send(std::span<const iovec> parts) noexcept {
  if (!writable_) return IoResult::would_block();
  const std::span<const iovec> offered = first_parts(parts);
  ssize_t sent = 0;
  do {
    sent = send_once(descriptor_.get(), offered);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) {
    const auto bytes = static_cast<std::size_t>(sent);
    writable_ = bytes == total_bytes(offered);
    return IoResult::done(bytes);
  }
  if (errno == EPIPE) return IoResult::closed();
  if (!is_not_ready(errno)) return IoResult::system_failure(errno);
  writable_ = false;
  return IoResult::would_block();
}

std::size_t Socket::unsent() const noexcept {
  int bytes = 0;
  if (::ioctl(descriptor_.get(), TIOCOUTQ, &bytes) != 0) return 0;
  return static_cast<std::size_t>(bytes);
}

void Socket::finish_writing() noexcept {
  if (descriptor_) ::shutdown(descriptor_.get(), SHUT_WR);
}

void Socket::close() noexcept { const FileDescriptor closed = release(); }

void Socket::reset() noexcept {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  if (descriptor_) {
    (void)::setsockopt(descriptor_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  close();
}

FileDescriptor Socket::release() noexcept {
  watcher_.stop();
  connecting_ = readable_ = writable_ = hung_up_ = broken_ = ended_ = false;
  return std::move(descriptor_);
}

}  // namespace sluice::net
