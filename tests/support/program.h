// A program of others, that ends with its test.
#pragma once

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <optional>
#include <spawn.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace sluice::testing {

// Its path, looked for where programs are; nothing if it is not installed.
[[nodiscard]] inline std::optional<std::string> find_program(const std::string& name) {
  for (const char* const folder : {"/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/bin/"}) {
    if (::access((folder + name).c_str(), X_OK) == 0) return folder + name;
  }
  return std::nullopt;
}

[[nodiscard]] inline std::string text_of_file(const std::string& path) {
  std::ifstream stream{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{stream}, {}};
}

class Program {
 public:
  // Output and errors go to the file.
  Program(std::vector<std::string> arguments, std::string output) : output_(std::move(output)) {
    std::vector<char*> pointers;
    for (std::string& one : arguments) pointers.push_back(one.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output_.c_str(),
                                       O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    const int failed =
        ::posix_spawn(&id_, pointers.front(), &actions, nullptr, pointers.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) throw std::runtime_error{"cannot start " + arguments.front()};
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (has_ended()) return;
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }

  [[nodiscard]] bool has_ended() {
    int status = 0;
    if (!code_ && ::waitpid(id_, &status, WNOHANG) == id_) {
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    return code_.has_value();
  }
  [[nodiscard]] int code() const { return code_.value_or(-1); }  // -1: a signal ended it
  [[nodiscard]] std::string output() const { return text_of_file(output_); }

 private:
  std::string output_;
  pid_t id_ = -1;
  std::optional<int> code_;
};

}  // namespace sluice::testing
