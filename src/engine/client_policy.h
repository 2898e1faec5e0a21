// Client policy, independent of the rules.
#pragma once

namespace sluice::engine {

struct ClientPolicy {
  // 401 for unauthenticated clients, except CORS preflights: these cannot carry credentials.
  bool require_auth = false;
  // CORS preflights are allowed uncounted, unless denied or blocked.
  bool exempt_preflights = false;
};

}  // namespace sluice::engine
