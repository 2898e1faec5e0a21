"""Upstreams that are down, slow, wrong or gone, and how the gateway chooses among several."""

import json
import os
import resource
import select
import socket
import threading
import time
import unittest
from collections import Counter

from gateway_support import (
    PATIENCE,
    EarlyUpstream,
    GatewayTest,
    Upstream,
    get,
    post,
    reply,
    wait_until,
)


def unused_address():
    """Where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return "127.0.0.1:%d" % listener.getsockname()[1]


class Failures(GatewayTest):
    def answer_to(self, raw, request=None, keep=False, **options):
        app = self.upstream(lambda request, wire: wire.send(raw) or keep)
        with self.gateway(app, **options).connect() as client:
            return client.ask(request or get()), app

    def test_nobody_listens(self):
        with self.gateway(unused_address()).connect() as client:
            for _ in range(5):  # also when it is left alone by and by
                self.assertProblem(client.get(), 502)

    # The body was not passed on, and is not taken for the next request either.
    def test_nobody_listens_and_there_is_a_body(self):
        with self.gateway(unused_address()).connect() as client:
            client.send(post(get("/hidden")) + get())
            self.assertProblem(client.answer(), 502)
            self.assertProblem(client.answer(), 502)
            client.sock.settimeout(0.3)
            with self.assertRaises(TimeoutError):
                client.head()

    def test_no_answer_in_time(self):
        silent = threading.Event()
        app = self.upstream(lambda *_: silent.wait(10))
        with self.gateway(app, of_upstream="response_timeout: 200ms").connect() as client:
            begin = time.monotonic()
            self.assertProblem(client.get(), 504)
            self.assertGreaterEqual(time.monotonic() - begin, 0.2)
        silent.set()
        self.assertEqual(len(app.requests), 1)  # asked once: it may have been acted upon

    # Its queue is full, and the system lets nobody else in.
    def full_server(self):
        """Where no connection comes about, as with a machine that is off."""
        listener = socket.socket()
        self.addCleanup(listener.close)
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for one in [socket.socket() for _ in range(8)]:
            self.addCleanup(one.close)
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        return "127.0.0.1:%d" % listener.getsockname()[1]

    def test_a_server_that_does_not_accept(self):
        front = self.gateway(self.full_server(), of_upstream="connect_timeout: 300ms")
        self.assertProblem(front.get(), 504)
        front.says("the server did not accept in time")

    # Nothing was passed on, so that nothing can happen twice.
    def test_a_server_that_does_not_accept_costs_nobody_an_answer(self):
        app = self.upstream()
        soon = "connect_timeout: 100ms"
        front = self.gateway(self.full_server(), app, of_upstream=soon, workers=1)
        with front.connect() as client:
            for _ in range(4):
                self.assertEqual(client.ask(post(b"once")).status, 200)
        self.assertEqual(len(app.requests), 4)


    # What the gateway lacks is said to be lacking there, and is not held against the server.
    def test_the_gateway_lacks_descriptors(self):
        app = self.upstream()
        log = "access_log: {file: access.log}"
        options = "max_consecutive_failures: 1, keepalive_connections: 0"
        front = self.gateway(app, of_upstream=options, more=log, workers=1)
        pid = front.process.pid
        with front.connect() as client:
            self.assertEqual(client.get().status, 200)
            before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, before[1]))
            for _ in range(3):
                answer = client.get()
                self.assertProblem(answer, 503)
                detail = json.loads(answer.body)["detail"]
                self.assertEqual(detail, "the gateway lacks file descriptors")
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
            self.assertEqual(client.get().status, 200)
        front.says("the gateway lacks file descriptors: Too many open files")
        wait_until(lambda: "the gateway lacks file descriptors" in self.log(), "the log tells")

    # An idle connection, to whichever server, never costs a request the descriptor it needs.
    def test_the_last_descriptor_is_that_of_an_idle_connection(self):
        a, b = self.upstream(), self.upstream()
        text = self.configuration(a, workers=1)
        text = text.replace("upstreams: {", f"upstreams: {{other: {{servers: ['{b.address}']}}, ")
        text = text.replace("routes: [", "routes: [{path: /b, upstream: other}, ")
        front = self.serve(text)
        pid = front.process.pid
        with front.connect() as client:
            self.assertEqual(client.get("/a").status, 200)
            before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            open_now = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
            free = min(set(range(len(open_now) + 1)) - open_now)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, before[1]))
            self.assertEqual([client.get("/b").status, client.get("/b").status], [200, 200])
            self.assertEqual(client.get("/a").status, 200)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        self.assertEqual((len(a.requests), len(b.requests)), (2, 2))

    # Lively all the time, and yet too long.
    def test_a_request_that_takes_too_long_in_all(self):
        over = threading.Event()

        def drip(request, wire):
            if request.target == "/head":
                over.wait(PATIENCE)
                return False
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while not over.wait(0.02):
                wire.send(b"x")
            return False

        front = self.gateway(self.upstream(drip), of_upstream="request_timeout: 400ms")
        self.addCleanup(over.set)
        self.assertProblem(front.get("/head"), 504)
        with front.connect() as client:
            begin = time.monotonic()
            client.send(get("/body"))
            answer = client.head()
            self.assertEqual(answer.status, 200)
            with self.assertRaises((EOFError, ConnectionResetError)):
                client.body(answer)
            self.assertLess(time.monotonic() - begin, 10)

    def test_an_answer_that_stops_half_way(self):
        stop = threading.Event()
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"
        app = self.upstream(lambda request, wire: wire.send(head) or stop.wait(10))
        log = "access_log: {file: access.log}"
        front = self.gateway(app, of_upstream="read_timeout: 200ms", more=log)
        with front.connect() as client:
            client.send(get())
            with self.assertRaises((ConnectionResetError, EOFError)):
                client.answer()
        stop.set()
        stalled = "the server stalled in the middle of its response"
        wait_until(lambda: stalled in self.log(), "the log tells")

    # The client must be able to tell a part from the whole, however the answer is framed.
    def test_an_upstream_that_dies_in_the_middle(self):
        for head in ("Content-Length: 10\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n5\r\nha"):
            app = self.upstream(lambda _, wire: wire.send(b"HTTP/1.1 200 OK\r\n" + head.encode()))
            with self.gateway(app).connect() as client:
                client.send(get())
                with self.assertRaises((ConnectionResetError, EOFError)):
                    client.answer()

    def test_an_upstream_that_dies_before_it_answers(self):
        for raw in (b"", b"HTTP/1.1 200 O"):
            answer, app = self.answer_to(raw, post(b"a"))
            self.assertProblem(answer, 502)
            self.assertEqual(len(app.requests), 1)

    def test_answers_that_are_none(self):
        cases = (
            b"garbage\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na",
            b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\na",
            b"HTTP/1.1 200 OK\r\nX : a\r\n\r\n",
            b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\nConnection: upgrade\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nX: " + b"a" * 40_000 + b"\r\n\r\n",
            b"HTTP/2 200\r\n\r\n",
        )
        for raw in cases:
            with self.subTest(raw=raw[:80]):
                answer, _ = self.answer_to(raw)
                self.assertProblem(answer, 502)

    # What a body would have had is told, and none is waited for: the connection is used again.
    def test_a_length_on_304_is_no_body(self):
        raw = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: a\r\n\r\n"
        app = self.upstream(lambda _, wire: wire.send(raw) or True)
        with self.gateway(app).connect() as client:
            for _ in range(3):
                answer = client.get()
                self.assertEqual((answer.status, answer.get("content-length")), (304, "5"))
            self.assertEqual(client.pending, b"")
        self.assertEqual([one.connection for one in app.requests], [1, 1, 1])

    # Who announces a body here may send one, and it would be read as the answer.
    def test_a_length_on_hints_is_refused(self):
        for line in ("Content-Length: 5", "Content-Length: 0", "Transfer-Encoding: chunked"):
            raw = f"HTTP/1.1 103 Early Hints\r\n{line}\r\n\r\n".encode() + reply(b"after")
            answer, _ = self.answer_to(raw)
            self.assertProblem(answer, 502)

    def test_lines_for_one_connection_stay_on_it(self):
        own = ("Connection: keep-alive, X-Hop", "X-Hop: a", "Keep-Alive: timeout=5")
        more = ("Proxy-Authenticate: Basic", "Upgrade: h2c", "Trailer: X-Sum", "X-Kept: b")
        answer, _ = self.answer_to(reply(b"a", "200 OK", *own, *more), keep=True)
        self.assertEqual((answer.status, answer.body, answer.get("x-kept")), (200, b"a", "b"))
        names = ("connection", "x-hop", "keep-alive", "proxy-authenticate", "upgrade", "trailer")
        for name in names:
            self.assertIsNone(answer.get(name), name)

    # They are nobody's answer, and not the next request's either.
    def test_bytes_behind_an_answer_end_its_connection(self):
        for extra in (b"x", reply(b"forged")):
            app = self.upstream(lambda _, wire: wire.send(reply(b"true") + extra) or True)
            with self.gateway(app).connect() as client:
                for _ in range(3):
                    self.assertEqual(client.get().body, b"true")
            self.assertEqual([one.connection for one in app.requests], [1, 2, 3])

    def test_unasked_bytes_between_requests_end_the_connection(self):
        app = self.upstream()
        with self.gateway(app).connect() as client:
            client.get()
            app.wires[0].send(reply(b"forged"))
            wait_until(lambda: not app.threads[1].is_alive(), "the gateway hung up")
            self.assertEqual(client.get().body, b"hello")

    # It may be closed any time. One that takes a request and is silent is a server that hangs.
    def test_silence_on_a_connection_that_was_kept_is_a_failure(self):
        over = threading.Event()
        self.addCleanup(over.set)

        def serve(request, wire):
            if request.target == "/hangs":
                over.wait(PATIENCE)
                return False
            return wire.send(reply(b"hello")) or True

        app = self.upstream(serve)
        front = self.gateway(app, of_upstream="response_timeout: 200ms", workers=1)
        with front.connect() as client:
            self.assertEqual(client.get().status, 200)
            self.assertEqual(client.get("/hangs").status, 504)
        self.assertEqual([one.connection for one in app.requests], [1, 1])
        front.says("the server did not respond in time")

    # Nor do those that come together with the next request: both wait for a gateway that was busy.
    def test_unasked_bytes_beside_a_request_are_not_its_answer(self):
        farewells = {"forged": reply(b"forged"), "late": reply(status="408 Timeout"), "end": b""}
        for name, said in farewells.items():
            for request in (get("/b"), post(b"", path="/b")):
                with self.subTest(said=name, request=request[:4]):
                    app = self.upstream()
                    front = self.gateway(app, workers=1)
                    with front.connect() as client:
                        client.get("/a")
                        front.pause()
                        client.send(request)
                        app.wires[0].send(said)
                        app.wires[0].sock.shutdown(socket.SHUT_WR)
                        front.resume()
                        self.assertEqual(client.answer().body, b"hello")
                    self.assertEqual([one.connection for one in app.requests], [1, 2])

    def test_a_body_on_204_is_not_passed_on(self):
        raw = b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"
        app = self.upstream(lambda _, wire: wire.send(raw) or True)
        with self.gateway(app).connect() as client:
            for _ in range(2):
                self.assertProblem(client.get(), 502)
        self.assertEqual([one.connection for one in app.requests], [1, 2])


    # Whatever the client goes on to send.
    def test_one_that_stops_in_its_answer_beside_an_upload(self):
        over = threading.Event()

        def serve(_, wire):
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")
            over.wait(PATIENCE)

        app = self.upstream(serve, kind=EarlyUpstream)
        more = "gateway: {upload_rate_interval: 100ms}"
        front = self.gateway(app, of_upstream="read_timeout: 300ms", more=more)
        with front.connect() as client:
            client.send(get("/", "Transfer-Encoding: chunked", method="POST"))
            self.assertEqual(client.head().status, 200)
            end = time.monotonic() + PATIENCE / 2
            with self.assertRaises((ConnectionResetError, BrokenPipeError)):
                while time.monotonic() < end:
                    client.send(b"400\r\n" + b"x" * 1024 + b"\r\n")
                    select.select([client.sock], [], [], 0.02)  # a pause, or the end
        over.set()


class IdleConnections(GatewayTest):
    """Servers close connections on which nothing happens, just when a request is on its way."""

    def dying(self):
        """Answers the first request of a connection and closes when it has read the second."""

        def serve(request, wire):
            if getattr(wire, "used", False) and not request.target.endswith("/always"):
                return False
            wire.used = True
            wire.send(reply(b"hello"))
            return True

        return self.upstream(serve)

    def test_a_get_is_asked_again_and_nobody_notices(self):
        app = self.dying()
        with self.gateway(app).connect() as client:
            for _ in range(4):
                self.assertEqual(client.get().status, 200)
        self.assertEqual([one.connection for one in app.requests], [1, 1, 2, 2, 3, 3, 4])

    # A server in trouble is not asked to death.
    def test_only_so_many_are_asked_twice(self):
        app = self.upstream(lambda *_: False)
        front = self.gateway(app, workers=1)
        with front.connect() as client:
            for _ in range(200):
                self.assertEqual(client.get().status, 502)
        self.assertLessEqual(len(app.requests), 200 + 200 // 5 + 20)
        self.assertGreater(len(app.requests), 200)

    # A request that was on its way when the server closed is no sign of trouble, and costs nothing
    # of what is kept for that; what other upstreams are asked twice is no matter here.
    def test_trouble_elsewhere_does_not_use_up_their_retries(self):
        failing = self.upstream(lambda *_: False)
        dying = self.dying()
        text = self.configuration(failing, workers=1)
        text = text.replace(
            "upstreams: {", f"upstreams: {{good: {{servers: ['{dying.address}']}}, "
        ).replace("routes: [", "routes: [{path: /good, upstream: good}, ")
        with self.serve(text).connect() as client:
            for _ in range(100):  # until nothing is left of what may be asked twice
                self.assertEqual(client.get("/bad").status, 502)
            for _ in range(60):
                self.assertEqual(client.get("/good").status, 200)

    # Refusals reach no server, and earn nobody another try.
    def test_refusals_earn_no_retries(self):
        app = self.upstream(lambda *_: False)
        rules = "[{name: few, match: {path: /few}, limit: 1/1h}]"
        with self.gateway(app, workers=1, rules=rules).connect() as client:
            for _ in range(40):  # more than what there is at first
                client.get()
            client.get("/few")
            for _ in range(300):
                self.assertEqual(client.get("/few").status, 429)
            before = len(app.requests)
            for _ in range(40):
                client.get()
        self.assertLessEqual(len(app.requests) - before, 40 + 40 // 5 + 1)

    def test_a_connection_is_kept_for_so_long(self):
        app = self.upstream()
        with self.gateway(app, of_upstream="keepalive_timeout: 200ms").connect() as client:
            begin = time.monotonic()
            self.assertEqual(client.get().status, 200)
            wait_until(lambda: not app.threads[1].is_alive(), "it is closed")
            self.assertGreaterEqual(time.monotonic() - begin, 0.18)
            self.assertEqual(client.get().status, 200)
        self.assertEqual([one.connection for one in app.requests], [1, 2])

    def test_a_post_is_not(self):
        app = self.dying()
        with self.gateway(app).connect() as client:
            client.get()
            self.assertProblem(client.ask(post(b"pay")), 502)
        self.assertEqual([one.method for one in app.requests], ["GET", "POST"])

    def test_a_connection_that_was_closed_meanwhile_is_not_used(self):
        app = self.upstream(lambda request, wire: wire.send(reply(b"a")) and False)
        with self.gateway(app).connect() as client:
            for _ in range(5):
                self.assertEqual(client.get().status, 200)
                wait_until(lambda: not app.threads[-1].is_alive(), "it is closed")
                self.assertEqual(client.ask(post(b"a")).status, 200)


class Choice(GatewayTest):
    def named(self, name, port=0):
        return self.upstream(lambda _, wire: wire.send(reply(name.encode())) or True, port=port)

    def names(self, front, count, *headers):
        with front.connect() as client:  # one connection, so one worker
            return Counter(client.get("/", *headers).body.decode() for _ in range(count))

    def test_each_in_turn(self):
        front = self.gateway(self.named("a"), self.named("b"), self.named("c"))
        self.assertEqual(self.names(front, 30), {"a": 10, "b": 10, "c": 10})

    def test_by_weight(self):
        a, b = self.named("a"), self.named("b")
        text = self.configuration(a, b)
        text = text.replace(f"'{b.address}'", f"{{address: '{b.address}', weight: 3}}")
        self.assertEqual(self.names(self.serve(text), 40), {"a": 10, "b": 30})

    def test_the_one_with_the_fewest_under_way(self):
        stuck = threading.Event()
        a = self.upstream(lambda _, wire: stuck.wait(30) and wire.send(reply(b"a")))
        b = self.named("b")
        text = self.configuration(a, b, of_upstream="balance: least_connections")
        front = self.serve(text.replace("workers: 2", "workers: 1"))
        with front.connect() as waiting:
            waiting.send(get())
            wait_until(lambda: a.requests, "the first waits")
            self.assertEqual(self.names(front, 10), {"b": 10})
            stuck.set()
            self.assertEqual(waiting.answer().body, b"a")

    def test_always_the_same_for_the_same_client(self):
        apps = [self.named(name) for name in "abcd"]
        front = self.gateway(
            *apps,
            of_upstream="balance: client_hash",
            more="clients: {trusted_proxies: [127.0.0.0/8]}",
        )
        chosen = Counter()
        for i in range(40):
            (name,) = self.names(front, 3, f"X-Forwarded-For: 10.0.0.{i}")
            chosen[name] += 1
        self.assertEqual(len(chosen), 4, chosen)

    # Asked again elsewhere while nothing can happen twice; then not asked at all for a while.
    def test_a_server_that_is_down_costs_nobody_an_answer(self):
        options = "max_consecutive_failures: 2"
        front = self.gateway(unused_address(), self.named("b"), of_upstream=options)
        with front.connect() as client:
            for _ in range(10):
                self.assertEqual(client.get().body, b"b")
                self.assertEqual(client.ask(post(b"x")).body, b"b")

    def test_a_server_that_fails_is_left_alone_and_tried_again(self):
        failing = threading.Event()
        failing.set()

        def serve(_, wire):
            if failing.is_set():
                return False
            wire.send(reply(b"a"))
            return True

        a, b = self.upstream(serve), self.named("b")
        options = "max_consecutive_failures: 2, ejection_time: 300ms, keepalive_connections: 0"
        text = self.configuration(a, b, of_upstream=options).replace("workers: 2", "workers: 1")
        front = self.serve(text)
        self.assertEqual(self.names(front, 20), {"b": 20})
        self.assertLess(len(a.requests), 8)
        failing.clear()
        wait_until(lambda: self.names(front, 10) == {"a": 5, "b": 5}, "both are asked again")
        time_and_level = r"(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z %s app at "
        front.says(f"app at {a.address}: recovered")
        self.assertRegex(front.said, time_and_level % "info" + f"{a.address}: recovered$")
        ejected = f"{a.address}: ejected for 300ms after 2 consecutive failures$"
        self.assertRegex(front.said, time_and_level % "warning" + ejected)
        self.assertEqual(front.said.count("ejected"), 1)

    # A reload that changes an upstream begins anew with its servers: nothing of them recovers.
    def test_an_ejection_after_a_reload_is_told_of(self):
        a = self.upstream(lambda _, wire: False)
        options = "max_consecutive_failures: 2, ejection_time: 1h, retries: 0"
        text = self.configuration(a, of_upstream=options, workers=1)
        front = self.serve(text)
        line = f"app at {a.address}: ejected for 1h after %d consecutive failures"
        wait_until(lambda: front.get().status and line % 2 in front.said, "it is ejected")
        self.file("sluice.yaml", text.replace("_failures: 2", "_failures: 3") + "\n")
        front.says("configuration reloaded")
        wait_until(lambda: front.get().status and line % 3 in front.said, "it is again")
        self.assertEqual(front.said.count("ejected"), 2)

    def test_the_most_specific_route_wins(self):
        names = {
            "host: A.Example., path: /v1/**": "a-v1",
            "host: a.example": "a",
            "host: '*.example'": "wild",
            "path: /v1/**": "v1",
        }
        apps = {key: self.named(name) for key, name in names.items()}
        upstreams = ", ".join(
            f"{name}: {{servers: ['{apps[key].address}']}}" for key, name in names.items()
        )
        routes = ", ".join(f"{{{key}, upstream: {name}}}" for key, name in names.items())
        front = self.serve(
            "listen: {gateway: 127.0.0.1:0}\n"
            f"upstreams: {{{upstreams}}}\nroutes: [{routes}]\nrules: {self.NO_RULES}"
        )
        cases = {
            ("a.example", "/v1/x"): b"a-v1",
            ("A.Example:80", "/x/../v1/x"): b"a-v1",
            ("a.example", "/v2"): b"a",
            ("b.example", "/v1/x"): b"wild",
            ("elsewhere", "/v1/x"): b"v1",
        }
        with front.connect() as client:
            for (host, path), expected in cases.items():
                request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
                self.assertEqual(client.ask(request).body, expected, (host, path))
            self.assertProblem(client.ask(b"GET / HTTP/1.1\r\nHost: elsewhere\r\n\r\n"), 404)


class Restart(GatewayTest):
    """An upstream may be replaced by another on the same port."""

    def test_a_new_server_takes_over(self):
        old = Upstream()
        front = self.gateway(old)
        with front.connect() as client:
            self.assertEqual(client.get().body, b"hello")
            old.stop()
            self.upstream(
                lambda _, wire: wire.send(reply(b"new")) or True, port=int(old.address[10:])
            )
            self.assertEqual(client.get().body, b"new")


if __name__ == "__main__":
    unittest.main()
