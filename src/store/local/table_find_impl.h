// Where a key's slot may be, and how it is found there. Part of table_impl.h.
#pragma once

#include "store/local/table.h"
#include <sluice/int128.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

namespace sluice::store {

// ---- places -----------------------------------------------------------------------------------

template <class Access>
std::uint64_t BasicTable<Access>::fingerprint_of(const Digest& key) noexcept {
  return tag_of(key) >> 28U;
}

// The first line to look for the key, of all lines.
template <class Access>
std::size_t BasicTable<Access>::line_of(const Digest& key) const noexcept {
  return static_cast<std::size_t>(Uint128{key.low} * lines_ >> 64U);
}

template <class Access>
typename BasicTable<Access>::Places BasicTable<Access>::places_of(
    const Digest& key) const noexcept {
  const std::size_t line = line_of(key);
  return {.slots = memory_.slots.data(),
          .tag = tag_of(key),
          .line = line % 2 * kSlotsPerLine,
          .home = line / 2,
          .groups = groups()};
}

// The groups of a slot's key, computed from the slot's place.
template <class Access>
typename BasicTable<Access>::Places BasicTable<Access>::places_from(
    std::size_t slot, std::uint64_t key) const noexcept {
  const std::uint64_t tag = key & kTagMask;
  const std::size_t choice = (key & kChoiceMask) >> kChoiceShift;
  const std::size_t back = choice * (groups() - stride_of(tag, groups()));
  return {.slots = memory_.slots.data(),
          .tag = tag,
          .line = 0,
          .home = moved(slot / kSlotsPerGroup, back, groups()),
          .groups = groups()};
}

template <class Access>
bool BasicTable<Access>::passed(std::size_t group) const noexcept {
  return std::atomic_ref{memory_.passed[group]}.load(std::memory_order_seq_cst) != 0;
}

// 255 means "many" and stays.
template <class Access>
void BasicTable<Access>::raise_passed(const Places& places, std::size_t choice) noexcept {
  for (std::size_t before = 0; before < choice; ++before) {
    const std::atomic_ref count{memory_.passed[places.group(before)]};
    std::uint8_t seen = count.load();
    while (seen != 255 && !count.compare_exchange_weak(seen, static_cast<std::uint8_t>(seen + 1))) {
    }
  }
}

template <class Access>
void BasicTable<Access>::lower_passed(const Places& places, std::size_t choice) noexcept {
  for (std::size_t before = 0; before < choice; ++before) {
    const std::atomic_ref count{memory_.passed[places.group(before)]};
    std::uint8_t seen = count.load();
    while (seen != 0 && seen != 255 &&
           !count.compare_exchange_weak(seen, static_cast<std::uint8_t>(seen - 1))) {
    }
  }
}

// A key has left its slot: it passes no groups any more, and needs no block.
template <class Access>
void BasicTable<Access>::vacated(const Pair* at, Pair before) noexcept {
  if ((before.key & kWide) != 0) blocks_.release(Handle::from(before.state), number_of(at));
  const std::size_t choice = (before.key & kChoiceMask) >> kChoiceShift;
  if (choice > 0) lower_passed(places_from(number_of(at), before.key), choice);
}

// ---- exchanges --------------------------------------------------------------------------------

template <class Access>
bool BasicTable<Access>::exchange(Pair* at, Pair expected, Pair desired) noexcept {
  if (Access::exchange(at, expected, desired)) [[likely]]
    return true;
  count(failed_exchanges_);
  return false;
}

template <class Access>
bool BasicTable<Access>::clear(Pair* at, Pair expected) noexcept {
  if (!exchange(at, expected, {})) return false;
  vacated(at, expected);
  return true;
}

template <class Access>
bool BasicTable<Access>::holds(std::size_t slot, Handle handle) noexcept {
  if (slot >= memory_.slots.size()) return false;
  const Pair pair = Access::load(&memory_.slots[slot]);
  return (pair.key & kWide) != 0 && pair.state == handle.word();
}

// ---- lookup -----------------------------------------------------------------------------------

// Which slots of a line have these bits in their key words, the first slot lowest. All four at
// once: the key's place in its line cannot be predicted.
template <class Access>
[[gnu::always_inline]] inline unsigned BasicTable<Access>::matches_in(Pair* line,
                                                                      std::uint64_t mask,
                                                                      std::uint64_t bits) noexcept {
  unsigned matches = 0;
#pragma GCC unroll 4
  for (unsigned i = 0; i < kSlotsPerLine; ++i) {
    matches |= static_cast<unsigned>((Access::load_key(line + i) & mask) == bits) << i;
  }
  return matches;
}

// The slot of a line with this key word, or null. All four are compared, without a branch: the
// matching slot cannot be predicted.
template <class Access>
[[gnu::always_inline]] inline Pair* BasicTable<Access>::find_word(Pair* line,
                                                                  std::uint64_t key) noexcept {
  Pair* found = nullptr;
#pragma GCC unroll 4
  for (unsigned i = 0; i < kSlotsPerLine; ++i) {
    found = Access::with_key(line + i, key, found);
  }
  return found;
}

// By reference, so that all of it stays in registers.
template <class Access>
[[gnu::always_inline]] inline bool BasicTable<Access>::find_in(const Places& places,
                                                               std::size_t choice,
                                                               Found& found) noexcept {
  const std::uint64_t tag = places.tag | std::uint64_t{choice} << kChoiceShift;
  Pair* const group = places.slots + places.group(choice) * kSlotsPerGroup;
  for (std::size_t line = 0; line < kSlotsPerGroup; line += kSlotsPerLine) {
    Pair* const slots = group + (line ^ places.line);
    for (unsigned matches = matches_in(slots, kTagMask | kChoiceMask, tag); matches != 0;
         matches &= matches - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(matches));
      found.pair = Access::load(slots + i);
      if ((found.pair.key & (kTagMask | kChoiceMask)) != tag) continue;
      found.at = slots + i;
      found.place = choice * kSlotsPerGroup + line + i;
      return true;
    }
  }
  return false;
}

template <class Access>
typename BasicTable<Access>::Found BasicTable<Access>::find(const Places& places) noexcept {
  for (std::size_t choice = 0; choice < kChoices; ++choice) {
    Found found;
    if (find_in(places, choice, found)) return found;
    if (!passed(places.group(choice))) break;
  }
  return {};
}

// The key's slot, after helping a thread that is placing it.
template <class Access>
typename BasicTable<Access>::Found BasicTable<Access>::find_confirmed(const Places& places,
                                                                      const Check& check,
                                                                      Now now) noexcept {
  while (true) {
    const Found found = find(places);
    if ((found.pair.key & kTentative) == 0) return found;
    help(places, found, check, now);
  }
}

template <class Access>
bool BasicTable<Access>::survives(const Places& places, std::size_t place,
                                  Pair tentative) noexcept {
  for (std::size_t choice = 0; choice < kChoices; ++choice) {
    const std::size_t group = places.group(choice);
    const std::uint64_t tag = places.tag | std::uint64_t{choice} << kChoiceShift;
    for (std::size_t i = 0; i < kSlotsPerGroup; ++i) {
      const std::size_t other_place = choice * kSlotsPerGroup + i;
      if (other_place == place) continue;
      Pair* const at = places.at(other_place);
      Pair other = Access::load(at);
      // Retries if the other slot could not be removed: its owner may have removed it in favour of
      // ours. If both were removed, two threads could repeat that forever.
      while ((other.key & (kTagMask | kChoiceMask)) == tag) {
        const bool removable = (other.key & kTentative) != 0 && other_place > place;
        if (!removable) {
          (void)clear(places.at(place), tentative);
          return false;
        }
        if (clear(at, other)) break;
        other = Access::load(at);
      }
    }
    if (!passed(group)) break;
  }
  return true;
}

}  // namespace sluice::store
