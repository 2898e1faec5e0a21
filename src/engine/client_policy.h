// What holds for clients whatever the rules say.
#pragma once

namespace sluice::engine {

struct ClientPolicy {
  // 401 for everybody else, but for CORS preflights: these have no way to prove anything.
  bool require_auth = false;
  // CORS preflights pass uncounted, unless they are denied or blocked.
  bool exempt_preflights = false;
};

}  // namespace sluice::engine
