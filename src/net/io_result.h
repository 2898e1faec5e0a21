// What an attempt to move bytes came to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::net {

// Why a connection failed. Cheap to make; the text is made on demand.
struct IoFailure {
  enum class Kind : std::uint8_t {
    none,
    system,       // the code is an errno
    tls,          // an error of OpenSSL
    certificate,  // the peer's certificate was rejected: a verification result of OpenSSL
    truncated,    // the peer closed the connection, but not TLS: the end may be an attacker's
  };
  Kind kind = Kind::none;
  unsigned long code = 0;

  [[nodiscard]] std::string text() const;
  // The same without what goes before it: static text, or of OpenSSL's tables.
  [[nodiscard]] std::string_view reason() const noexcept;
};

struct IoResult {
  enum class State : std::uint8_t { done, would_block, closed, failed };
  State state = State::done;
  std::size_t bytes = 0;  // when done
  IoFailure why{};        // when failed

  [[nodiscard]] static IoResult done(std::size_t bytes = 0) noexcept { return {.bytes = bytes}; }
  [[nodiscard]] static IoResult would_block() noexcept { return {.state = State::would_block}; }
  [[nodiscard]] static IoResult closed() noexcept { return {.state = State::closed}; }
  [[nodiscard]] static IoResult failed(IoFailure why) noexcept {
    return {.state = State::failed, .why = why};
  }
  [[nodiscard]] static IoResult system_failure(int error) noexcept {
    return failed({.kind = IoFailure::Kind::system, .code = static_cast<unsigned long>(error)});
  }

  [[nodiscard]] bool is_done() const noexcept { return state == State::done; }
  [[nodiscard]] bool is_blocked() const noexcept { return state == State::would_block; }
  [[nodiscard]] bool is_closed() const noexcept { return state == State::closed; }
  [[nodiscard]] bool is_failed() const noexcept { return state == State::failed; }
};

}  // namespace sluice::net
