// A whole gateway between clients and servers that do anything, at any time, in any order.
//
// Inputs are scripts (script.h). The first byte is a Variant (gateway_stage.h); the actions are:
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
#include "player.h"
#include "script.h"

#include <string>
#include <string_view>

namespace {

using namespace sluice::fuzz;

void act(Stage& stage, Play& play, char action, std::string_view text) {
  constexpr std::string_view kOfServers = "sBfQP";  // as kActions are of clients
  if (kActions.find(action) != kActions.npos) return act_as(play.client(), action, text);
  const std::size_t of_server = kOfServers.find(action);
  if (of_server != kOfServers.npos) {
    if (play.server() != nullptr) act_as(*play.server(), kActions[of_server], text);
    return;
  }
  switch (action) {
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
    default: return act_as(play.client(), 'c', text);
  }
}

void play_through(Stage& stage, std::string_view script) {
  Play play{stage, Variant{first_byte(script)}};
  perform(script, [&](char action, std::string_view text) {
    act(stage, play, action, text);
    play.settle();
  });
  stage.store.answers_later = false;
  play.end();
  judge(play);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Stage stage;
  const std::string script{data, data + size};
  const int before = free_descriptor();
  play_through(stage, script);
  expect(free_descriptor() == before, "every descriptor is closed");
  stage.expect_at_rest();
  stage.forget();
  return 0;
}
