#include "engine/amounts.h"

namespace sluice::engine {

store::LimitNumber Amounts::number(const PlannedLimit& limit, std::uint64_t amount,
                                   Now now) noexcept {
  if (amount == limit.written->limit.amount) return limit.number;
  Place& place = places_[(amount * 31 + limit.index) % kPlaces];
  if (place.of == &limit && place.amount == amount) return place.number;

  Limit wanted = limit.written->limit;
  wanted.amount = amount;
  const Parsed<store::LimitNumber> number = store_.use_for_request(wanted, now);
  if (!number) return limit.number;
  if (place.of != nullptr) store_.stop_using(place.number);
  place = {.of = &limit, .amount = amount, .number = *number};
  return *number;
}

void Amounts::forget() noexcept {
  for (Place& place : places_) {
    if (place.of != nullptr) store_.stop_using(place.number);
    place = {};
  }
}

}  // namespace sluice::engine
