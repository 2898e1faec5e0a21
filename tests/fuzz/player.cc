#include "player.h"

#include "fuzz.h"
#include "script.h"

#include <array>
#include <cerrno>
#include <sys/socket.h>

namespace sluice::fuzz {

void Player::say(std::string_view bytes) {
  if (!is_open()) return;
  while (!bytes.empty()) {
    const ssize_t went =
        ::send(descriptor.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (went <= 0) return;
    sent.append(bytes.substr(0, static_cast<std::size_t>(went)));
    bytes.remove_prefix(static_cast<std::size_t>(went));
  }
}

void Player::finish() noexcept {
  if (is_open()) ::shutdown(descriptor.get(), SHUT_WR);
}

// What it has not read turns this into a reset.
void Player::leave() noexcept { descriptor = FileDescriptor{}; }

bool Player::hear() {
  std::array<char, 65536> room;  // not cleared: what is filled is read
  const ssize_t came = ::recv(descriptor.get(), room.data(), room.size(), MSG_DONTWAIT);
  if (came > 0) received.append(room.data(), static_cast<std::size_t>(came));
  if (came == 0 || (came < 0 && errno != EAGAIN)) heard_end = true;
  return came > 0 || heard_end;
}

Connected connect_player() {
  std::array<int, 2> ends{};
  expect(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0,
         "there are descriptors");
  const int room = 4096;
  (void)::setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  Connected made;
  made.player.descriptor = FileDescriptor{ends[0]};
  made.other = FileDescriptor{ends[1]};
  return made;
}

void act_as(Player& player, char action, std::string_view text) {
  switch (action) {
    case 'c': return player.say(text);
    case 'b': return player.say(std::string(std::size_t{first_byte(text)} * 4096, 'x'));
    case 'e': return player.finish();
    case 'q': return player.leave();
    case 'p': player.listens = !player.listens; return;
    default: return;
  }
}

}  // namespace sluice::fuzz
