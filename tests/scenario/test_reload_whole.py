"""A reload is one step: no request ever meets parts of two configurations."""

import collections
import os
import signal
import threading
import unittest

from gateway_support import PATIENCE, GatewayTest, get, wait_until

# Both before and after a reload a request for /x is answered without the upstream. Only rules of
# the one configuration with routes of the other would serve it.
FORBIDDEN = "lists: {deny: [ip=127.0.0.1]}\nroutes: [{path: /**, upstream: app}]\n"
UNROUTED = "routes: [{path: /other, upstream: app}]\n"

RELOADS = 5000 if os.environ.get("SLUICE_TESTS_FULL") else 2000
AT_ONCE = 16


class Clients:
    """Each sends some requests at once, on a connection that it keeps."""

    def __init__(self, front, count=2):
        self.front = front
        self.statuses = collections.Counter()
        self.failures = []
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.run) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self):
        statuses = collections.Counter()
        try:
            with self.front.connect() as client:
                while not self.over.is_set():
                    # The end of the last one comes by itself: headers in two parts.
                    whole = get("/x") * AT_ONCE
                    client.send(whole[:-9])
                    client.send(whole[-9:])
                    for _ in range(AT_ONCE):
                        statuses[client.answer().status] += 1
        except (OSError, EOFError) as failure:
            self.failures.append(failure)
        self.statuses.update(statuses)

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join(PATIENCE)


class Whole(GatewayTest):
    def text(self, app, routes):
        lines = self.configuration(app, more="gateway: {keepalive_requests: 1000000000}")
        return lines.replace("routes: [{path: /**, upstream: app}]", routes) + "\n"

    def test_requests_meet_one_configuration_or_the_other(self):
        app = self.upstream()
        front = self.serve(self.text(app, FORBIDDEN))
        clients = Clients(front)
        self.addCleanup(clients.stop)
        for number in range(RELOADS):
            routes = FORBIDDEN if number % 2 else UNROUTED
            os.replace(self.file("next.yaml", self.text(app, routes)), front.file)
            front.signal(signal.SIGHUP)
            wait_until(
                lambda: front.said.count("configuration reloaded") > number,
                f"reload {number}; it said {front.said[-1000:]}",
            )
        clients.stop()
        self.assertEqual(clients.failures, [])
        self.assertEqual(set(clients.statuses), {403, 404}, clients.statuses)
        self.assertGreater(sum(clients.statuses.values()), RELOADS)
        self.assertEqual(len(app.requests), 0)


if __name__ == "__main__":
    unittest.main()
