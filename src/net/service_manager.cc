#include "net/service_manager.h"

#include "base/text.h"
#include "net/environment.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace sluice::net {
namespace {

// A path, or a name behind @, which the system takes behind a zero.
FileDescriptor connect_to(const std::string& name) noexcept {
  sockaddr_un address{.sun_family = AF_UNIX};
  const bool known = name.starts_with('/') || name.starts_with('@');
  if (!known || name.size() < 2 || name.size() >= sizeof address.sun_path) return {};
  std::copy(name.begin(), name.end(), address.sun_path);
  if (name.front() == '@') address.sun_path[0] = '\0';
  FileDescriptor socket{::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  const auto* const target = reinterpret_cast<const sockaddr*>(&address);
  return socket && ::connect(socket.get(), target, size) == 0 ? std::move(socket)
                                                              : FileDescriptor{};
}

std::optional<Nanos> watchdog_interval(const std::string& micros, const std::string& pid) {
  const std::optional<std::uint64_t> number = parse_number(micros);
  constexpr auto kMicrosMax =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / 1000);
  const bool for_us = pid.empty() || pid == std::to_string(::getpid());
  if (!for_us || !number || *number == 0 || *number > kMicrosMax) return std::nullopt;
  return std::chrono::microseconds{static_cast<std::int64_t>(*number)};
}

}  // namespace

ServiceManager ServiceManager::from_environment() {
  ServiceManager manager;
  manager.socket_ = connect_to(take_variable("NOTIFY_SOCKET"));
  const std::string micros = take_variable("WATCHDOG_USEC");
  const std::string pid = take_variable("WATCHDOG_PID");
  if (manager.is_listening()) manager.watchdog_ = watchdog_interval(micros, pid);
  return manager;
}

void ServiceManager::ready(std::string_view status) noexcept {
  send("READY=1\nSTATUS=" + std::string{status});
}

void ServiceManager::reloading(MonoTime now) noexcept {
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  send("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(micros));
}

void ServiceManager::stopping(std::string_view status) noexcept {
  send("STOPPING=1\nSTATUS=" + std::string{status});
}

void ServiceManager::alive() noexcept { send("WATCHDOG=1"); }

void ServiceManager::send(const std::string& message) noexcept {
  if (socket_) (void)::send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL);
}

}  // namespace sluice::net
