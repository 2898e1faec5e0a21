#include "forwarder.h"
#include "net/acceptor.h"
#include "net/event_loop.h"
#include "net/stream.h"
#include <sluice/clock.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <utility>

namespace sluice::bench {
namespace {

using net::Callback;
using net::EventLoop;
using net::IoResult;
using net::Stream;

// One direction: a message of a fixed size is collected, then written.
class Pipe {
 public:
  Pipe(Stream& from, Stream& to, std::size_t size) : from_(from), to_(to), size_(size) {}

  // True when a whole message went over.
  bool move() {
    while (filled_ < size_) {
      const IoResult result = from_.read(std::span{buffer_}.subspan(filled_));
      if (!result.is_done()) return false;
      filled_ += result.bytes;
    }
    while (written_ < size_) {
      const IoResult result = to_.write({buffer_.data() + written_, size_ - written_});
      if (!result.is_done()) return false;
      written_ += result.bytes;
    }
    filled_ = written_ = 0;
    return true;
  }

 private:
  Stream& from_;
  Stream& to_;
  std::size_t size_;
  std::size_t filled_ = 0;
  std::size_t written_ = 0;
  std::array<char, 4096> buffer_{};
};

class Connection {
 public:
  Connection(EventLoop& loop, FileDescriptor client, const ForwarderWish& wish)
      : loop_(loop), timers_(wish.timers) {
    const auto upstream =
        net::SocketAddress::of(*IpAddress::parse("127.0.0.1"), wish.upstream_port);
    if (client_.open(loop, std::move(client)).is_failed() ||
        upstream_.connect(loop, upstream).is_failed()) {
      std::abort();
    }
  }

 private:
  void on_client() {
    if (there_.move() && timers_) loop_.set(deadline_, std::chrono::seconds{60});
  }
  void on_upstream() {
    (void)there_.move();  // may have waited for the connection
    (void)back_.move();
  }
  void on_deadline() { std::abort(); }

  EventLoop& loop_;
  bool timers_;
  Stream client_{Callback<>::to<&Connection::on_client>(*this)};
  Stream upstream_{Callback<>::to<&Connection::on_upstream>(*this)};
  net::Timer deadline_{Callback<>::to<&Connection::on_deadline>(*this)};
  Pipe there_{client_, upstream_, kRequestBytes};
  Pipe back_{upstream_, client_, kAnswerBytes};
};

struct Gateway {
  ForwarderWish wish;
  EventLoop& loop;
  net::Acceptor acceptor{Callback<net::Accepted>::to<&Gateway::on_accepted>(*this)};

  Gateway(ForwarderWish with, EventLoop& in) : wish(with), loop(in) {}
  // Lives as long as the process.
  void on_accepted(net::Accepted accepted) {
    (void)std::make_unique<Connection>(loop, std::move(accepted.descriptor), wish).release();
  }
};

}  // namespace

void forward_with_sluice(ForwarderWish wish) {
  const SystemClock clock;
  const std::unique_ptr<EventLoop> loop = EventLoop::create(clock).value();
  Gateway gateway{wish, *loop};
  if (!gateway.acceptor.start(*loop, wish.listener)) std::abort();
  loop->run();
  std::abort();
}

}  // namespace sluice::bench
