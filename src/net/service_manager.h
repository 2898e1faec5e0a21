// What the process tells the service manager that started it: systemd, or whatever listens on the
// socket that NOTIFY_SOCKET names. Without one, everything here does nothing.
//
// Each message is one datagram; if the manager does not read, it is lost; no thread waits. One
// thread.
#pragma once

#include "base/file_descriptor.h"
#include <sluice/time.h>

#include <optional>
#include <string>
#include <string_view>

namespace sluice::net {

class ServiceManager {
 public:
  ServiceManager() = default;  // none
  // Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID and removes them, so that no child of ours
  // speaks in our name. Call it once, before there are threads.
  [[nodiscard]] static ServiceManager from_environment();

  [[nodiscard]] bool is_listening() const noexcept { return static_cast<bool>(socket_); }
  // Say `alive` at least this often, or be restarted; nothing without a watchdog.
  [[nodiscard]] std::optional<Nanos> watchdog() const noexcept { return watchdog_; }

  void ready(std::string_view status) noexcept;  // also after a reload
  void reloading(MonoTime now) noexcept;         // the manager waits for `ready`
  void stopping(std::string_view status) noexcept;
  void alive() noexcept;

 private:
  void send(const std::string& message) noexcept;

  FileDescriptor socket_;
  std::optional<Nanos> watchdog_;
};

}  // namespace sluice::net
