#include "base/descriptor_limit.h"

#include <limits>
#include <sys/resource.h>

namespace sluice {

std::uint64_t descriptors_max() noexcept {
  rlimit limit{};
  const bool is_bounded =
      ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max != RLIM_INFINITY;
  return is_bounded ? limit.rlim_max : std::numeric_limits<std::uint64_t>::max();
}

void raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace sluice
