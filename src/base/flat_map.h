// A hash table in two blocks of memory: looking allocates nothing, and misses are cheap.
//
// Open addressing with linear probing. Each slot has a tag of one byte beside the slots, empty or
// eight bits that the hash decides; a look compares eight tags at once, as one word, and reads only
// slots whose tag is right. So a key that is not there usually costs one load from a block that is
// a fraction of the table. At most three quarters of the slots are taken. Erasing moves the keys
// behind the hole back, so that no marks of former keys are left to be stepped over.
//
// Keys are looked up by anything that the hash and `==` accept: std::string by std::string_view.
// Keys and values are default-constructible and movable. Growing and erasing move them: a pointer
// to a value holds until the next change of the map. A map that was moved from may be assigned to
// or destroyed, nothing else. Externally synchronised; looking is const.
#pragma once

#include "base/byte_words.h"
#include "base/hash.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice {

// For numbers and texts that clients do not choose. A hash of other keys is a class like this one,
// which may hold a seed; all 64 bits of what it gives are used, so all have to be mixed.
struct FlatHash {
  [[nodiscard]] std::uint64_t operator()(std::uint64_t number) const noexcept {
    return folded(number ^ 0xff51afd7ed558ccdULL, kOddFactor);
  }
  [[nodiscard]] std::uint64_t operator()(std::string_view text) const noexcept {
    return hash_text(0, text);
  }
};

template <class Key, class Value, class Hash = FlatHash>
class FlatMap {
 public:
  struct Slot {
    Key key{};
    Value value{};
  };
  struct Insertion {
    Value& value;
    bool is_new;
  };

  FlatMap() = default;
  explicit FlatMap(Hash hash) : hash_(std::move(hash)) {}

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  // Null: there is none.
  template <class Sought>
  [[nodiscard]] const Value* find(const Sought& key) const noexcept {
    const std::size_t slot = slot_of(key);
    return slot == kNone ? nullptr : &slots_[slot].value;
  }
  template <class Sought>
  [[nodiscard]] Value* find(const Sought& key) noexcept {
    const std::size_t slot = slot_of(key);
    return slot == kNone ? nullptr : &slots_[slot].value;
  }

  // Inserts the value unless the key is there already; either way, what the key has now.
  Insertion insert(Key key, Value value) {
    const std::size_t there = slot_of(key);
    if (there != kNone) return {.value = slots_[there].value, .is_new = false};
    if (size_ + 1 > slots_.size() / 4 * 3) grow();
    const std::uint64_t hash = hash_(key);
    const std::size_t slot = free_slot(hash);
    slots_[slot] = {.key = std::move(key), .value = std::move(value)};
    set_tag(slot, tag_of(hash));
    ++size_;
    return {.value = slots_[slot].value, .is_new = true};
  }
  template <class Sought>
  [[nodiscard]] Value& operator[](const Sought& key) {
    if (Value* const there = find(key)) return *there;
    return insert(Key{key}, Value{}).value;
  }

  // Whether it was there.
  template <class Sought>
  bool erase(const Sought& key) noexcept {
    std::size_t hole = slot_of(key);
    if (hole == kNone) return false;
    // A key may fill the hole unless that lies before the place where looking for it begins.
    for (std::size_t next = behind(hole, 1); tags_[next] != kFree; next = behind(next, 1)) {
      const std::size_t from_home = (next - home_of(hash_(slots_[next].key))) & mask();
      if (from_home < ((next - hole) & mask())) continue;
      slots_[hole] = std::move(slots_[next]);
      set_tag(hole, tags_[next]);
      hole = next;
    }
    slots_[hole] = Slot{};
    set_tag(hole, kFree);
    --size_;
    return true;
  }

  // visit(key, value) for each, in no particular order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      if (tags_[slot] != kFree) visit(slots_[slot].key, slots_[slot].value);
    }
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  static constexpr std::size_t kGroup = sizeof(std::uint64_t);  // so many tags at once
  static constexpr char kFree = 0;

  // Never kFree: its high bit is set. The other bits do not choose the place.
  [[nodiscard]] static char tag_of(std::uint64_t hash) noexcept {
    return static_cast<char>(hash >> 57U | 0x80U);
  }
  [[nodiscard]] static std::uint64_t free_in(std::uint64_t group) noexcept {
    return ~group & kHighBits;
  }
  [[nodiscard]] static std::size_t first_in(std::uint64_t found) noexcept {
    return static_cast<std::size_t>(std::countr_zero(found)) / 8U;
  }

  [[nodiscard]] std::size_t mask() const noexcept { return slots_.size() - 1; }
  [[nodiscard]] std::size_t home_of(std::uint64_t hash) const noexcept {
    return static_cast<std::size_t>(hash) & mask();
  }
  [[nodiscard]] std::size_t behind(std::size_t slot, std::size_t steps) const noexcept {
    return (slot + steps) & mask();
  }

  template <class Sought>
  [[nodiscard]] std::size_t slot_of(const Sought& key) const noexcept {
    if (size_ == 0) return kNone;
    const std::uint64_t hash = hash_(key);
    const char tag = tag_of(hash);
    for (std::size_t at = home_of(hash);; at = behind(at, kGroup)) {
      const std::uint64_t group = load_word(tags_.data() + at);
      for (std::uint64_t found = where_equal(group, tag); found != 0; found &= found - 1) {
        const std::size_t slot = behind(at, first_in(found));
        if (slots_[slot].key == key) return slot;
      }
      if (free_in(group) != 0) return kNone;
    }
  }

  [[nodiscard]] std::size_t free_slot(std::uint64_t hash) const noexcept {
    std::size_t at = home_of(hash);
    std::uint64_t group = load_word(tags_.data() + at);
    while (free_in(group) == 0) {
      at = behind(at, kGroup);
      group = load_word(tags_.data() + at);
    }
    return behind(at, first_in(free_in(group)));
  }

  // The first tags stand once more behind the last one, where a group that begins there ends.
  void set_tag(std::size_t slot, char tag) noexcept {
    tags_[slot] = tag;
    if (slot < kGroup) tags_[slots_.size() + slot] = tag;
  }

  void grow() {
    const std::size_t size = slots_.empty() ? kGroup : 2 * slots_.size();
    std::vector<Slot> slots(size);
    std::vector<char> tags(size + kGroup, kFree);
    slots.swap(slots_);
    tags.swap(tags_);
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      if (tags[slot] == kFree) continue;
      const std::uint64_t hash = hash_(slots[slot].key);
      const std::size_t moved = free_slot(hash);
      slots_[moved] = std::move(slots[slot]);
      set_tag(moved, tag_of(hash));
    }
  }

  [[no_unique_address]] Hash hash_;
  std::vector<Slot> slots_;  // a power of two of them, or none
  std::vector<char> tags_;   // of the slots
  std::size_t size_ = 0;
};

}  // namespace sluice
