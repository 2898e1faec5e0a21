"""The noisy neighbour: one client at a hundred times its limit costs the others no request.

What it does to their latencies is measured by `./dev bench neighbour`: that is a property of the
machine, too.
"""

import os
import threading
import unittest

from load_support import LoadTest
from nginx_support import NginxTest

LIMIT = 20  # requests per second, of each client
QUIET = 40  # clients, each at half of its limit
QUIET_RATE = QUIET * LIMIT // 2
NOISY_RATE = 100 * LIMIT
SECONDS = 1


class Neighbour(NginxTest, LoadTest):
    def setUp(self):
        super().setUp()
        socket_path = os.path.join(self.folder, "socket")
        self.nginx(
            f"server {{ listen unix:{socket_path}; location / {{ return 200 hello; }} }}",
            lambda: os.path.exists(socket_path),
        )
        rules = f"[{{name: each, per: header.x-client, limit: {LIMIT}/1s}}]"
        self.front = self.gateway(f"unix:{socket_path}", rules=rules)

    def drive(self, rate, clients, name, seconds):
        options = ("--rate", f"{rate}/s", "--clients", clients, "--duration", f"{seconds}s")
        return self.load(self.url(self.front), *options, "--header", f"x-client: {name}")

    def test_the_others_lose_no_request(self):
        noise = []
        noisy = threading.Thread(
            target=lambda: noise.append(self.drive(NOISY_RATE, 1, "noisy", SECONDS + 1))
        )
        noisy.start()
        quiet = self.drive(QUIET_RATE, QUIET, "quiet-{n}", SECONDS)
        noisy.join()
        (made,) = noise
        self.assertEqual(quiet["statuses"], {"200": quiet["offered"]})
        self.assertEqual(sum(quiet["errors"].values()) + quiet["not_sent"], 0)
        self.assertEqual(set(made["statuses"]), {"200", "429"})
        # What its limit allows in that time, and what was saved up at first.
        self.assertLessEqual(made["admitted"], LIMIT + LIMIT * (made["seconds"] + 1))


if __name__ == "__main__":
    unittest.main()
