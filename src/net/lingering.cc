#include "net/lingering.h"

#include <array>
#include <iterator>
#include <utility>

namespace sluice::net {

// TLS is over for us by now: what comes is thrown away as it is.
class LingeringCloser::Connection {
 public:
  explicit Connection(LingeringCloser& closer) noexcept
      : closer_(closer), left_(closer.limits_.bytes) {}

  std::list<Connection>::iterator place;  // in the closer's list

  [[nodiscard]] bool start(FileDescriptor descriptor) noexcept {
    if (!socket_.open(closer_.loop_, std::move(descriptor)).is_done()) return false;
    socket_.finish_writing();
    closer_.loop_.set(timer_, closer_.limits_.time);
    return true;
  }

 private:
  void on_timeout() { closer_.cut(*this); }

  // Bytes that came before we watched are told of as soon as we do.
  void on_ready() {
    std::array<char, 16384> thrown_away;  // not cleared: never read
    while (true) {
      const IoResult result = socket_.receive(thrown_away);
      if (result.is_blocked()) return;
      if (!result.is_done()) return closer_.end(*this);
      if (result.bytes > left_) return closer_.cut(*this);
      left_ -= result.bytes;
    }
  }

  LingeringCloser& closer_;
  Socket socket_{Callback<>::to<&Connection::on_ready>(*this)};
  Timer timer_{Callback<>::to<&Connection::on_timeout>(*this)};
  std::size_t left_;
};

LingeringCloser::LingeringCloser(EventLoop& loop, const LingeringLimits& limits)
    : loop_(loop), limits_(limits) {}

LingeringCloser::~LingeringCloser() = default;

std::size_t LingeringCloser::size() const noexcept { return connections_.size(); }

void LingeringCloser::close(Stream& stream) {
  if (!stream.is_open()) return;
  if (!connections_.empty() && size() >= limits_.connections) cut(connections_.front());
  Connection& connection = connections_.emplace_back(*this);
  connection.place = std::prev(connections_.end());
  if (!connection.start(stream.release())) end(connection);
}

void LingeringCloser::end(Connection& connection) noexcept { connections_.erase(connection.place); }

void LingeringCloser::cut(Connection& connection) noexcept {
  ++cut_off_;
  end(connection);
}

}  // namespace sluice::net
