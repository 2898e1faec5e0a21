"""The gateway as a service manager starts it: with sockets that are open already."""

import socket
import sys

from gateway_support import Gateway, GatewayTest
from support import BINARY

# The socket becomes descriptor 3, and the process knows by its id that it is meant.
LAUNCHER = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES=sys.argv[2])
os.execv(sys.argv[3], sys.argv[3:])
"""


class LaunchTest(GatewayTest):
    def bound(self):
        listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.addCleanup(listener.close)
        return listener, "127.0.0.1:%d" % listener.getsockname()[1]

    def launch(self, listener, text, name="gateway"):
        path = self.file("inherited.yaml", text + "\n")
        front = Gateway(
            path,
            command=[sys.executable, "-c", LAUNCHER, str(listener.fileno()), name]
            + [BINARY, "serve", "-c", path],
            pass_fds=[listener.fileno()],
        )
        self.addCleanup(self.ended_well, front)
        return front
