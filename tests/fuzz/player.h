// Somebody on the other end of a connection, who does what an input says.
#pragma once

#include "base/file_descriptor.h"

#include <string>
#include <string_view>

namespace sluice::fuzz {

struct Player {
  FileDescriptor descriptor;
  std::string sent;      // as far as the system took it
  std::string received;  // as far as it was read
  bool listens = true;
  bool heard_end = false;

  [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(descriptor); }
  void say(std::string_view bytes);
  void finish() noexcept;  // it says no more
  void leave() noexcept;
  bool hear();  // false: nothing came
};

// Both ends of a connection. The other one has so little room that writing to a player who does not
// read soon blocks.
struct Connected {
  Player player;
  FileDescriptor other;
};
[[nodiscard]] Connected connect_player();

// What an action means whose letter is one of "cbeqp": to say a text, or so many times 4 KiB; to
// end its side, to leave, and to stop reading or go on.
inline constexpr std::string_view kActions = "cbeqp";
void act_as(Player& player, char action, std::string_view text);

}  // namespace sluice::fuzz
