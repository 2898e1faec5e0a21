#include "store/check.h"

namespace sluice::store {

std::string_view to_string(Source source) noexcept {
  switch (source) {
    case Source::local: return "local";
    case Source::lease: return "lease";
    case Source::exact: return "exact";
    case Source::denied_until: return "denied_until";
    case Source::deny_list: return "deny_list";
    case Source::share: return "share";
    case Source::open: return "open";
    case Source::closed: return "closed";
  }
  return "unknown";
}

}  // namespace sluice::store
