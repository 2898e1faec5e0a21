#include "app/server/admin_listener.h"

#include <utility>

namespace sluice::app {

AdminListener::AdminListener(std::unique_ptr<net::EventLoop> loop,
                             const Published<ServerSnapshot>& published,
                             std::unique_ptr<admin::ServerView> view)
    : loop_(std::move(loop)),
      published_(published),
      view_(std::move(view)),
      server_(*loop_, routes_) {
  admin::add_pages(routes_, *view_);
  loop_->set_turn_hook(net::Callback<Now>::to<&AdminListener::on_turn>(*this));
}

void AdminListener::on_turn(Now /*now*/) {
  const std::uint64_t version = published_.version();
  if (version == version_) return;
  version_ = version;
  server_.use(published_.get()->guard);
}

AdminListener::~AdminListener() {
  loop_->stop();
  if (thread_.joinable()) thread_.join();
}

Parsed<std::unique_ptr<AdminListener>> AdminListener::open(
    std::vector<net::Listener> listeners, const Published<ServerSnapshot>& published,
    std::unique_ptr<admin::ServerView> view, const Clock& clock) {
  auto loop = net::EventLoop::create(clock);
  if (!loop) return tl::unexpected(std::move(loop.error()));
  std::unique_ptr<AdminListener> made{
      new AdminListener{*std::move(loop), published, std::move(view)}};
  for (net::Listener& listener : listeners) {
    Parsed<void> listening = made->listen(std::move(listener));
    if (!listening) return tl::unexpected(std::move(listening.error()));
  }
  return made;
}

Parsed<void> AdminListener::listen(net::Listener listener) {
  listeners_.push_back(std::make_unique<net::Listener>(std::move(listener)));
  acceptors_.push_back(std::make_unique<net::Acceptor>(
      net::Callback<net::Accepted>::to<&admin::AdminServer::accept>(server_)));
  if (!acceptors_.back()->start(*loop_, listeners_.back()->descriptor())) {
    return mistake("cannot watch " + listeners_.back()->endpoint().text());
  }
  return {};
}

void AdminListener::start() {
  thread_ = std::jthread{[this] { loop_->run(); }};
}

void AdminListener::wake() {
  loop_->post([] {});
}

std::vector<std::string> AdminListener::endpoints() const {
  std::vector<std::string> texts;
  for (const auto& listener : listeners_) texts.push_back(listener->endpoint().text());
  return texts;
}

}  // namespace sluice::app
