#include "net/acceptor.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/socket.h>
#include <utility>

namespace sluice::net {
namespace {

FileDescriptor any_descriptor() noexcept {
  return FileDescriptor{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
}

FileDescriptor accept_one(int descriptor, SocketAddress& address) noexcept {
  return FileDescriptor{
      ::accept4(descriptor, address.get(), address.size(), SOCK_NONBLOCK | SOCK_CLOEXEC)};
}

}  // namespace

Acceptor::Acceptor(Callback<Accepted> on_accepted, Callback<bool&> on_lack) noexcept
    : on_accepted_(on_accepted),
      on_lack_(on_lack),
      watcher_(Callback<Events>::to<&Acceptor::on_events>(*this)),
      pause_(Callback<>::to<&Acceptor::accept_some>(*this)),
      rest_(Callback<>::to<&Acceptor::accept_some>(*this)) {}

Result<void> Acceptor::start(EventLoop& loop, int descriptor) noexcept {
  stop();
  reserve_ = any_descriptor();
  Result<void> watched = watcher_.start(loop, descriptor);
  if (!watched) return watched;
  loop_ = &loop;
  descriptor_ = descriptor;
  return {};
}

void Acceptor::stop() noexcept {
  watcher_.stop();
  pause_.cancel();
  rest_.cancel();
  loop_ = nullptr;
}

void Acceptor::on_events(Events /*events*/) {
  if (!pause_.is_set()) accept_some();
}

void Acceptor::finish() {
  // As many as wait in the system's queue at most; meanwhile others come.
  for (int turns = 0; turns < 4096 / kPerTurn && accept_up_to_all();) ++turns;
  stop();
}

void Acceptor::accept_some() {
  // There may be more, and we shall not be told.
  if (accept_up_to_all()) loop_->run_soon(rest_);
}

bool Acceptor::accept_up_to_all() {
  for (int i = 0; i < kPerTurn; ++i) {
    if (loop_ == nullptr) return false;
    SocketAddress address;
    FileDescriptor connection = accept_one(descriptor_, address);
    if (connection) {
      ++counts_.accepted;
      on_accepted_(Accepted{std::move(connection), Peer::of(address)});
    } else if (!go_on_after(errno)) {
      return false;
    }
  }
  return loop_ != nullptr;
}

bool Acceptor::is_freed() const {
  bool freed = false;
  if (on_lack_) on_lack_(freed);
  return freed;
}

bool Acceptor::go_on_after(int error) {
  switch (error) {
    case EAGAIN: return false;
    case EMFILE:
    case ENFILE:
      if (is_freed()) return true;
      refuse_waiting();
      pause();
      return false;
    case EINTR: return true;
    // Errors of the connection that was next, as Linux passes them on; not ours.
    case ECONNABORTED:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH:
    case ENONET:
    case ENOPROTOOPT:
    case EOPNOTSUPP:
    case EPERM:
    case EPROTO: ++counts_.aborted; return true;
    default: pause(); return false;  // no memory, most likely
  }
}

void Acceptor::refuse_waiting() noexcept {
  for (int i = 0; i < kPerTurn && reserve_; ++i) {
    {
      const FileDescriptor given_up = std::move(reserve_);
    }
    SocketAddress address;
    const bool accepted = static_cast<bool>(accept_one(descriptor_, address));
    reserve_ = any_descriptor();
    if (!accepted) return;
    ++counts_.refused;
  }
}

void Acceptor::pause() noexcept {
  ++counts_.pauses;
  if (!reserve_) reserve_ = any_descriptor();
  loop_->set(pause_, kPause);
}

}  // namespace sluice::net
