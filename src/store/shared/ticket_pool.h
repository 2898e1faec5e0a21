// A fixed number of records, taken and released without allocation, and lists of them.
//
// A record has an index from 1 on; 0 is none. Its name adds the number of the use, so that a name
// that outlived its record finds nothing: replies that come late name records that may serve others
// by then. What a record owns (a vector's memory) stays with it for the next use.
//
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::store {

template <class Record>
class TicketPool {
 public:
  using Index = std::uint32_t;
  static constexpr std::size_t kSizeMax = 65535;  // 16 bits of a name are the index

  explicit TicketPool(std::size_t size) : places_(size) {
    for (std::size_t i = size; i > 0; --i) put_back(static_cast<Index>(i));
  }

  // 0: all are taken.
  [[nodiscard]] Index take() noexcept {
    const Index index = free_;
    if (index == 0) return 0;
    Place& place = places_[index - 1];
    free_ = place.next_free;
    place.is_taken = true;
    ++place.use;
    ++used_;
    return index;
  }
  void release(Index index) noexcept {
    places_[index - 1].is_taken = false;
    --used_;
    put_back(index);
  }

  [[nodiscard]] Record& operator[](Index index) noexcept { return places_[index - 1].record; }
  [[nodiscard]] const Record& operator[](Index index) const noexcept {
    return places_[index - 1].record;
  }

  // Bits 16 to 31 are 0, for the caller's use.
  [[nodiscard]] std::uint64_t name_of(Index index) const noexcept {
    return std::uint64_t{places_[index - 1].use} << 32U | index;
  }
  // 0: that use is over.
  [[nodiscard]] Index find(std::uint64_t name) const noexcept {
    const auto index = static_cast<Index>(name & 0xffffU);
    if (index == 0 || index > places_.size()) return 0;
    const Place& place = places_[index - 1];
    return place.is_taken && place.use == name >> 32U ? index : 0;
  }

  [[nodiscard]] bool is_taken(Index index) const noexcept { return places_[index - 1].is_taken; }
  [[nodiscard]] std::size_t used() const noexcept { return used_; }
  [[nodiscard]] std::size_t size() const noexcept { return places_.size(); }

 private:
  struct Place {
    Record record;
    std::uint32_t use = 0;
    Index next_free = 0;
    bool is_taken = false;
  };

  // The record that was used last is used next: its memory is warm and as large as needed.
  void put_back(Index index) noexcept {
    places_[index - 1].next_free = free_;
    free_ = index;
  }

  std::vector<Place> places_;
  Index free_ = 0;
  std::size_t used_ = 0;
};

// Records of a pool in an order, each in one list at most. They have members `earlier` and `later`.
template <class Record>
class TicketList {
 public:
  using Index = std::uint32_t;
  explicit TicketList(TicketPool<Record>& pool) noexcept : pool_(pool) {}

  [[nodiscard]] Index first() const noexcept { return first_; }
  [[nodiscard]] bool empty() const noexcept { return first_ == 0; }

  void push_back(Index index) noexcept {
    Record& record = pool_[index];
    record.earlier = last_;
    record.later = 0;
    (last_ != 0 ? pool_[last_].later : first_) = index;
    last_ = index;
  }
  void remove(Index index) noexcept {
    const Record& record = pool_[index];
    (record.earlier != 0 ? pool_[record.earlier].later : first_) = record.later;
    (record.later != 0 ? pool_[record.later].earlier : last_) = record.earlier;
  }

 private:
  TicketPool<Record>& pool_;
  Index first_ = 0;
  Index last_ = 0;
};

}  // namespace sluice::store
