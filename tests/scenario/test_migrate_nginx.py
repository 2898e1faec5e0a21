"""docs/migrate-nginx.md: real nginx and the gateway side by side, with the examples of that page.

The page has, under most headings, a block of nginx and one of YAML that should do the same. Both
run here in front of one upstream and get the same requests. Blocks that leave out what is always
the same (server, upstream, routes) are completed.
"""

import pathlib
import re
import selectors
import socket
import threading
import time
import unittest
from dataclasses import dataclass

from gateway_support import PATIENCE, Client, get, reply, wait_until
from nginx_support import NginxTest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "migrate-nginx.md"
LATE = 20  # seconds by which a busy machine may be late; being early is a mistake


def examples():
    """heading -> (nginx, YAML), as the page has them."""
    found = {}
    for section in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        blocks = dict(re.findall(r"(?ms)^```(nginx|yaml)\n(.*?)^```$", section))
        if blocks:
            found[section.split("\n", 1)[0]] = (blocks["nginx"], blocks["yaml"])
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_listening(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@dataclass
class Side:
    """One of the two, as its clients see it."""

    name: str
    port: int

    def connect(self):
        sock = socket.create_connection(("127.0.0.1", self.port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Client(sock)

    def get(self, path="/", *headers):
        with self.connect() as client:
            return client.get(path, *headers)

    def at_once(self, count, *headers):
        """The answers to requests that are sent in one piece, and how long that took."""
        with self.connect() as client:
            begin = time.monotonic()
            client.send(get("/", *headers) * count)
            answers = [client.answer() for _ in range(count)]
            return answers, time.monotonic() - begin

    def statuses(self, count, *headers):
        return sorted(answer.status for answer in self.at_once(count, *headers)[0])

    def together(self, count):
        """(status, seconds) of requests at the same time on connections of their own, in the order
        of their answers."""
        clients = [self.connect() for _ in range(count)]
        outcomes = []
        with selectors.DefaultSelector() as waiting:
            begin = time.monotonic()
            for client in clients:
                client.send(get())
                waiting.register(client.sock, selectors.EVENT_READ, client)
            while len(outcomes) < count:
                ready = waiting.select(PATIENCE)
                if not ready:
                    raise AssertionError(f"{self.name} answered {len(outcomes)} of {count}")
                for key, _ in ready:
                    outcomes.append((key.data.answer().status, time.monotonic() - begin))
                    waiting.unregister(key.fileobj)
        for client in clients:
            client.close()
        return outcomes


class SideBySide(NginxTest):
    def theirs(self, text, app):
        """A block without a server gets one."""
        port = free_port()
        if "server {" not in text:
            zones, location, rest = text.partition("location ")
            text = f"{zones}server {{ listen 8080; server_name a.example; {location}{rest}}}"
        text = text.replace("listen 8080", f"listen 127.0.0.1:{port}")
        text = text.replace("http://app", f"http://{app.address}")
        text = text.replace("127.0.0.1:3000", app.address).replace("192.0.2.10", "127.0.0.1")
        self.nginx(text, lambda: is_listening(port))
        return Side("nginx", port)

    def ours(self, text, app):
        if "listen:" not in text:
            text += "listen: {gateway: ':8080'}\n"
            text += f"upstreams: {{app: {{servers: ['{app.address}']}}}}\n"
            text += "routes: [{path: /**, upstream: app}]\n"
        text = text.replace("':8080'", "127.0.0.1:0").replace("127.0.0.1:3000", app.address)
        text = text.replace("192.0.2.10", "127.0.0.1")
        # One worker, one clock, as nginx has here: who is a moment behind has to wait longer.
        return Side("sluice", self.serve(f"{text}workers: 1\n{self.STATE}\n").port)

    def both(self, heading, app=None):
        app = app or self.upstream()
        nginx, yaml = examples()[heading]
        return [self.theirs(nginx, app), self.ours(yaml, app)]


class Migration(SideBySide):
    def assertPasses(self, answers_and_seconds, capacity, per_second, refusal):
        """As many as the bucket holds. If it took long, no more than were refilled meanwhile;
        nginx's clock may be some milliseconds off."""
        answers, seconds = answers_and_seconds
        passed = sum(answer.status == 200 for answer in answers)
        self.assertGreaterEqual(passed, capacity)
        self.assertLessEqual(passed, capacity + int((seconds + 0.01) * per_second))
        self.assertEqual({answer.status for answer in answers}, {200, refusal})

    # As many at once; then, to those who go on asking, the rate. What is refused costs nothing.
    def test_a_burst_at_once(self):
        for side in self.both("A burst at once"):
            with self.subTest(side.name):
                self.assertPasses(side.at_once(40), 21, 10, refusal=429)
                begin = time.monotonic()
                with side.connect() as client:
                    for _ in range(10):
                        wait_until(lambda: client.get().status == 200, "one more passes")
                self.assertGreater(time.monotonic() - begin, 0.85)
                self.assertLess(time.monotonic() - begin, 1.05 + LATE)

    def test_no_burst(self):
        for side in self.both("No burst"):
            with self.subTest(side.name):
                self.assertPasses(side.at_once(5), 1, 0.5, refusal=503)

    def assertHeld(self, outcomes, delays, refused):
        """Refusals at once, and the others at the given times."""
        passed = [seconds for status, seconds in outcomes if status == 200]
        self.assertEqual([status for status, _ in outcomes].count(503), refused)
        self.assertEqual(len(passed), len(delays))
        for seconds, delay in zip(passed, delays):
            self.assertGreater(seconds, delay - 0.05)
            self.assertLess(seconds, delay + LATE)

    def test_queued_instead_of_rejected(self):
        for side in self.both("Queued instead of rejected"):
            with self.subTest(side.name):
                self.assertHeld(side.together(6), [0, 0.5, 1, 1.5], refused=2)

    def test_some_at_once_some_queued(self):
        for side in self.both("Some at once, some queued"):
            with self.subTest(side.name):
                self.assertHeld(side.together(8), [0, 0, 0, 0, 0.5, 1], refused=2)

    # What the client's limit refuses is not charged to the server's: two are left of its six.
    def test_several_limits(self):
        for side in self.both("Several limits"):
            with self.subTest(side.name):
                self.assertEqual(side.statuses(10, "X-Client: a"), [200] * 4 + [503] * 6)
                self.assertEqual(side.statuses(10, "X-Client: b"), [200] * 2 + [503] * 8)
                self.assertEqual(side.statuses(2, "X-Client: c"), [503] * 2)
                self.assertEqual(side.statuses(2), [503] * 2)

    def test_exempt_clients(self):
        for side in self.both("Exempt clients"):
            with self.subTest(side.name):
                for address in ("203.0.113.7", "198.51.100.1, 203.0.113.8"):
                    limited = side.statuses(10, f"X-Forwarded-For: {address}")
                    self.assertEqual(limited, [200] * 3 + [503] * 7)
                self.assertEqual(side.statuses(10, "X-Forwarded-For: 10.1.2.3"), [200] * 10)

    def test_try_it_first(self):
        for side in self.both("Try it first"):
            with self.subTest(side.name):
                self.assertEqual(side.statuses(10), [200] * 10)

    def test_concurrent_requests(self):
        finish = threading.Event()

        def serve(_, wire):
            return finish.wait(PATIENCE) and (wire.send(reply(b"done")) or True)

        app = self.upstream(serve)
        self.addCleanup(finish.set)  # before it is stopped
        for side in self.both("Concurrent requests", app):
            with self.subTest(side.name):
                finish.clear()
                before = len(app.requests)
                with side.connect() as first, side.connect() as second:
                    first.send(get())
                    second.send(get())
                    wait_until(lambda: len(app.requests) == before + 2, "two are under way")
                    self.assertEqual(side.statuses(3), [503] * 3)
                    finish.set()
                    self.assertEqual([first.answer().status, second.answer().status], [200, 200])
                wait_until(lambda: side.get().status == 200, "there is room again")

    def test_keys(self):
        for side in self.both("Keys"):
            with self.subTest(side.name):
                for key in ("a", "b"):
                    self.assertEqual(
                        side.statuses(5, f"X-Api-Key: {key}"), [200] * 3 + [503] * 2
                    )
                self.assertEqual(side.statuses(5), [200] * 5)

    def test_every_example_is_tried(self):
        tried = {name for name in dir(self) if name.startswith("test_")}
        for heading in examples():
            name = "test_" + re.sub(r"\W+", "_", heading.lower())
            self.assertIn(name, tried, f"nothing tries '{heading}'")


class Differences(SideBySide):
    """What the table at the end of the page claims."""

    ZONE = "limit_req_zone $http_x_api_key zone=keys:32k rate=6r/m;"
    RULE = "per: [header.x-api-key], limit: {rate: 6/1m, burst: 3}"

    # That ours keeps its promise with far more keys than this is held by the tests of its table.
    def test_a_flood_of_keys_frees_offenders_of_nginx(self):
        app = self.upstream()
        location = "location / { limit_req zone=keys burst=2 nodelay; proxy_pass http://app; }"
        nginx = self.theirs(f"{self.ZONE}\n{location}\n", app)
        ours = self.ours(f"rules: [{{name: keys, {self.RULE}}}]\n", app)
        passed = {}
        for side in (nginx, ours):
            side.statuses(4, "X-Api-Key: offender")
            with side.connect() as client:
                for number in range(800):
                    client.get("/", f"X-Api-Key: other-{number}")
            passed[side.name] = side.statuses(3, "X-Api-Key: offender").count(200)
        self.assertEqual(passed, {"nginx": 3, "sluice": 0})

    def test_refusals_say_when_to_come_back(self):
        nginx, ours = self.both("A burst at once")
        refused = {side.name: side.at_once(40)[0][-1] for side in (nginx, ours)}
        for name in ("retry-after", "ratelimit", "ratelimit-policy"):
            self.assertIsNone(refused["nginx"].get(name))
            self.assertIsNotNone(refused["sluice"].get(name))

    def test_a_path_has_one_spelling_here(self):
        app = self.upstream()
        limited = "location = /login { limit_req zone=keys; proxy_pass http://app; }"
        nginx = self.theirs(
            f"{self.ZONE.replace('$http_x_api_key', '$server_name')}\n"
            f"{limited} location / {{ proxy_pass http://app; }}\n",
            app,
        )
        rule = "{name: login, match: {path: /login}, limit: {rate: 6/1m, burst: 1}}"
        ours = self.ours(f"rules: [{rule}]\n", app)
        for side, last in ((nginx, 200), (ours, 429)):
            self.assertEqual(side.get("/login").status, 200)
            for path in ("//login", "/%6cogin", "/x/../login"):
                self.assertNotEqual(side.get(path).status, 200, (side.name, path))
            self.assertEqual(side.get("/login/").status, last, side.name)


if __name__ == "__main__":
    unittest.main()
