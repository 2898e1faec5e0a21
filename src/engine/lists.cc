#include "engine/lists.h"

#include <utility>

namespace sluice::engine {

Lists::List::List(std::vector<ListEntry> all) : entries(std::move(all)) {
  for (std::uint32_t i = 0; i < entries.size(); ++i) index.add(entries[i].subject, i);
}

// `look(index, visit)` visits the numbers filed under the client.
template <class Look>
const ListEntry* Lists::List::find(WallTime now, Look&& look) const noexcept {
  const ListEntry* found = nullptr;
  look(index, [&](std::uint32_t number) {
    if (!entries[number].holds(now)) return false;
    found = &entries[number];
    return true;
  });
  return found;
}

template <class Look>
Lists::Answer Lists::ask(WallTime now, Look&& look) const noexcept {
  if (const ListEntry* entry = allow_.find(now, look)) return {Word::allow, entry};
  if (const ListEntry* entry = deny_.find(now, look)) return {Word::deny, entry};
  return {};
}

Lists::Lists(std::vector<ListEntry> allow, std::vector<ListEntry> deny)
    : allow_(std::move(allow)), deny_(std::move(deny)) {}

Lists::Answer Lists::find(const IpAddress& address, WallTime now) const noexcept {
  return ask(now, [&](const SubjectIndex& index, auto&& visit) { index.find(address, visit); });
}

Lists::Answer Lists::find(const identity::Identity& client, WallTime now) const noexcept {
  return ask(now, [&](const SubjectIndex& index, auto&& visit) {
    index.find(Subject::Kind::user, client.user, visit) ||
        index.find(Subject::Kind::api_key, client.api_key, visit) ||
        index.find(Subject::Kind::tenant, client.tenant, visit);
  });
}

}  // namespace sluice::engine
