// Judges a play by what went over the wires, whatever the gateway believes.
//
// What servers received are requests with one framing each, and every one of them is a request of a
// client, passed on as often as the gateway says, with the body that the client sent. What a client
// received are the answers to its requests, in their order, with what a server sent for just that
// request. Anything beyond that would be a request, or an answer, that somebody smuggled in.
#pragma once

#include "gateway_play.h"

namespace sluice::fuzz {

void judge(const Play& play);

}  // namespace sluice::fuzz
