// What tests of this folder share: a loop on the real clock, connected pairs, a peer that talks.
#pragma once

#include "net/acceptor.h"
#include "net/event_loop.h"
#include "net/listen.h"
#include "net/stream.h"
#include <sluice/clock.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <utility>

namespace sluice::net::testing {

// Turns until the condition holds; false if it does not within a time that only a defect takes.
template <class Condition>
[[nodiscard]] bool turn_until(EventLoop& loop, Condition&& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{30};
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    loop.turn(std::chrono::milliseconds{100});
  }
  return true;
}

struct Loop {
  SystemClock clock;
  std::unique_ptr<EventLoop> loop = EventLoop::create(clock).value();

  EventLoop& operator*() const noexcept { return *loop; }
  EventLoop* operator->() const noexcept { return loop.get(); }
  template <class Condition>
  [[nodiscard]] bool until(Condition&& condition) const {
    return turn_until(*loop, std::forward<Condition>(condition));
  }
};

inline Endpoint free_port() { return Endpoint::parse("127.0.0.1:0").value(); }

inline SocketAddress address_of(const Listener& listener) {
  return SocketAddress::of(listener.endpoint().address, listener.endpoint().port);
}

// Two ends of one TCP connection, both nonblocking.
struct Pair {
  FileDescriptor client;
  FileDescriptor server;
};

inline Pair connected_pair(int send_buffer = 0, int receive_buffer = 0) {
  const Listener listener = listen_on(free_port()).value();
  if (receive_buffer > 0) {
    ::setsockopt(listener.descriptor(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(int));
    ::setsockopt(listener.descriptor(), SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof(int));
  }
  Pair pair;
  pair.client = FileDescriptor{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (send_buffer > 0) {
    ::setsockopt(pair.client.get(), SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof(int));
    ::setsockopt(pair.client.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(int));
  }
  const SocketAddress address = address_of(listener);
  if (::connect(pair.client.get(), address.get(), address.size()) != 0) std::abort();
  ::fcntl(pair.client.get(), F_SETFL, O_NONBLOCK);
  pair.server = FileDescriptor{
      ::accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
  return pair;
}

// One end of a connection that writes what it has to send and keeps what it hears.
class Talker {
 public:
  explicit Talker(EventLoop& loop) : loop_(loop) {}

  Stream stream{Callback<>::to<&Talker::on_ready>(*this)};
  std::string to_send;
  std::string received;
  std::size_t read_size = 4096;
  bool echoes = false;  // sends back what it hears
  bool listens = true;  // reads at all
  bool established = false;
  bool ended = false;  // read the end
  int calls = 0;
  std::optional<IoFailure> failure;

  void open(FileDescriptor descriptor) {
    if (!stream.open(loop_, std::move(descriptor)).is_done()) std::abort();
  }
  void say(std::string_view text) {
    to_send += text;
    talk();
  }
  [[nodiscard]] bool is_over() const { return ended || failure.has_value(); }

  void talk() {
    if (failure || !stream.is_open() || !establish()) return;
    while (progress()) {
    }
  }

 private:
  void on_ready() {
    ++calls;
    talk();
  }

  bool establish() {
    if (established) return true;
    const IoResult result = stream.establish();
    if (result.is_failed()) failure = result.why;
    if (result.is_closed()) ended = true;
    return established = result.is_done();
  }

  bool progress() {
    const bool wrote = !to_send.empty() && write_some();
    const bool read = listens && !ended && !failure && read_some();
    return (wrote || read) && !failure;
  }

  bool write_some() {
    // In two parts, as answers with a head and a body are.
    const std::size_t half = to_send.size() / 2;
    const std::array<iovec, 2> parts{
        iovec{.iov_base = to_send.data(), .iov_len = half},
        iovec{.iov_base = to_send.data() + half, .iov_len = to_send.size() - half}};
    const IoResult result = stream.write(parts);
    if (result.is_failed()) failure = result.why;
    if (result.is_done()) to_send.erase(0, result.bytes);
    return result.is_done();
  }

  bool read_some() {
    std::string buffer(read_size, '\0');
    const IoResult result = stream.read(buffer);
    if (result.is_failed()) failure = result.why;
    if (result.is_closed()) ended = true;
    if (!result.is_done()) return false;
    received.append(buffer, 0, result.bytes);
    if (echoes) to_send.append(buffer, 0, result.bytes);
    return true;
  }

  EventLoop& loop_;
};

}  // namespace sluice::net::testing
