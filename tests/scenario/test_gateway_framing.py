"""What the gateway takes for a request, byte by byte, and how it refuses the rest."""

import os
import threading
import unittest

from gateway_support import PATIENCE, GatewayTest, get, post, reply


class Refusals(GatewayTest):
    """Each is answered once, the connection is closed, and nothing reaches the upstream."""

    def setUp(self):
        super().setUp()
        self.app = self.upstream()
        self.front = self.gateway(self.app, more="gateway: {max_body_size: 64KiB}")

    def refused(self, status, *requests):
        for request in requests:
            with self.subTest(request=request[:120]), self.front.connect() as client:
                # Whoever smuggles sends a second request behind the first.
                client.send(request + get("/smuggled"))
                answer = client.answer()
                self.assertProblem(answer, status)
                self.assertEqual(answer.get("connection"), "close")
                self.assertTrue(client.is_closed(), client.pending)
        self.assertEqual([one.target for one in self.app.requests], [])

    def refused_post(self, *headers, body=b"hello"):
        self.refused(400, get("/", *headers, method="POST") + body)

    def test_two_ways_to_tell_the_length(self):
        self.refused_post("Content-Length: 5", "Transfer-Encoding: chunked")
        self.refused_post("Transfer-Encoding: chunked", "Content-Length: 5")

    def test_two_lengths(self):
        self.refused_post("Content-Length: 5", "Content-Length: 6")
        self.refused_post("Content-Length: 5, 6")
        self.refused_post("Content-Length: 5", "Content-Length: 5")  # also where they agree
        self.refused_post("Content-Length: 5, 5")

    def test_a_length_that_is_no_number(self):
        for length in ("+5", "-5", "5 5", "0x5", "5;", "", "99999999999999999999999", "5,"):
            self.refused_post(f"Content-Length: {length}")

    def test_a_transfer_coding_that_is_not_chunked_alone(self):
        for coding in ("xchunked", "chunked, chunked", "chunked, gzip", "\x0bchunked", "chunked;a"):
            with self.subTest(coding=coding), self.front.connect() as client:
                client.send(get("/", f"Transfer-Encoding: {coding}", method="POST") + b"0\r\n\r\n")
                answer = client.answer()
                self.assertIn(answer.status, (400, 501))
                self.assertTrue(client.is_closed())
        self.assertEqual(self.app.requests, [])

    # One reader in two does not know it then.
    def test_chunked_in_another_spelling(self):
        chunks = b"5\r\nhello\r\n0\r\n\r\n"
        for line in ("Transfer-Encoding: Chunked", "Transfer-Encoding: CHUNKED"):
            self.refused_post(line, body=chunks)
        for space in ("\t", " \t"):
            self.refused_post(f"Transfer-Encoding:{space}chunked", body=chunks)
        self.refused_post("Transfer-Encoding: chunked ", body=chunks)

    def test_a_transfer_coding_in_http_1_0(self):
        head = b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.refused(400, head + b"0\r\n\r\n")

    def test_lines_that_do_not_end_as_they_should(self):
        self.refused(
            400,
            b"GET / HTTP/1.1\nHost: a\n\n",
            b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\n X: folded\r\n\r\n",
        )

    def test_names_and_values_that_are_none(self):
        for line in ("X : a", ": a", "X(: a", "X: a\0b", "X: a\x01b", "nothing", "X\t: a"):
            self.refused(400, get("/", line))

    def test_hosts_that_are_missing_many_or_wrong(self):
        self.refused(
            400,
            b"GET / HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a, b\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n",
        )

    def test_targets_that_are_none(self):
        for target in ("/a#b", "/a b", "a", "http://", "/\x80", ""):
            self.refused(400, get(target))

    def test_chunks_that_are_none(self):
        cases = (
            b"zz\r\nhello\r\n0\r\n\r\n",
            b"5\nhello\r\n0\r\n\r\n",
            b"5\r\nhello0\r\n\r\n",
            b"fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
            b"5;\r\nhello\r\n0\r\n\r\n",
            b"5;a=\x01\r\nhello\r\n0\r\n\r\n",
            b"-5\r\nhello\r\n0\r\n\r\n",
            b"0\r\nX : a\r\n\r\n",
        )
        for chunks in cases:
            with self.subTest(chunks=chunks), self.front.connect() as client:
                client.send(get("/", "Transfer-Encoding: chunked", method="POST") + chunks)
                self.assertProblem(client.answer(), 400)
                self.assertTrue(client.is_closed())
        self.assertEqual(self.app.requests, [])

    def test_heads_that_are_too_long(self):
        self.refused(414, get("/" + "a" * 9000))
        self.refused(431, get("/", "X: " + "a" * 20000))
        self.refused(431, get("/", *[f"X-{i}: a" for i in range(200)]))

    def test_bodies_that_are_too_long(self):
        self.refused(413, get("/", "Content-Length: 65537", method="POST"))

    # No server sees the end of a body that the gateway answers 413.
    def test_a_chunked_body_that_turns_out_too_long(self):
        for size in (70_000, 200_000):
            with self.front.connect() as client:
                client.send(get("/", "Transfer-Encoding: chunked", method="POST"))
                client.send(b"%x\r\n" % size + b"a" * size + b"\r\n0\r\n\r\n")
                self.assertProblem(client.answer(), 413)
                self.assertTrue(client.is_closed())
        self.assertEqual(self.app.requests, [])

    def test_what_nobody_here_does(self):
        self.refused(417, get("/", "Expect: a-miracle"))
        self.refused(505, b"GET / HTTP/2.0\r\nHost: a\r\n\r\n")
        self.refused(501, get("/", "Transfer-Encoding: gzip, chunked", method="POST"))

    # Refused, but well understood: the connection may stay.
    def test_methods_and_protocols_that_are_not_passed_on(self):
        switch = ("Connection: upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
        with self.front.connect() as client:
            self.assertProblem(client.ask(get(method="TRACE")), 405)
            self.assertProblem(client.ask(get("/chat", *switch)), 501)
            self.assertEqual(client.get().status, 200)
        with self.front.connect() as client:
            self.assertProblem(client.ask(get("a.example:443", method="CONNECT")), 405)

    # A path that ends earlier for some readers than for others.
    def test_a_zero_in_the_path(self):
        with self.front.connect() as client:
            for path in ("/a%00b", "/%00", "/a%00.html"):
                self.assertProblem(client.get(path), 400)
        self.assertEqual(self.app.requests, [])


class Logged(GatewayTest):
    # A line of what was no request must not come back as one.
    def test_what_was_no_request_is_not_replayed(self):
        for form in ("json", "text"):
            log = f"access_log: {{file: {form}.log, format: {form}}}"
            front = self.gateway(self.upstream(), more=log)
            with front.connect() as client:
                self.assertProblem(client.ask(b"GET / HTTP/1.1\r\nHost : a\r\n\r\n"), 400)
            self.assertEqual(front.get("/seen").status, 200)
            self.assertEqual(front.stop(), 0)
            path = os.path.join(self.folder, f"{form}.log")
            with open(path, encoding="utf-8") as stream:
                self.assertEqual(len(stream.readlines()), 2)
            replayed = self.ok("replay", path, "--rules", front.file)
            self.assertIn("1 request, 1 allowed", replayed.out)
            self.assertIn("malformed requests: 1", replayed.out)


class Understood(GatewayTest):
    def setUp(self):
        super().setUp()
        self.app = self.upstream(lambda request, wire: wire.send(reply(request.body)) or True)
        self.front = self.gateway(self.app)

    def test_an_absolute_target_names_the_host(self):
        request = b"GET http://b.example/path?q=1 HTTP/1.1\r\nHost: a.example\r\n\r\n"
        with self.front.connect() as client:
            self.assertEqual(client.ask(request).status, 200)
        passed = self.app.requests[0]
        self.assertEqual((passed.target, passed.all("host")), ("/path?q=1", ["b.example"]))

    # An answer of the gateway's own leaves no byte of a body behind, to be the next request.
    def test_a_body_is_never_taken_for_a_request(self):
        hidden = get("/hidden")
        text = self.configuration(self.app).replace("path: /**", "path: /known/**")
        front = self.serve(text)
        for headers in ((), ("Expect: 100-continue",)):
            with self.subTest(headers=headers), front.connect() as client:
                client.send(post(hidden, *headers, path="/elsewhere") + get("/known/second"))
                self.assertProblem(client.answer("POST"), 404)
                second = client.answer()
                self.assertEqual((second.status, client.pending), (200, b""))
        targets = [one.target for one in self.app.requests]
        self.assertEqual(targets, ["/known/second", "/known/second"])

    def test_a_body_of_a_refused_request_that_comes_later_is_thrown_away(self):
        text = self.configuration(self.app).replace("path: /**", "path: /known/**")
        with self.serve(text).connect() as client:
            client.send(get("/elsewhere", "Content-Length: 100", method="POST"))
            answer = client.answer("POST")
            self.assertEqual((answer.status, answer.get("connection")), (404, "close"))
            client.send(get("/known/hidden") + b" " * 100)
            self.assertTrue(client.is_closed())
        self.assertEqual(self.app.requests, [])

    def test_requests_in_one_packet_are_answered_in_order(self):
        with self.front.connect() as client:
            client.send(post(b"one") + post(b"two") + get() + post(b"four"))
            bodies = [client.answer().body for _ in range(4)]
        self.assertEqual(bodies, [b"one", b"two", b"", b"four"])

    # Far more than a buffer, so that requests are cut anywhere.
    def test_many_requests_in_a_row_are_answered_in_order(self):
        bodies = [b"%d " % i * (i % 97) for i in range(2000)]
        with self.front.connect() as client:
            everything = b"".join(post(body) for body in bodies)
            sender = threading.Thread(target=client.send, args=(everything,))
            sender.start()
            for body in bodies:
                self.assertEqual(client.answer().body, body)
            sender.join(PATIENCE)

    def test_a_request_byte_by_byte(self):
        with self.front.connect() as client:
            for byte in post(b"slowly"):
                client.send(bytes([byte]))
            self.assertEqual(client.answer().body, b"slowly")

    def test_chunks_in_any_cut_arrive_as_one_body_with_its_trailers(self):
        chunks = b"3;ext=1\r\nabc\r\nA\r\n0123456789\r\n0\r\nX-Sum: 7\r\n\r\n"
        head = get("/", "Transfer-Encoding: chunked", "Trailer: X-Sum", method="POST")
        with self.front.connect() as client:
            for cut in range(0, len(chunks), 5):
                client.send(head + chunks[:cut])
                client.send(chunks[cut:])
                self.assertEqual(client.answer().body, b"abc0123456789")
        for request in self.app.requests:
            self.assertEqual([(k.lower(), v) for k, v in request.trailers], [("x-sum", "7")])
            self.assertIsNone(request.get("x-sum"))

    def test_empty_lines_before_a_request_are_passed_over(self):
        with self.front.connect() as client:
            self.assertEqual(client.ask(b"\r\n" + post(b"a")).body, b"a")


if __name__ == "__main__":
    unittest.main()
