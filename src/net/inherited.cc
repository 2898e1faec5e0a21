#include "net/inherited.h"

#include "base/text.h"
#include "net/environment.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

namespace sluice::net {
namespace {

constexpr int kFirst = 3;             // behind standard input, output and error
constexpr std::uint64_t kMax = 1024;  // more is no count but a mistake

std::string_view next_name(std::string_view& names) noexcept {
  const std::size_t colon = names.find(':');
  const std::string_view name = names.substr(0, colon);
  names.remove_prefix(colon == std::string_view::npos ? names.size() : colon + 1);
  return name;
}

int option_of(int descriptor, int option) noexcept {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(descriptor, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

bool is_listening_stream(int descriptor) noexcept {
  return option_of(descriptor, SO_TYPE) == SOCK_STREAM && option_of(descriptor, SO_ACCEPTCONN) == 1;
}

bool make_ours(int descriptor) noexcept {
  const int on = 1;
  (void)::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // not on Unix sockets
  const int flags = ::fcntl(descriptor, F_GETFL);
  return flags >= 0 && ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0 &&
         ::fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0;
}

}  // namespace

Parsed<std::vector<InheritedListener>> take_inherited_listeners() {
  const std::string pid = take_variable("LISTEN_PID");
  const std::string count = take_variable("LISTEN_FDS");
  const std::string all_names = take_variable("LISTEN_FDNAMES");
  std::vector<InheritedListener> listeners;
  if (pid != std::to_string(::getpid())) return listeners;
  const std::optional<std::uint64_t> number = parse_number(count);
  if (!number || *number > kMax) {
    return mistake("LISTEN_FDS is no number of sockets: " + quoted(count));
  }
  std::string_view names = all_names;
  for (int descriptor = kFirst; descriptor < kFirst + static_cast<int>(*number); ++descriptor) {
    std::string name{next_name(names)};
    if (!is_listening_stream(descriptor) || !make_ours(descriptor)) {
      return mistake("the inherited descriptor " + std::to_string(descriptor) + " " + quoted(name) +
                         " is no listening stream socket",
                     "use ListenStream= in the socket unit, and Accept=no");
    }
    listeners.push_back({.name = std::move(name), .listener = Listener::inherited(descriptor)});
  }
  return listeners;
}

}  // namespace sluice::net
