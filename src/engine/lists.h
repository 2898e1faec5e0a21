// Allow and deny lists.
//
// Entries expire by themselves. The allow list takes precedence over the deny list: a monitoring
// system on the allow list is to be allowed even from a denied range.
//
// Immutable; an edit makes a new object.
#pragma once

#include "engine/subject.h"
#include "identity/identity.h"
#include <sluice/time.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice::engine {

struct ListEntry {
  Subject subject;
  std::optional<WallTime> expires;  // absent: never
  std::string note;                 // the reason, for operators

  [[nodiscard]] bool holds(WallTime now) const noexcept { return !expires || now < *expires; }
};

class Lists {
 public:
  enum class Word : std::uint8_t { none, allow, deny };
  struct Answer {
    Word word = Word::none;
    const ListEntry* entry = nullptr;
  };

  Lists() = default;
  Lists(std::vector<ListEntry> allow, std::vector<ListEntry> deny);

  [[nodiscard]] Answer find(const IpAddress& address, WallTime now) const noexcept;
  // By user, key and tenant, once authenticated.
  [[nodiscard]] Answer find(const identity::Identity& client, WallTime now) const noexcept;

  [[nodiscard]] bool empty() const noexcept {
    return allow_.entries.empty() && deny_.entries.empty();
  }
  [[nodiscard]] std::span<const ListEntry> allow() const noexcept { return allow_.entries; }
  [[nodiscard]] std::span<const ListEntry> deny() const noexcept { return deny_.entries; }

 private:
  struct List {
    std::vector<ListEntry> entries;
    SubjectIndex index;

    explicit List(std::vector<ListEntry> all = {});
    template <class Look>
    [[nodiscard]] const ListEntry* find(WallTime now, Look&& look) const noexcept;
  };
  template <class Look>
  [[nodiscard]] Answer ask(WallTime now, Look&& look) const noexcept;

  List allow_;
  List deny_;
};

}  // namespace sluice::engine
