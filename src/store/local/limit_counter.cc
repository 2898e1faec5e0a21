#include "store/local/limit_counter.h"

#include "store/local/limit_registry.h"

#include <utility>

namespace sluice::store {

Parsed<LimitNumber> LimitCounter::use(const Limit& limit, const Sharing& /*sharing*/, Now /*now*/) {
  Parsed<std::uint64_t> identity = limit_identity(limit);
  if (!identity) return tl::unexpected(std::move(identity.error()));
  return numbers_.try_emplace(*identity, static_cast<LimitNumber>(numbers_.size())).first->second;
}

}  // namespace sluice::store
