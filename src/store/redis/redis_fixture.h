// A redis-server of the test's own, and a client that is just enough for it.
#pragma once

#include "support/temp_folder.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <variant>
#include <vector>

namespace sluice::store {

// A reply: a number, a text, nothing, or several of them.
struct RedisReply {
  enum class Kind { number, text, error, nothing, list };
  Kind kind = Kind::nothing;
  std::int64_t number = 0;
  std::string text;
  std::vector<RedisReply> list;

  [[nodiscard]] bool is_error() const noexcept { return kind == Kind::error; }
  // The numbers of a list, for read_reply(); throws if it is something else.
  [[nodiscard]] std::vector<std::int64_t> numbers() const;
};

// Listens on a socket in a folder of its own, keeps nothing, and ends with this object.
class RedisServer {
 public:
  RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;
  ~RedisServer();

  // Sends right away or with the next receive().
  void send(const std::vector<std::string_view>& command);
  [[nodiscard]] RedisReply receive();
  [[nodiscard]] RedisReply ask(const std::vector<std::string_view>& command) {
    send(command);
    return receive();
  }

 private:
  void flush();
  [[nodiscard]] std::string line();
  [[nodiscard]] std::string bytes(std::size_t count);
  void fill();

  testing::TempFolder folder_;
  pid_t process_ = -1;
  int socket_ = -1;
  std::string to_send_;
  std::string received_;
  std::size_t read_ = 0;
};

}  // namespace sluice::store
