// A whole gateway between clients and servers that do anything, at any time, in any order.
//
// An input is a script. Its first byte chooses how the gateway is set up; behind it come actions,
// each of which is the byte ff, a letter, and what belongs to it, up to the next ff:
//
//   c  the client says this               s  the server says this
//   b  and so many times 4 KiB            B  likewise
//   e  it ends its side                   f  likewise
//   q  it leaves                          Q  likewise
//   p  it reads no more, or again         P  likewise
//   o  another client comes               u  another server is meant
//   n  another client is meant            t  time passes
//   l  the store takes its time           a  then it answers; x: it fails
//   r  other options and rules            d  the gateway drains; k: it stops
//
// Nobody may be harmed: see gateway_play.h for what may be left, and gateway_witness.h for what may
// be heard.

#include "fuzz.h"
#include "gateway_play.h"
#include "gateway_stage.h"
#include "gateway_witness.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using sluice::fuzz::expect;
using sluice::fuzz::Play;
using sluice::fuzz::Player;
using sluice::fuzz::Stage;
using sluice::fuzz::Variant;

constexpr char kNext = '\xff';

std::uint8_t first_byte(std::string_view text) noexcept {
  return text.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(text.front());
}

std::string bulk(std::string_view text) {
  return std::string(std::size_t{first_byte(text)} * 4096, 'x');
}

sluice::Nanos time_of(std::string_view text) noexcept {
  constexpr std::array<sluice::Nanos, 8> kTimes{1ms, 25ms, 500ms, 1s, 5s, 10s, 31s, 61s};
  return kTimes[first_byte(text) % kTimes.size()];
}

void act_as(Player* player, char what, std::string_view text) {
  if (player == nullptr) return;
  switch (what) {
    case 'c': return player->say(text);
    case 'b': return player->say(bulk(text));
    case 'e': return player->finish();
    case 'q': return player->leave();
    case 'p': player->listens = !player->listens; return;
    default: return;
  }
}

void act(Stage& stage, Play& play, char what, std::string_view text) {
  constexpr std::string_view kOfClients = "cbeqp";
  constexpr std::string_view kOfServers = "sBfQP";
  if (kOfClients.find(what) != kOfClients.npos) return act_as(&play.client(), what, text);
  const std::size_t of_server = kOfServers.find(what);
  if (of_server != kOfServers.npos) return act_as(play.server(), kOfClients[of_server], text);
  switch (what) {
    case 'o': return play.open_client();
    case 'n': return play.next_client();
    case 'u': return play.next_server();
    case 't': return play.pass(time_of(text));
    case 'l': stage.store.answers_later = !stage.store.answers_later; return;
    case 'a': return stage.store.answer(false, stage.clock.now());
    case 'x': return stage.store.answer(true, stage.clock.now());
    case 'r': return play.reload(Variant{first_byte(text)});
    case 'd': return play.drain();
    case 'k': return play.stop();
    default: return act_as(&play.client(), 'c', text);
  }
}

void perform(Stage& stage, std::string_view script) {
  Play play{stage, Variant{first_byte(script)}};
  script.remove_prefix(std::min(script.size(), script.find(kNext)));
  while (script.size() > 1) {
    const char what = script[1];
    script.remove_prefix(2);
    const std::string_view text = script.substr(0, script.find(kNext));
    script.remove_prefix(text.size());
    act(stage, play, what, text);
    play.settle();
  }
  stage.store.answers_later = false;
  play.end();
  judge(play);
}

// The lowest that is free: the same before and after means that all were closed.
int free_descriptor() noexcept {
  const int number = ::dup(STDERR_FILENO);
  ::close(number);
  return number;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Stage stage;
  const std::string script{data, data + size};
  const int before = free_descriptor();
  perform(stage, script);
  expect(free_descriptor() == before, "every descriptor is closed");
  stage.expect_at_rest();
  stage.forget();
  return 0;
}
