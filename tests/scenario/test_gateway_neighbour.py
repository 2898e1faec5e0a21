"""The noisy neighbour: one client at a hundred times its limit, and what the others notice of it.

bench/neighbour measures the same at length. What else runs on the machine only ever adds to a turn,
with and without the noise: so turns alternate, and the best of each kind counts. No other test runs
beside this one (RUN_SERIAL).
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
SECONDS = 2
TURNS_MIN = 3
TURNS_MAX = 15
PROMISED = 1.2  # times the p99 without the noise


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

    def quiet_p99(self):
        """Of clients that keep to their limits; not one of their requests may fail."""
        result = self.drive(QUIET_RATE, QUIET, "quiet-{n}", SECONDS)
        self.assertEqual(result["statuses"], {"200": result["offered"]})
        return result["latency_ns"]["all"]["p99"]

    def beside_the_noise(self):
        noise = []
        noisy = threading.Thread(
            target=lambda: noise.append(self.drive(NOISY_RATE, 1, "noisy", SECONDS + 1))
        )
        noisy.start()
        p99 = self.quiet_p99()
        noisy.join()
        (made,) = noise
        self.assertEqual(set(made["statuses"]), {"200", "429"})
        # What its limit allows, and what was saved up at first.
        self.assertLessEqual(made["admitted"], LIMIT * (SECONDS + 4))
        return p99

    def test_the_others_notice_nothing(self):
        alone, beside = [], []
        for turn in range(TURNS_MAX):
            alone.append(self.quiet_p99())
            beside.append(self.beside_the_noise())
            if turn + 1 >= TURNS_MIN and min(beside) <= PROMISED * min(alone):
                return
        self.fail(f"p99 alone {alone}, beside the noise {beside}")


if __name__ == "__main__":
    unittest.main()
