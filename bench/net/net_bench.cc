// What our loop costs a request, beside Boost.Asio's: net_bench sluice|asio [--timers].
//
// One thread forwards, another is both the clients and the upstream. Every client has one request
// under way at a time. Processor time is that of the forwarding thread alone, since the other is
// the larger half of the load. Prints one line of JSON.

#include "forwarder.h"
#include "net/listen.h"
#include "net/socket_address.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <memory>
#include <pthread.h>
#include <string_view>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace sluice::bench {
namespace {

constexpr int kConnections = 32;
constexpr auto kWarmUp = std::chrono::milliseconds{200};
constexpr auto kMeasured = std::chrono::milliseconds{500};

std::atomic<std::uint64_t> answered = 0;

void require(bool held, const char* what) {
  if (held) return;
  std::perror(what);
  std::exit(3);
}

net::Listener listen_anywhere() {
  return net::listen_on(net::Endpoint::parse("127.0.0.1:0").value()).value();
}

// An end that answers each whole message with one of another size.
struct End {
  int descriptor = -1;
  std::size_t hears = 0;
  std::size_t says = 0;
  bool counts = false;
  std::size_t heard = 0;
};

void say(const End& end) {
  static const std::array<char, kAnswerBytes> kBytes{};
  require(::send(end.descriptor, kBytes.data(), end.says, MSG_NOSIGNAL) ==
              static_cast<ssize_t>(end.says),
          "send");
}

void hear(End& end) {
  std::array<char, 4096> buffer;
  const ssize_t got = ::recv(end.descriptor, buffer.data(), end.hears - end.heard, 0);
  require(got > 0, "recv");
  end.heard += static_cast<std::size_t>(got);
  if (end.heard < end.hears) return;
  end.heard = 0;
  if (end.counts) answered.fetch_add(1, std::memory_order_relaxed);
  say(end);
}

class Traffic {
 public:
  Traffic(const net::Listener& gateway, const net::Listener& upstream) {
    const auto address =
        net::SocketAddress::of(gateway.endpoint().address, gateway.endpoint().port);
    for (int i = 0; i < kConnections; ++i) {
      const int client = ::socket(AF_INET, SOCK_STREAM, 0);
      require(::connect(client, address.get(), address.size()) == 0, "connect");
      add({.descriptor = client, .hears = kAnswerBytes, .says = kRequestBytes, .counts = true});
      ::fcntl(upstream.descriptor(), F_SETFL, 0);  // waits for the forwarder
      const int server = ::accept(upstream.descriptor(), nullptr, nullptr);
      require(server >= 0, "accept");
      add({.descriptor = server, .hears = kRequestBytes, .says = kAnswerBytes});
    }
  }

  [[noreturn]] void run() {
    for (const auto& end : ends_) {
      if (end->counts) say(*end);
    }
    std::array<epoll_event, 64> events{};
    while (true) {
      const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
      for (int i = 0; i < count; ++i) {
        hear(*static_cast<End*>(events[static_cast<std::size_t>(i)].data.ptr));
      }
    }
  }

 private:
  void add(const End& end) {
    ends_.push_back(std::make_unique<End>(end));
    epoll_event event{.events = EPOLLIN, .data = {.ptr = ends_.back().get()}};
    require(::epoll_ctl(epoll_, EPOLL_CTL_ADD, end.descriptor, &event) == 0, "epoll_ctl");
  }

  int epoll_ = ::epoll_create1(0);
  std::vector<std::unique_ptr<End>> ends_;
};

struct Reading {
  double cpu_ns = 0;
  std::uint64_t answers = 0;
};

Reading read(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return {.cpu_ns = static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec),
          .answers = answered.load(std::memory_order_relaxed)};
}

void measure(std::string_view subject, bool timers) {
  const net::Listener gateway = listen_anywhere();
  const net::Listener upstream = listen_anywhere();
  const ForwarderWish wish{.listener = gateway.descriptor(),
                           .upstream_port = upstream.endpoint().port,
                           .timers = timers};
  std::thread forwarder{subject == "asio" ? forward_with_asio : forward_with_sluice, wish};
  clockid_t clock{};
  require(::pthread_getcpuclockid(forwarder.native_handle(), &clock) == 0, "clock");
  Traffic traffic{gateway, upstream};
  std::thread load{[&] { traffic.run(); }};

  std::this_thread::sleep_for(kWarmUp);
  const Reading first = read(clock);
  std::this_thread::sleep_for(kMeasured);
  const Reading last = read(clock);
  const auto requests = static_cast<double>(last.answers - first.answers);
  std::printf(
      "{\"subject\": \"%s\", \"timers\": %s, \"cpu_ns\": %.0f, \"per_second\": %.0f, "
      "\"boost\": \"%s\"}\n",
      subject.data(), timers ? "true" : "false", (last.cpu_ns - first.cpu_ns) / requests,
      requests / std::chrono::duration<double>(kMeasured).count(), boost_version());
  (void)std::fflush(stdout);
  ::_exit(0);  // neither thread ends by itself
}

}  // namespace
}  // namespace sluice::bench

int main(int count, char** arguments) {
  const std::string_view subject = count > 1 ? arguments[1] : "";
  const bool timers = count > 2 && std::string_view{arguments[2]} == "--timers";
  if ((subject != "sluice" && subject != "asio") || count > 3 || (count == 3 && !timers)) {
    (void)std::fputs("usage: net_bench sluice|asio [--timers]\n", stderr);
    return 2;
  }
  sluice::bench::measure(subject, timers);
}
