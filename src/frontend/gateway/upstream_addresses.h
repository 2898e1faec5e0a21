// The addresses of a server, one or as many as its name has, and the health of each.
//
// An address with several consecutive failures is ejected by itself, since other addresses of the
// name may be healthy. Its state lasts as long as the name has it; requests in flight may outlive
// that. Only `assign` allocates. One thread.
#pragma once

#include "net/lookup.h"
#include "net/socket_address.h"
#include <sluice/time.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace sluice::gateway {

struct UpstreamOptions;

class UpstreamAddress {
 public:
  // Nothing: not known yet.
  explicit UpstreamAddress(const std::optional<net::SocketAddress>& where) noexcept
      : where_(where) {}

  [[nodiscard]] const std::optional<net::SocketAddress>& where() const noexcept { return where_; }
  // True: this failure ejects it, for the first time since it last succeeded.
  bool failed(const UpstreamOptions& options, MonoTime now) noexcept;
  // True: it was ejected, and has recovered.
  bool succeeded() noexcept {
    failures_in_a_row_ = 0;
    return std::exchange(awaits_recovery_, false);
  }
  [[nodiscard]] bool is_ejected(MonoTime now) const noexcept { return now < ejected_until_; }
  [[nodiscard]] MonoTime ejected_until() const noexcept { return ejected_until_; }

 private:
  std::optional<net::SocketAddress> where_;
  std::uint32_t failures_in_a_row_ = 0;
  bool awaits_recovery_ = false;  // ejected, without success since
  MonoTime ejected_until_;
};

class UpstreamAddresses {
 public:
  using Shared = std::shared_ptr<UpstreamAddress>;

  explicit UpstreamAddresses(const std::optional<net::SocketAddress>& only)
      : all_{std::make_shared<UpstreamAddress>(only)} {}

  // Sets the addresses that the name has now, at least one.
  void assign(const net::Addresses& found, std::uint16_t port);

  // Round robin over addresses that are not ejected. If all are, the one ejected first. Not
  // `except`, unless it is the only one.
  [[nodiscard]] const Shared& next(const UpstreamAddress* except, MonoTime now) noexcept;
  // An address that is not ejected.
  [[nodiscard]] bool has_another(const UpstreamAddress* except, MonoTime now) const noexcept;
  [[nodiscard]] bool are_ejected(MonoTime now) const noexcept {  // all of them
    return !has_another(nullptr, now);
  }
  [[nodiscard]] MonoTime ejected_until() const noexcept;  // until the first is not

  [[nodiscard]] const std::vector<Shared>& all() const noexcept { return all_; }  // never empty
  [[nodiscard]] std::size_t ejected(MonoTime now) const noexcept;                 // how many

 private:
  [[nodiscard]] Shared at(const net::SocketAddress& where) const;

  std::vector<Shared> all_;
  std::size_t next_ = 0;
};

}  // namespace sluice::gateway
