#include "net/listen.h"

#include "net/listen_check.h"
#include "net/lookup.h"
#include "net/socket_address.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

namespace sluice::net {
namespace {

tl::unexpected<Diagnostic> cannot_listen(const Endpoint& endpoint, std::string_view why,
                                         std::string remedy = {}) {
  return mistake("cannot listen on " + endpoint.text() + ": " + std::string{why},
                 std::move(remedy));
}

tl::unexpected<Diagnostic> cannot_listen(const Endpoint& endpoint, int error) {
  constexpr std::uint16_t kFirstFreePort = 1024;
  const bool privileged =
      endpoint.kind != Endpoint::Kind::unix_path && endpoint.port < kFirstFreePort;
  switch (error) {
    case EADDRINUSE:
      return cannot_listen(endpoint, "the address is in use", "is another instance running?");
    case EADDRNOTAVAIL:
      return cannot_listen(endpoint, "this machine has no such address",
                           "use an address that `ip address` shows");
    case EACCES:
      return cannot_listen(endpoint, "not permitted",
                           privileged ? "ports below 1024 need the capability CAP_NET_BIND_SERVICE"
                                      : "check the permissions of the folder");
    case ENOENT: return cannot_listen(endpoint, "the folder does not exist", "create it first");
    default: return cannot_listen(endpoint, std::strerror(error));
  }
}

bool set_flag(int descriptor, int level, int option, bool value) noexcept {
  const int number = value ? 1 : 0;
  return ::setsockopt(descriptor, level, option, &number, sizeof number) == 0;
}

FileDescriptor new_socket(int family) noexcept {
  return FileDescriptor{::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
}

bool set_for_binding(int number, int family, bool v6_only) noexcept {
  return set_flag(number, SOL_SOCKET, SO_REUSEADDR, true) &&
         (family != AF_INET6 || set_flag(number, IPPROTO_IPV6, IPV6_V6ONLY, v6_only));
}

// What connections inherit from the socket that accepts them is set once, here.
Parsed<Listener> listen_on_ip(const Endpoint& endpoint, const SocketAddress& address, bool v6_only,
                              const ListenOptions& options) {
  FileDescriptor descriptor = new_socket(address.family());
  if (!descriptor) return cannot_listen(endpoint, errno);
  const int number = descriptor.get();
  const bool is_set = set_for_binding(number, address.family(), v6_only) &&
                      set_flag(number, SOL_SOCKET, SO_REUSEPORT, options.reuse_port) &&
                      set_flag(number, IPPROTO_TCP, TCP_NODELAY, true);
  if (!is_set || ::bind(number, address.get(), address.size()) != 0 ||
      ::listen(number, options.backlog) != 0) {
    return cannot_listen(endpoint, errno);
  }
  Endpoint bound = endpoint;
  bound.port = local_endpoint(number).port;
  return Listener{std::move(descriptor), std::move(bound)};
}

// A machine may have no IPv6.
Parsed<Listener> listen_on_any(const Endpoint& endpoint, const ListenOptions& options) {
  const SocketAddress both = SocketAddress::of(IpAddress{.is_v4 = false}, endpoint.port);
  if (new_socket(AF_INET6)) return listen_on_ip(endpoint, both, false, options);
  return listen_on_ip(endpoint, SocketAddress::of(IpAddress{}, endpoint.port), true, options);
}

Parsed<Listener> listen_on_name(const Endpoint& endpoint, const ListenOptions& options) {
  const Parsed<Addresses> addresses = look_up(endpoint.name);
  if (!addresses) {
    return cannot_listen(endpoint, addresses.error().text() +
                                       "; write an address of this machine, or ':PORT' for all");
  }
  const SocketAddress address = SocketAddress::of(addresses->front(), endpoint.port);
  return listen_on_ip(endpoint, address, true, options);
}

// Only a socket that no process has: a file of another kind is not ours to remove. A datagram
// socket cannot reach a listening one, so that a running server sees no connection of this.
bool is_stale_socket(const SocketAddress& address, const std::string& path) noexcept {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return false;
  const FileDescriptor probe{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  return probe && ::connect(probe.get(), address.get(), address.size()) != 0 &&
         errno == ECONNREFUSED;
}

bool bind_path(int descriptor, const SocketAddress& address, const std::string& path) noexcept {
  if (::bind(descriptor, address.get(), address.size()) == 0) return true;
  if (errno != EADDRINUSE) return false;
  if (!is_stale_socket(address, path) || ::unlink(path.c_str()) != 0) {
    errno = EADDRINUSE;
    return false;
  }
  return ::bind(descriptor, address.get(), address.size()) == 0;
}

// The mode is set before the file exists, so that no client connects in between; and again after
// the umask.
Parsed<Listener> listen_on_path(const Endpoint& endpoint, const ListenOptions& options) {
  const std::optional<SocketAddress> address = SocketAddress::of_path(endpoint.name);
  if (!address) return cannot_listen(endpoint, ENAMETOOLONG);
  FileDescriptor descriptor = new_socket(AF_UNIX);
  if (!descriptor || ::fchmod(descriptor.get(), options.unix_mode) != 0 ||
      !bind_path(descriptor.get(), *address, endpoint.name)) {
    return cannot_listen(endpoint, errno);
  }
  Listener listener{std::move(descriptor), endpoint};
  if (::chmod(endpoint.name.c_str(), options.unix_mode) != 0 ||
      ::listen(listener.descriptor(), options.backlog) != 0) {
    return cannot_listen(endpoint, errno);
  }
  return listener;
}

// ---- only looking -----------------------------------------------------------------------------

// Why binding would fail; 0: it would not. A socket that is bound and does not listen takes no
// connections.
int error_of_binding(const SocketAddress& address, bool v6_only) noexcept {
  const FileDescriptor descriptor = new_socket(address.family());
  if (!descriptor || !set_for_binding(descriptor.get(), address.family(), v6_only)) return errno;
  return ::bind(descriptor.get(), address.get(), address.size()) == 0 ? 0 : errno;
}

int error_of_binding_any(std::uint16_t port) noexcept {
  if (!new_socket(AF_INET6)) return error_of_binding(SocketAddress::of(IpAddress{}, port), true);
  return error_of_binding(SocketAddress::of(IpAddress{.is_v4 = false}, port), false);
}

int error_of_path(const std::string& path) {
  const std::optional<SocketAddress> address = SocketAddress::of_path(path);
  if (!address) return ENAMETOOLONG;
  struct stat found{};
  if (::lstat(path.c_str(), &found) == 0) return is_stale_socket(*address, path) ? 0 : EADDRINUSE;
  const std::filesystem::path above = std::filesystem::path{path}.parent_path();
  const std::string folder = above.empty() ? "." : above.string();
  return ::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

}  // namespace

std::optional<CannotListen> why_not_listen(const Endpoint& endpoint) {
  int error = 0;
  switch (endpoint.kind) {
    case Endpoint::Kind::any: error = error_of_binding_any(endpoint.port); break;
    case Endpoint::Kind::address:
      error = error_of_binding(SocketAddress::of(endpoint.address, endpoint.port), true);
      break;
    case Endpoint::Kind::name: {
      const Parsed<Addresses> addresses = look_up(endpoint.name);
      if (!addresses) {
        return CannotListen{.what = cannot_listen(endpoint, addresses.error().text()).value()};
      }
      error = error_of_binding(SocketAddress::of(addresses->front(), endpoint.port), true);
      break;
    }
    case Endpoint::Kind::unix_path: error = error_of_path(endpoint.name); break;
  }
  if (error == 0) return std::nullopt;
  return CannotListen{.is_in_use = error == EADDRINUSE,
                      .is_not_permitted = error == EACCES || error == EPERM,
                      .what = cannot_listen(endpoint, error).value()};
}

Listener::Listener(FileDescriptor descriptor, Endpoint endpoint)
    : descriptor_(std::move(descriptor)), endpoint_(std::move(endpoint)) {
  struct stat file{};
  if (endpoint_.kind == Endpoint::Kind::unix_path && ::lstat(endpoint_.name.c_str(), &file) == 0) {
    device_ = file.st_dev;
    inode_ = file.st_ino;
  }
}

Listener Listener::inherited(int descriptor) {
  Listener listener{FileDescriptor{descriptor}, local_endpoint(descriptor)};
  listener.inode_ = 0;
  listener.is_inherited_ = true;
  return listener;
}

Parsed<Listener> Listener::share() const {
  FileDescriptor same{::fcntl(descriptor_.get(), F_DUPFD_CLOEXEC, 0)};
  if (!same) return cannot_listen(endpoint_, errno);
  Listener listener{std::move(same), endpoint_};
  listener.inode_ = 0;
  listener.is_inherited_ = is_inherited_;
  return listener;
}

Listener::~Listener() {
  if (!descriptor_ || inode_ == 0) return;
  struct stat file{};
  const bool ours = ::lstat(endpoint_.name.c_str(), &file) == 0 && file.st_dev == device_ &&
                    file.st_ino == inode_;
  if (ours) ::unlink(endpoint_.name.c_str());
}

Parsed<Listener> listen_on(const Endpoint& endpoint, const ListenOptions& options) {
  switch (endpoint.kind) {
    case Endpoint::Kind::any: return listen_on_any(endpoint, options);
    case Endpoint::Kind::address:
      return listen_on_ip(endpoint, SocketAddress::of(endpoint.address, endpoint.port), true,
                          options);
    case Endpoint::Kind::name: return listen_on_name(endpoint, options);
    case Endpoint::Kind::unix_path: return listen_on_path(endpoint, options);
  }
  return cannot_listen(endpoint, EINVAL);
}

Endpoint local_endpoint(int descriptor) {
  SocketAddress address;
  if (::getsockname(descriptor, address.get(), address.size()) != 0) return {};
  if (!address.is_ip()) return Endpoint::of_path(std::string{address.path()});
  return Endpoint::of(address.ip(), address.port());
}

}  // namespace sluice::net
