// Where a server is: at one address, or at as many as its name has, and how each of them fared.
//
// An address that fails several times in a row is ejected for a while by itself, since others of
// the same name may be well. What is known of one stays for as long as the name has it, and what is
// under way may outlive that. Only `assign` allocates. One thread.
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
  // Nothing: nobody knows yet.
  explicit UpstreamAddress(const std::optional<net::SocketAddress>& where) noexcept
      : where_(where) {}

  [[nodiscard]] const std::optional<net::SocketAddress>& where() const noexcept { return where_; }
  // True: with this failure it is ejected, and was not before it last succeeded.
  bool failed(const UpstreamOptions& options, MonoTime now) noexcept;
  // True: it was ejected, and is well again.
  bool succeeded() noexcept {
    failures_in_a_row_ = 0;
    return std::exchange(awaits_recovery_, false);
  }
  [[nodiscard]] bool is_ejected(MonoTime now) const noexcept { return now < ejected_until_; }
  [[nodiscard]] MonoTime ejected_until() const noexcept { return ejected_until_; }

 private:
  std::optional<net::SocketAddress> where_;
  std::uint32_t failures_in_a_row_ = 0;
  bool awaits_recovery_ = false;  // and has not succeeded since
  MonoTime ejected_until_;
};

class UpstreamAddresses {
 public:
  using Shared = std::shared_ptr<UpstreamAddress>;

  explicit UpstreamAddresses(const std::optional<net::SocketAddress>& only)
      : all_{std::make_shared<UpstreamAddress>(only)} {}

  // Those that a name has now, at least one.
  void assign(const net::Addresses& found, std::uint16_t port);

  // Of those that are not ejected, each in turn. If all are, the one that was ejected first.
  // Not `except`, unless it is the only one.
  [[nodiscard]] const Shared& next(const UpstreamAddress* except, MonoTime now) noexcept;
  // One that is not ejected.
  [[nodiscard]] bool has_another(const UpstreamAddress* except, MonoTime now) const noexcept;
  [[nodiscard]] bool are_ejected(MonoTime now) const noexcept {  // all of them
    return !has_another(nullptr, now);
  }
  [[nodiscard]] MonoTime ejected_until() const noexcept;  // until the first is not

  [[nodiscard]] const std::vector<Shared>& all() const noexcept { return all_; }  // never empty
  [[nodiscard]] std::size_t ejected(MonoTime now) const noexcept;                 // so many

 private:
  [[nodiscard]] Shared at(const net::SocketAddress& where) const;

  std::vector<Shared> all_;
  std::size_t next_ = 0;
};

}  // namespace sluice::gateway
