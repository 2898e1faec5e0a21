#include "store/redis/redis_fixture.h"

#include "support/child.h"
#include "support/program.h"

#include <array>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace sluice::store {
namespace {

// Runs the server with its messages going to a pipe, and waits until it says that it is ready.
pid_t start_redis(const std::string& socket) {
  const auto program = testing::find_program("redis-server");
  if (!program) throw std::runtime_error{"redis-server is not installed"};
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw std::runtime_error{"no pipe"};
  const pid_t process = testing::start_child([&] {
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    ::execl(program->c_str(), "redis-server", "--port", "0", "--unixsocket", socket.c_str(),
            "--save", "", "--appendonly", "no", "--daemonize", "no", nullptr);
    return EXIT_FAILURE;
  });
  ::close(ends[1]);
  std::string said;
  std::array<char, 4096> buffer{};
  while (said.find("Ready to accept connections") == std::string::npos &&
         said.find("ready to accept connections") == std::string::npos) {
    const ssize_t count = ::read(ends[0], buffer.data(), buffer.size());
    if (count <= 0) throw std::runtime_error{"redis-server did not start: " + said};
    said.append(buffer.data(), static_cast<std::size_t>(count));
  }
  // The read end stays open, unread: the server says little from here on, and a closed pipe would
  // end it.
  return process;
}

int connect_to(const std::string& path) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  if (socket < 0 ||
      ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error{"cannot connect to " + path};
  }
  return socket;
}

}  // namespace

std::vector<std::int64_t> RedisReply::numbers() const {
  if (kind != Kind::list) throw std::runtime_error{"not a list: " + text};
  std::vector<std::int64_t> result;
  for (const RedisReply& one : list) {
    if (one.kind != Kind::number) throw std::runtime_error{"not a number: " + one.text};
    result.push_back(one.number);
  }
  return result;
}

RedisServer::RedisServer()
    : process_(start_redis(folder_.file("redis.sock"))),
      socket_(connect_to(folder_.file("redis.sock"))) {}

RedisServer::~RedisServer() {
  ::close(socket_);
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

void RedisServer::send(const std::vector<std::string_view>& command) {
  to_send_ += '*' + std::to_string(command.size()) + "\r\n";
  for (const std::string_view word : command) {
    to_send_ += '$' + std::to_string(word.size()) + "\r\n";
    to_send_ += word;
    to_send_ += "\r\n";
  }
}

void RedisServer::flush() {
  std::string_view left = to_send_;
  while (!left.empty()) {
    const ssize_t count = ::send(socket_, left.data(), left.size(), MSG_NOSIGNAL);
    if (count <= 0) throw std::runtime_error{"redis-server is gone"};
    left.remove_prefix(static_cast<std::size_t>(count));
  }
  to_send_.clear();
}

void RedisServer::fill() {
  std::array<char, 65536> buffer{};
  const ssize_t count = ::recv(socket_, buffer.data(), buffer.size(), 0);
  if (count <= 0) throw std::runtime_error{"redis-server is gone"};
  received_.erase(0, read_);
  read_ = 0;
  received_.append(buffer.data(), static_cast<std::size_t>(count));
}

std::string RedisServer::line() {
  std::size_t end = 0;
  while ((end = received_.find("\r\n", read_)) == std::string::npos) fill();
  std::string text = received_.substr(read_, end - read_);
  read_ = end + 2;
  return text;
}

std::string RedisServer::bytes(std::size_t count) {
  while (received_.size() - read_ < count + 2) fill();
  std::string text = received_.substr(read_, count);
  read_ += count + 2;
  return text;
}

RedisReply RedisServer::receive() {
  flush();
  const std::string head = line();
  const std::string rest = head.substr(1);
  using Kind = RedisReply::Kind;
  RedisReply reply;
  switch (head[0]) {
    case ':':
      reply.kind = Kind::number;
      reply.number = std::stoll(rest);
      return reply;
    case '+':
      reply.kind = Kind::text;
      reply.text = rest;
      return reply;
    case '-':
      reply.kind = Kind::error;
      reply.text = rest;
      return reply;
    case '$':
      if (rest == "-1") return reply;
      reply.kind = Kind::text;
      reply.text = bytes(std::stoul(rest));
      return reply;
    case '*': {
      reply.kind = Kind::list;
      const long count = std::stol(rest);
      for (long i = 0; i < count; ++i) reply.list.push_back(receive());
      return reply;
    }
    default: throw std::runtime_error{"not a reply: " + head};
  }
}

}  // namespace sluice::store
