#include "forwarder.h"

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/version.hpp>

#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <utility>

namespace sluice::bench {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
// Without the type erasure of the default executor, which costs.
using Executor = asio::io_context::executor_type;
using TcpSocket = asio::basic_stream_socket<tcp, Executor>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;

// One direction: a message of a fixed size is collected, then written, then the next is awaited.
class Pipe {
 public:
  Pipe(TcpSocket& from, TcpSocket& to, std::size_t size, Timer* deadline)
      : from_(from), to_(to), size_(size), deadline_(deadline) {}

  void read() {
    from_.async_read_some(asio::buffer(buffer_.data() + filled_, buffer_.size() - filled_),
                          [this](error_code error, std::size_t bytes) {
                            if (error) return;
                            filled_ += bytes;
                            if (filled_ < size_) return read();
                            write();
                          });
  }

 private:
  void write() {
    to_.async_write_some(asio::buffer(buffer_.data() + written_, size_ - written_),
                         [this](error_code error, std::size_t bytes) {
                           if (error) return;
                           written_ += bytes;
                           if (written_ < size_) return write();
                           filled_ = written_ = 0;
                           put_deadline_off();
                           read();
                         });
  }

  void put_deadline_off() {
    if (deadline_ == nullptr) return;
    deadline_->expires_after(std::chrono::seconds{60});
    deadline_->async_wait([](error_code error) {
      if (!error) std::abort();
    });
  }

  TcpSocket& from_;
  TcpSocket& to_;
  std::size_t size_;
  Timer* deadline_;
  std::size_t filled_ = 0;
  std::size_t written_ = 0;
  std::array<char, 4096> buffer_{};
};

class Connection {
 public:
  Connection(asio::io_context& context, TcpSocket client, const ForwarderWish& wish)
      : client_(std::move(client)),
        upstream_(context.get_executor()),
        deadline_(context.get_executor()),
        there_(client_, upstream_, kRequestBytes, wish.timers ? &deadline_ : nullptr) {
    upstream_.connect({asio::ip::address_v4::loopback(), wish.upstream_port});
    client_.set_option(tcp::no_delay{true});
    upstream_.set_option(tcp::no_delay{true});
    there_.read();
    back_.read();
  }

 private:
  TcpSocket client_;
  TcpSocket upstream_;
  Timer deadline_;
  Pipe there_;
  Pipe back_{upstream_, client_, kAnswerBytes, nullptr};
};

using TcpAcceptor = asio::basic_socket_acceptor<tcp, Executor>;

void accept(asio::io_context& context, TcpAcceptor& acceptor, const ForwarderWish& wish) {
  acceptor.async_accept([&](error_code error, TcpSocket client) {
    if (error) std::abort();
    (void)std::make_unique<Connection>(context, std::move(client), wish).release();
    accept(context, acceptor, wish);
  });
}

}  // namespace

void forward_with_asio(ForwarderWish wish) {
  asio::io_context context{1};
  TcpAcceptor acceptor{context.get_executor(), tcp::v4(), wish.listener};
  accept(context, acceptor, wish);
  context.run();
  std::abort();
}

const char* boost_version() noexcept { return BOOST_LIB_VERSION; }

}  // namespace sluice::bench
