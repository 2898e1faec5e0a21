// Code in a process of its own: what it does to itself or to its files, it survives or not, alone.
//
// Only in tests without threads of their own.
#pragma once

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <fcntl.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace sluice::testing {

// Starts a child that ends with what `run` answers, and never outlives its parent.
template <class Run>
[[nodiscard]] pid_t start_child(Run&& run) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error{"cannot fork"};
  if (child > 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(EXIT_FAILURE);
  ::_exit(std::forward<Run>(run)());  // without the destructors and reports of the parent's objects
}

// The exit code, or nothing if a signal ended it.
[[nodiscard]] inline std::optional<int> wait_for_child(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? std::optional{WEXITSTATUS(status)} : std::nullopt;
}

template <class Run>
[[nodiscard]] std::optional<int> in_child(Run&& run) {
  return wait_for_child(start_child(std::forward<Run>(run)));
}

// How a child ended, and what it said on standard error before.
struct EndOfChild {
  std::string said;
  int status = 0;

  [[nodiscard]] bool is_by(int signal) const noexcept {
    return WIFSIGNALED(status) && WTERMSIG(status) == signal;
  }
};
template <class Run>
[[nodiscard]] EndOfChild end_of_child(Run&& run) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) throw std::runtime_error{"no pipe"};
  const pid_t child = start_child([&] {
    ::dup2(pipe[1], STDERR_FILENO);
    return std::forward<Run>(run)();
  });
  ::close(pipe[1]);
  EndOfChild end;
  std::array<char, 4096> buffer;
  for (ssize_t got = 0; (got = ::read(pipe[0], buffer.data(), buffer.size())) > 0;) {
    end.said.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(pipe[0]);
  while (::waitpid(child, &end.status, 0) < 0 && errno == EINTR) {
  }
  return end;
}

}  // namespace sluice::testing
