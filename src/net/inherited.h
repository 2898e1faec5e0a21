// Listening sockets that the process was started with, as systemd and its likes pass them on.
#pragma once

#include "net/listen.h"
#include <sluice/diagnostic.h>

#include <string>
#include <vector>

namespace sluice::net {

struct InheritedListener {
  std::string name;  // of LISTEN_FDNAMES; may be empty
  Listener listener;
};

// Reads LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES and removes them, so that no child of ours takes
// them for its own. None, if they are meant for another process. Call it once, before there are
// threads; the sockets keep their files, since the service manager will start us again.
[[nodiscard]] Parsed<std::vector<InheritedListener>> take_inherited_listeners();

}  // namespace sluice::net
