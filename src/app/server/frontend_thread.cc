#include "app/server/frontend_thread.h"

#include <utility>

namespace sluice::app {

// Reads the version before the snapshot: a snapshot published in between is taken with the next
// turn.
FrontendThread::FrontendThread(std::unique_ptr<net::EventLoop> loop, const Parts& parts)
    : loop_(std::move(loop)),
      number_(parts.number),
      published_(parts.published),
      version_(published_.version()),
      worker_(parts.frontend.on_thread({.loop = *loop_, .view = parts.view},
                                       published_.get()->frontends[number_])) {
  loop_->set_turn_hook(net::Callback<Now>::to<&FrontendThread::on_turn>(*this));
}

void FrontendThread::on_turn(Now /*now*/) {
  const std::uint64_t version = published_.version();
  if (version == version_) return;
  version_ = version;
  worker_->use(published_.get()->frontends[number_]);
}

FrontendThread::~FrontendThread() {
  loop_->stop();
  if (thread_.joinable()) thread_.join();
}

Parsed<std::unique_ptr<FrontendThread>> FrontendThread::open(const Parts& parts,
                                                             std::vector<OpenListener> listeners) {
  auto loop = net::EventLoop::create(parts.clock);
  if (!loop) return tl::unexpected(std::move(loop.error()));
  std::unique_ptr<FrontendThread> made{new FrontendThread{*std::move(loop), parts}};
  for (OpenListener& open : listeners) {
    const std::string endpoint = open.listener.endpoint().text();
    made->acceptors_.push_back(std::make_unique<ListenerAcceptor>(std::move(open), *made->worker_));
    if (!made->acceptors_.back()->watch(*made->loop_)) return mistake("cannot watch " + endpoint);
  }
  return made;
}

void FrontendThread::start() {
  thread_ = std::jthread{[this] { loop_->run(); }};
}

void FrontendThread::wake() {
  loop_->post([] {});
}

}  // namespace sluice::app
