#include "net/signals.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <sys/signalfd.h>
#include <unistd.h>

namespace sluice::net {
namespace {

sigset_t wanted_signals() noexcept {
  sigset_t set{};
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) sigaddset(&set, number);
  return set;
}

}  // namespace

SignalSource::SignalSource(Callback<int> on_signal) noexcept
    : on_signal_(on_signal), watcher_(Callback<Events>::to<&SignalSource::on_events>(*this)) {
  const sigset_t wanted = wanted_signals();
  ::pthread_sigmask(SIG_BLOCK, &wanted, &before_);
}

SignalSource::~SignalSource() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

bool SignalSource::start(EventLoop& loop) noexcept {
  const sigset_t wanted = wanted_signals();
  descriptor_ = FileDescriptor{::signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC)};
  return descriptor_ && watcher_.start(loop, descriptor_.get()).has_value();
}

Parsed<std::unique_ptr<SignalSource>> SignalSource::create(EventLoop& loop,
                                                           Callback<int> on_signal) {
  // A peer that is gone is an error of one write, not the end of the process.
  (void)std::signal(SIGPIPE, SIG_IGN);
  std::unique_ptr<SignalSource> source{new SignalSource{on_signal}};
  if (!source->start(loop)) {
    return mistake(std::string{"cannot receive signals: "} + std::strerror(errno));
  }
  return source;
}

void SignalSource::on_events(Events /*events*/) {
  signalfd_siginfo info{};
  while (::read(descriptor_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    on_signal_(static_cast<int>(info.ssi_signo));
  }
}

}  // namespace sluice::net
