#include "engine/amounts.h"

#include "engine/overrides.h"
#include <sluice/core/compiled_limit.h>

namespace sluice::engine {
namespace {

// The limit times the multiplier. If that is more than can be enforced (a thousand times two
// million a second), times the largest possible multiplier, to a thousandth.
Limit multiplied_as_far_as_possible(const Limit& limit, std::uint32_t permille) {
  Limit wanted = multiplied(limit, permille);
  if (core::compile(wanted)) return wanted;
  std::uint32_t possible = 1000;
  std::uint32_t impossible = permille;
  while (possible + 1 < impossible || impossible + 1 < possible) {
    const std::uint32_t between = (possible + impossible) / 2;
    (core::compile(multiplied(limit, between)) ? possible : impossible) = between;
  }
  return multiplied(limit, possible);
}

}  // namespace

Amounts::Brought Amounts::find(const PlannedLimit& limit, const Sharing& sharing, Wanted wanted,
                               Now now) noexcept {
  const Brought written{.number = limit.number, .amount = limit.written->limit.amount};
  if (wanted.amount == written.amount && wanted.permille == 1000) return written;
  Place& place = places_[(wanted.amount * 31 + wanted.permille * 7 + limit.index) % kPlaces];
  if (place.of == &limit && place.wanted == wanted) {
    if (!place.brought.is_left_out) {
      place.used = now.mono;
      return place.brought;
    }
    if (now.mono - place.used < kAskAgainAfter) return place.brought;
  }
  give_back_unused(now.mono);

  Limit brought = limit.written->limit;
  brought.amount = wanted.amount;
  if (wanted.permille != 1000) brought = multiplied_as_far_as_possible(brought, wanted.permille);
  give_back(place);
  place = {.of = &limit, .wanted = wanted, .brought = written, .used = now.mono};
  place.brought.is_left_out = true;
  Use* const use = free_use();
  if (use == nullptr) return place.brought;
  const Parsed<store::LimitNumber> number = registry_.use_for_request(brought, sharing, now);
  if (!number) return place.brought;
  *use = {.number = *number, .requests = 0, .is_remembered = true};
  place.brought = {.number = *number, .amount = brought.amount, .is_left_out = false, .use = use};
  return place.brought;
}

Amounts::~Amounts() {
  for (const Use& use : uses_) {
    if (use.is_remembered || use.requests > 0) registry_.stop_using(use.number);
  }
}

// Null: long requests use all of them.
Amounts::Use* Amounts::free_use() noexcept {
  for (std::size_t i = 0; i < kUses; ++i) {
    Use& use = uses_[(next_use_ + i) % kUses];
    if (use.is_remembered || use.requests > 0) continue;
    next_use_ = (next_use_ + i + 1) % kUses;
    return &use;
  }
  return nullptr;
}

void Amounts::let_go(Use& use) noexcept {
  if (--use.requests == 0 && !use.is_remembered) registry_.stop_using(use.number);
}

void Amounts::forget() noexcept {
  for (Place& place : places_) give_back(place);
}

void Amounts::give_back(Place& place) noexcept {
  if (Use* const use = place.brought.use) {
    use->is_remembered = false;
    if (use->requests == 0) registry_.stop_using(use->number);
  }
  place = {};
}

// Now and then, when a request's amount is not remembered.
void Amounts::give_back_unused(MonoTime now) noexcept {
  if (now - looked_ < kUnusedFor) return;
  looked_ = now;
  for (Place& place : places_) {
    if (now - place.used >= kUnusedFor) give_back(place);
  }
}

}  // namespace sluice::engine
