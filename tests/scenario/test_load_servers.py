"""`sluice load URL` against servers of every kind: slow, broken, gone."""

import json
import os
import signal
import socket
import subprocess
import threading
import time
import unittest
import xml.etree.ElementTree as ElementTree

from gateway_support import PATIENCE, Upstream, reply, wait_until
from load_support import LoadTest
from support import BINARY, sluice


class AgainstOtherServers(LoadTest):
    # The one property that a load generator must have: a server that hangs for a second delays
    # everybody who would have come in that second, and the percentiles show it.
    def test_a_stall_is_seen_by_all_who_would_have_come(self):
        seen = []

        def serve(request, wire):
            seen.append(request)
            if len(seen) == 100:
                threading.Event().wait(1)
            wire.send(reply(b"hello"))
            return True

        result = self.load(
            self.url(self.upstream(serve)),
            *("--connections", 1, "--rate", "200/s", "--duration", "2s"),
        )
        self.assertEqual(result["statuses"], {"200": 400})
        latency, service = result["latency_ns"]["admitted"], result["service_ns"]["admitted"]
        # One request in 400 was slow to be served. Half of them had to wait for it: those of the
        # second that it took, and those that came while the rest was being caught up with.
        self.assertLess(service["p90"], 0.5e9)
        self.assertGreater(service["max"], 0.9e9)
        self.assertGreater(latency["p90"], 0.5e9)
        self.assertGreater(latency["p99"], 0.9e9)

    def test_a_closed_loop_hides_it_and_says_so(self):
        result = self.load(
            self.url(self.upstream()), "--closed", "--duration", "300ms", "--connections", 2
        )
        self.assertEqual(result["open_loop"], False)
        self.assertIsNone(result["rate_per_second"])
        self.assertGreater(result["admitted"], 10)
        self.assertIn("coordinated omission", result["said"])

    def test_errors_are_told_apart(self):
        kinds = {
            "closed": lambda wire: False,
            "bad_response": lambda wire: wire.send(b"HTTP/1.1 2000 Oh\r\n\r\n") or True,
        }
        for kind, act in kinds.items():
            with self.subTest(kind=kind):
                app = self.upstream(lambda _, wire, act=act: act(wire))
                options = ("--rate", "50/s", "--duration", "1s", "--connections", 4)
                result = self.load(self.url(app), *options, code=1)
                self.assertEqual(result["errors"][kind], 50)
                self.assertIn("no response arrived", result["said"])

    # Four connections, all of which hang: the first four time out, the others wait for a
    # connection, and are given up when they have waited for as long.
    def test_who_gets_no_connection_in_time_is_not_sent(self):
        over = threading.Event()
        app = self.waiting(over, b"late")
        self.addCleanup(over.set)  # before the server waits for those who wait for this
        result = self.load(
            self.url(app),
            *("--rate", "100/s", "--duration", "1s", "--connections", 4, "--timeout", "300ms"),
            code=1,
        )
        self.assertGreaterEqual(result["errors"]["timeout"], 8)
        self.assertGreater(result["not_sent"], 20)
        self.assertEqual(result["errors"]["timeout"] + result["not_sent"], 100)
        self.assertGreaterEqual(result["latency_ns"]["all"]["max"], 300e6)
        self.assertIn("no connection became free within 300ms", result["said"])

    def test_other_statuses_are_neither_admitted_nor_refused(self):
        answers = [reply(b"", status) for status in ("503 Gone", "404 No", "302 There", "204 No")]
        count = iter(range(10**6))

        def serve(_, wire):
            answer = answers[next(count) % 4]
            wire.send(
                answer.replace(b"Content-Length: 0\r\n", b"") if b" 204 " in answer else answer
            )
            return True

        app = self.upstream(serve)
        options = ("--connections", 1, "--rate", "80/s", "--duration", "1s")
        result = self.load(self.url(app), *options)
        self.assertEqual(result["statuses"], {"204": 20, "302": 20, "404": 20, "503": 20})
        self.assertEqual((result["admitted"], result["rejected"]), (40, 0))
        self.assertRegex(
            sluice("load", self.url(app), *options).out, r"(?m)^503 Service Unavailable +20 "
        )

    # Whatever ends an answer, the next one is read as well.
    def test_every_framing_is_understood(self):
        answers = {
            "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"3\r\nabc\r\n0\r\nx-trailer: 1\r\n\r\n",
            "interim": b"HTTP/1.1 103 Hints\r\nlink: a\r\n\r\n" + reply(b"hello"),
            "large": reply(b"x" * 300_000),
            "close": reply(b"hello", "200 OK", "Connection: close"),
            "until close": b"HTTP/1.1 200 OK\r\n\r\nhello",
            "old": b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        }
        closes = ("close", "until close", "old")
        for name, answer in answers.items():
            with self.subTest(framing=name):
                app = self.upstream(
                    lambda _, wire, answer=answer, name=name: wire.send(answer)
                    or name not in closes
                )
                options = ("--rate", "50/s", "--duration", "1s", "--connections", 2)
                result = self.load(self.url(app), *options)
                self.assertEqual(result["statuses"], {"200": 50}, result)
                connections = len({request.connection for request in app.requests})
                self.assertEqual(connections, 50 if name in closes else 2)

    # The server says so, and leaves it to us.
    def test_a_connection_that_is_to_be_closed_is_not_used_again(self):
        seen = set()

        def serve(request, wire):
            if request.connection in seen:
                return False
            seen.add(request.connection)
            wire.send(reply(b"hello", "200 OK", "Connection: close"))
            return True

        options = ("--rate", "50/s", "--duration", "1s", "--connections", 2)
        result = self.load(self.url(self.upstream(serve)), *options)
        self.assertEqual(result["statuses"], {"200": 50}, result)

    # An answer that dribbles in is one answer.
    def test_pieces_are_put_together(self):
        whole = (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nx-long: " + b"y" * 200 + b"\r\n\r\n"
            b"a\r\n0123456789\r\n0\r\nx-trailer: 1\r\n\r\n"
        )

        def serve(_, wire):
            for i in range(0, len(whole), 7):
                wire.send(whole[i : i + 7])
            return True

        options = ("--rate", "50/s", "--duration", "1s", "--connections", 3)
        self.assertEqual(self.load(self.url(self.upstream(serve)), *options)["admitted"], 50)

    def test_requests_are_what_was_asked_for(self):
        app = self.upstream()
        options = ("--rate", "6/s", "--duration", "1s", "--clients", 3, "--connections", 1)
        self.load(
            self.url(app, "/u/{n}?x=1"),
            *(*options, "-H", "x-a: v{n}", "-H", "user-agent: me", "--body", "{n} bytes"),
        )
        self.assertEqual(len(app.requests), 6)
        self.assertEqual({one.method for one in app.requests}, {"POST"})
        self.assertEqual({one.target for one in app.requests}, {f"/u/{n}?x=1" for n in (1, 2, 3)})
        self.assertEqual({one.get("x-a") for one in app.requests}, {"v1", "v2", "v3"})
        self.assertEqual({one.body for one in app.requests}, {b"{n} bytes"})
        self.assertEqual({one.get("host") for one in app.requests}, {app.address})

    def test_the_url_may_come_last(self):
        app = self.upstream()
        done = sluice("load", "--rate", 5, "--duration", "1s", "-H", "a: b", self.url(app))
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual({one.get("a") for one in app.requests}, {"b"})

    def test_large_bodies_are_sent_whole(self):
        app = self.upstream()
        options = ("--rate", "4/s", "--duration", "1s", "--body-size", 3_000_000, "--method", "PUT")
        self.assertEqual(self.load(self.url(app), *options)["admitted"], 4)
        self.assertEqual({len(one.body) for one in app.requests}, {3_000_000})

    def test_answers_to_head_have_no_body(self):
        def serve(_, wire):
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")
            return True

        options = ("--rate", "20/s", "--duration", "1s", "--method", "HEAD", "--connections", 2)
        self.assertEqual(self.load(self.url(self.upstream(serve)), *options)["admitted"], 20)

    def test_the_plot_is_a_picture(self):
        path = os.path.join(self.folder, "load.svg")
        options = ("--rate", "100/s", "--duration", "1s", "--svg", path, "--expect", "50/1s")
        self.load(self.url(self.upstream()) + "?a=<&", *options)
        root = ElementTree.parse(path).getroot()
        self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
        texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
        for text in ("requests per second", "offered", "admitted", "rejected", "limit 50", "p99"):
            self.assertIn(text, texts)
        self.refuses(
            3,
            "cannot write",
            "load",
            self.url(self.upstream()),
            *options[:4],
            "--svg",
            os.path.join(self.folder, "no", "where.svg"),
        )

    # Fifty are answered, the next four hang on the four connections, and all others wait for one.
    def test_an_interrupt_ends_the_run_and_shows_what_was_measured(self):
        over = threading.Event()
        seen = []

        def serve(request, wire):
            seen.append(request)
            if len(seen) > 50:
                over.wait(PATIENCE)
            wire.send(reply(b"hello"))
            return True

        app = self.upstream(serve)
        self.addCleanup(over.set)
        options = ("--rate", "200/s", "--duration", "1h", "--connections", "4", "--json")
        process = subprocess.Popen(
            [BINARY, "load", self.url(app), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        wait_until(lambda: len(seen) == 54, "four requests hang")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0)
        result = json.loads(out)
        self.assertAddsUp(result)
        self.assertEqual(result["interrupted"], True)
        self.assertEqual((result["admitted"], result["unfinished"]), (50, 4))
        self.assertIn(b"stopped early", err)

    def test_a_server_that_is_not_there_is_told_at_once(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        begin = time.monotonic()
        done = self.refuses(
            3, r"cannot connect to 127\.0\.0\.1:\d+: ", "load", f"http://127.0.0.1:{port}/"
        )
        self.assertLess(time.monotonic() - begin, 5)
        self.assertIn("is the server running there?", done.err)
        self.assertEqual(done.out, "")

    # It was there, and is gone: every request fails on its own.
    def test_a_server_that_goes_away_costs_every_request(self):
        class OneConnection(Upstream):
            def connected(self, wire, number):
                self.listener.shutdown(socket.SHUT_RDWR)
                self.listener.close()

            def stop(self):
                for thread in self.threads:
                    thread.join(PATIENCE)

        app = self.upstream(kind=OneConnection)
        result = self.load(
            self.url(app), "--rate", "50/s", "--duration", "1s", "--connections", 3, code=1
        )
        self.assertEqual(result["errors"]["connect"] + result["errors"]["closed"], 50)

    def test_a_name_is_looked_up(self):
        app = self.upstream()
        url = "http://localhost:" + app.address.split(":")[1]
        self.assertEqual(self.load(url, "--rate", "20/s", "--duration", "1s")["admitted"], 20)


if __name__ == "__main__":
    unittest.main()
