"""Who is served when: nobody takes over a worker, however much there is to do for it."""

import os
import socket
import unittest

from gateway_support import GatewayTest, Wire, get, reply, wait_until


class Turns(GatewayTest):
    """The order of the log is the order in which one worker came to an end with requests. All that
    there is to do waits for it when it wakes up: it was stopped meanwhile."""

    LOG = "access_log: {file: access.log, max_rejected_per_second: 1000000}"
    OPTIONS = get("/quiet", "Max-Forwards: 0", method="OPTIONS")  # answered by the gateway itself

    def stop(self, front, *clients):
        """Once all of them have been there."""
        for client in clients:
            self.assertEqual(client.ask(self.OPTIONS.replace(b"quiet", b"first")).status, 204)
        self.addCleanup(front.resume)  # also where the test fails
        front.pause()

    def order(self):
        """The paths, as they came to an end."""
        paths = [line.split('"')[1].split(" ")[1] for line in self.log().splitlines()]
        return [path for path in paths if path != "/first"]

    def wake(self, front, count):
        front.resume()
        wait_until(lambda: len(self.order()) >= count, f"{count} requests are over")

    def test_requests_without_end_leave_others_their_turn(self):
        rules = "[{name: few, match: {path: /noisy}, limit: 1/1h}]"
        front = self.gateway(self.upstream(), rules=rules, more=self.LOG, workers=1)
        with front.connect() as noisy, front.connect() as quiet:
            noisy.get("/noisy")
            self.stop(front, quiet)
            noisy.send(get("/noisy") * 400)
            quiet.send(self.OPTIONS)
            self.wake(front, 402)
            self.assertEqual(quiet.answer().status, 204)
            self.assertEqual([noisy.answer().status for _ in range(400)], [429] * 400)
        self.assertLess(self.order().index("/quiet"), 10)

    # By way of a Unix socket, which holds all of it at once: nothing makes the worker wait.
    def test_a_long_answer_leaves_others_their_turn(self):
        body = b"x" * 200_000
        path = os.path.join(self.folder, "app")
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(path)
        listener.listen()
        front = self.gateway(f"unix:{path}", more=self.LOG, workers=1)
        with front.connect(4 << 20) as noisy, front.connect() as quiet:
            noisy.send(get("/noisy"))
            with Wire(listener.accept()[0]) as server:
                server.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * len(body))
                server.head()
                self.stop(front, quiet)
                server.send(reply(body))
                quiet.send(self.OPTIONS)
                self.wake(front, 2)
                self.assertEqual(noisy.answer().body, body)
        self.assertEqual(self.order(), ["/quiet", "/noisy"])


if __name__ == "__main__":
    unittest.main()
