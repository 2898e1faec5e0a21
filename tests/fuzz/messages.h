// Messages as somebody on the wire reads them, copied so that they outlive the bytes.
#pragma once

#include "net/http/fault.h"
#include "net/http/message.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::fuzz {

struct Message {
  std::string method;  // of requests
  std::string target;
  std::uint16_t status = 0;  // of answers
  std::vector<std::pair<std::string, std::string>> headers;
  net::BodyFraming framing;
  std::string body;
  bool is_complete = false;

  [[nodiscard]] std::size_t count(std::string_view lower_name) const noexcept;
  [[nodiscard]] std::string last(std::string_view lower_name) const;
};

// Who reads what a gateway wrote expects no mistake in it; who reads what anybody sent stops there.
enum class Reader : std::uint8_t { lenient, strict };

[[nodiscard]] std::vector<Message> read_requests(std::string_view bytes, Reader reader,
                                                 const net::HeadLimits& limits = {});

// Of a server that was asked by these methods, one after the other. Stops at a mistake.
[[nodiscard]] std::vector<Message> read_answers(std::string_view bytes,
                                                const std::vector<std::string>& methods);

// The next answer that a gateway wrote, with all interim ones before it, taken off the bytes.
// Nothing: not all of its head is there, and no bytes are left.
[[nodiscard]] std::optional<Message> take_answer(std::string_view& bytes, std::string_view method);

}  // namespace sluice::fuzz
