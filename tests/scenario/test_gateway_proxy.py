"""What the gateway passes on, in both directions, and what it keeps to itself."""

import os
import socket
import threading
import unittest

from gateway_support import (
    PATIENCE,
    Client,
    EarlyUpstream,
    GatewayTest,
    get,
    post,
    reply,
    wait_until,
)
from nginx_support import NginxTest

MEBI = 1 << 20


class Headers(GatewayTest):
    def passed(self, *headers, more="", request=None):
        app = self.upstream(lambda request, wire: wire.send(reply()) or True)
        with self.gateway(app, more=more).connect() as client:
            self.assertEqual(client.ask(request or get("/", *headers)).status, 200)
        return app.requests[0]

    def test_lines_for_one_connection_stay_on_it(self):
        request = self.passed(
            "Connection: close, X-Private",
            "X-Private: 1",
            "Keep-Alive: timeout=5",
            "Proxy-Connection: keep-alive",
            "Proxy-Authorization: Basic eDp5",
            "TE: gzip",
            "Upgrade: h2c",
            "X-Public: 2",
        )
        for name in ("x-private", "keep-alive", "proxy-connection", "proxy-authorization", "te"):
            self.assertIsNone(request.get(name), name)
        self.assertIsNone(request.get("upgrade"))
        self.assertEqual(request.get("x-public"), "2")

    # Whoever could have these removed would have others decide as if the request had none.
    def test_connection_removes_nothing_that_matters(self):
        request = self.passed(
            "Connection: host, authorization, x-forwarded-for, cookie, content-length",
            "Authorization: Bearer a",
            "Cookie: a=b",
        )
        self.assertEqual(request.get("host"), "a.example")
        self.assertEqual(request.get("authorization"), "Bearer a")
        self.assertEqual(request.get("x-forwarded-for"), "127.0.0.1")

    FORGED = (
        "X-Forwarded-For: 10.1.1.1",
        "X_Forwarded_For: 10.2.2.2",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Host: b.example",
        "Forwarded: for=10.3.3.3",
        "X-Real-IP: 10.4.4.4",
    )

    def test_the_word_of_strangers_is_replaced(self):
        request = self.passed(*self.FORGED)
        self.assertEqual(request.all("x-forwarded-for"), ["127.0.0.1"])
        self.assertEqual(request.all("x-forwarded-proto"), ["http"])
        self.assertEqual(request.all("x-forwarded-host"), ["a.example"])
        for name in ("forwarded", "x-real-ip", "x_forwarded_for"):
            self.assertIsNone(request.get(name), name)

    # The header that addresses are read from is a proxy's word, too, whatever it is called.
    def test_the_address_header_goes_on_as_it_was_believed(self):
        def passed(trusted, *lines):
            clients = f"{{trusted_proxies: [{trusted}], client_ip_header: cf-connecting-ip}}"
            request = self.passed(*lines, more=f"clients: {clients}")
            return request.all("cf-connecting-ip") + request.all("cf_connecting_ip")

        one = "CF-Connecting-IP: 10.1.1.1"
        self.assertEqual(passed("192.0.2.1", one), [], "of a stranger")
        self.assertEqual(passed("127.0.0.1", one), ["10.1.1.1"])
        self.assertEqual(passed("127.0.0.1", one, "Cf-Connecting-Ip: 10.1.1.2"), [], "of two")
        self.assertEqual(passed("127.0.0.1", one, "Cf_Connecting_Ip: 10.1.1.2"), ["10.1.1.1"])

    # Behind a proxy that nobody named, one limit would be for everybody: that is told, once.
    def test_the_operator_hears_that_a_proxy_is_not_trusted(self):
        front = self.gateway(self.upstream())
        told = "add it to clients.trusted_proxies"
        for _ in range(20):
            front.get("/", "X-Forwarded-For: 10.1.1.1")
        front.says(told)
        front.stop()
        self.assertEqual(front.said.count(told), 1)
        trusted = self.gateway(self.upstream(), more="clients: {trusted_proxies: [127.0.0.0/8]}")
        trusted.get("/", "X-Forwarded-For: 10.1.1.1")
        trusted.stop()
        self.assertNotIn(told, trusted.said)

    def test_the_word_of_trusted_proxies_is_kept_and_continued(self):
        request = self.passed(
            *self.FORGED,
            "X-Forwarded-For: 10.5.5.5",
            more="clients: {trusted_proxies: [127.0.0.0/8]}",
        )
        self.assertEqual(request.all("x-forwarded-for"), ["10.1.1.1, 10.5.5.5, 127.0.0.1"])
        self.assertEqual(request.all("x-forwarded-proto"), ["https"])
        self.assertEqual(request.all("x-forwarded-host"), ["b.example"])
        self.assertEqual(request.get("x-real-ip"), "10.4.4.4")
        self.assertIsNone(request.get("x_forwarded_for"))

    # It has no address that could be told: 0.0.0.0 is nobody.
    def test_who_comes_through_a_unix_socket_has_no_address(self):
        path = os.path.join(self.folder, "front")
        listen = f"['127.0.0.1:0', 'unix:{path}']"
        rules = "[{name: each, per: ip, limit: 1/1h}]"
        for clients, passed in (("", []), ("clients: {trusted_proxies: unix}", ["10.1.1.1"])):
            with self.subTest(clients):
                app = self.upstream()
                more = clients + "\naccess_log: {file: access.log}"
                front = self.gateway(app, listen=listen, rules=rules, more=more)
                sock = socket.socket(socket.AF_UNIX)
                sock.connect(path)
                with Client(sock) as client:
                    self.assertEqual(client.get("/", "X-Forwarded-For: 10.1.1.1").status, 200)
                    # Counted for whom the trusted proxy speaks.
                    second = client.get("/", "X-Forwarded-For: 10.1.1.2").status
                    self.assertEqual(second, 200 if passed else 429)
                    client.send(b"nonsense\r\n\r\n")
                    self.assertEqual(client.answer().status, 400)
                self.assertEqual(app.requests[0].all("x-forwarded-for"), passed)
                front.stop()
                first, _, malformed = self.log().splitlines()[-3:]
                self.assertTrue(first.startswith("10.1.1.1 - " if passed else "unix - "), first)
                self.assertTrue(malformed.startswith("unix - "), malformed)

    def test_the_port_is_the_one_that_the_client_came_to(self):
        app = self.upstream()
        front = self.gateway(app)
        front.get("/", "X-Forwarded-Port: 1")
        self.assertEqual(app.requests[0].all("x-forwarded-port"), [str(front.port)])

    def test_forwarded_instead_of_x_forwarded(self):
        request = self.passed(*self.FORGED, more="gateway: {forwarded_headers: forwarded}")
        self.assertEqual(
            request.all("forwarded"), ["for=127.0.0.1;host=a.example;proto=http"]
        )
        for name in ("x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-real-ip"):
            self.assertIsNone(request.get(name), name)

    def test_forwarded_continues_the_word_of_trusted_proxies(self):
        request = self.passed(
            "Forwarded: for=10.3.3.3;proto=https",
            "Forwarded: for=10.4.4.4",
            more="gateway: {forwarded_headers: both}\nclients: {trusted_proxies: [127.0.0.0/8]}",
        )
        self.assertEqual(
            request.all("forwarded"),
            [
                "for=10.3.3.3;proto=https, for=10.4.4.4, "
                "for=127.0.0.1;host=a.example;proto=http"
            ],
        )
        self.assertEqual(request.all("x-forwarded-for"), ["127.0.0.1"])

    def test_nothing_is_said_of_the_client_where_that_is_wanted(self):
        request = self.passed(*self.FORGED, more="gateway: {forwarded_headers: none}")
        for name, _ in request.headers:
            self.assertNotIn("forwarded", name.lower())

    PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    def test_traces_pass_as_they_are(self):
        for more in ("", "gateway: {tracing: {generate: true}}"):
            request = self.passed(f"traceparent: {self.PARENT}", "tracestate: a=1,b=2", more=more)
            self.assertEqual(request.all("traceparent"), [self.PARENT])
            self.assertEqual(request.all("tracestate"), ["a=1,b=2"])
        self.assertIsNone(self.passed().get("traceparent"))

    def test_a_trace_begins_where_there_is_none_or_a_malformed_one(self):
        log = "\naccess_log: {file: access.log, format: json}"
        more = "gateway: {tracing: {sampled: false}}" + log
        seen = set()
        for wrong in ((), ("traceparent: 00-4bf9-00f0-01", "tracestate: a=1")):
            request = self.passed(*wrong, more=more)
            (parent,) = request.all("traceparent")
            self.assertRegex(parent, "^00-[0-9a-f]{32}-[0-9a-f]{16}-00$")
            self.assertIsNone(request.get("tracestate"))
            seen.add(parent)
            trace = f'"trace_id":"{parent[3:35]}"'
            wait_until(lambda: trace in self.log(), "the log names the trace")
        self.assertEqual(len(seen), 2)

    # Who counts hops wants to know how far a request comes.
    def test_options_for_the_gateway_itself(self):
        app = self.upstream()
        with self.gateway(app).connect() as client:
            answer = client.ask(get("/", "Max-Forwards: 0", method="OPTIONS"))
            self.assertEqual((answer.status, app.requests), (204, []))
            self.assertIn("GET", answer.get("allow"))
            client.ask(get("*", "Max-Forwards: 3", method="OPTIONS"))
            self.assertEqual(app.requests[0].all("max-forwards"), ["2"])
            client.ask(get("/", "Max-Forwards: 0"))  # means nothing to other methods
            self.assertEqual(app.requests[1].all("max-forwards"), ["0"])

    def test_every_hop_is_named(self):
        said = reply(b"", "200 OK", "Via: 1.1 b")
        app = self.upstream(lambda request, wire: wire.send(said) or True)
        with self.gateway(app).connect() as client:
            answer = client.get("/", "Via: 1.0 a")
        self.assertRegex(app.requests[0].get("via"), r"^1\.0 a, 1\.1 sluice-[0-9a-f]{8}$")
        self.assertRegex(answer.get("via"), r"^1\.1 b, 1\.1 sluice-[0-9a-f]{8}$")
        # One name for both directions and all workers.
        self.assertEqual(app.requests[0].get("via").split()[-1], answer.get("via").split()[-1])

    def test_request_ids_are_our_own_unless_clients_are_trusted_with_them(self):
        for trusted in ("false", "true"):
            request = self.passed(
                "X-Request-Id: of-the-client", more=f"gateway: {{trust_request_ids: {trusted}}}"
            )
            (found,) = request.all("x-request-id")
            self.assertEqual(found == "of-the-client", trusted == "true", found)

    def test_the_client_is_told_the_id_that_the_upstream_saw(self):
        app = self.upstream()
        with self.gateway(app).connect() as client:
            told = [client.get().get("x-request-id") for _ in range(3)]
        self.assertEqual(told, [request.get("x-request-id") for request in app.requests])
        self.assertEqual(len(set(told)), 3)

    def test_http_1_0_without_a_host_gets_one(self):
        request = self.passed(request=b"GET / HTTP/1.0\r\n\r\n")
        self.assertEqual(request.all("host"), ["app"])
        self.assertRegex(request.get("via"), r"^1\.0 sluice-[0-9a-f]{8}$")


class Answers(GatewayTest):
    def fixed(self, raw, keep=True):
        return self.upstream(lambda request, wire: wire.send(raw) or keep)

    def test_head_has_the_headers_and_no_body(self):
        app = self.fixed(b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n")
        with self.gateway(app).connect() as client:
            for _ in range(2):
                answer = client.ask(get(method="HEAD"))
                self.assertEqual((answer.status, answer.get("content-length")), (200, "1234"))

    def test_answers_without_a_body(self):
        for status in ("204 No Content", "304 Not Modified"):
            app = self.fixed(f"HTTP/1.1 {status}\r\nETag: a\r\n\r\n".encode())
            with self.gateway(app).connect() as client:
                for _ in range(2):
                    answer = client.get()
                    self.assertEqual((answer.start[9:], answer.get("etag")), (status, "a"))
                    self.assertIsNone(answer.get("transfer-encoding"))

    CHUNKED = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
        b"3\r\nabc\r\n4\r\ndefg\r\n0\r\nX-Sum: 9\r\n\r\n"
    )

    def test_chunks_and_trailers_arrive(self):
        with self.gateway(self.fixed(self.CHUNKED)).connect() as client:
            answer = client.get("/", "TE: trailers", "Connection: TE")
            self.assertEqual(answer.body, b"abcdefg")
            self.assertEqual([(k.lower(), v) for k, v in answer.trailers], [("x-sum", "9")])
            self.assertEqual(client.get().trailers, [])  # not asked for

    def test_http_1_0_gets_no_chunks(self):
        with self.gateway(self.fixed(self.CHUNKED)).connect() as client:
            answer = client.ask(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            self.assertIsNone(answer.get("transfer-encoding"))
            self.assertEqual(answer.body, b"abcdefg")

    def test_http_1_0_may_keep_its_connection(self):
        rules = "[{name: two, per: ip, limit: 2/1h}]"
        with self.gateway(self.upstream(), rules=rules).connect() as client:
            for status in (200, 200, 429, 429):
                answer = client.ask(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                self.assertEqual((answer.status, answer.get("connection")), (status, "keep-alive"))
            self.assertEqual(client.ask(b"GET / HTTP/1.0\r\n\r\n").get("connection"), "close")
            self.assertTrue(client.is_closed())

    def test_an_answer_that_ends_with_its_connection_is_framed_anew(self):
        app = self.fixed(b"HTTP/1.0 200 OK\r\n\r\nall of it", keep=False)
        with self.gateway(app).connect() as client:
            for _ in range(2):
                answer = client.get()
                self.assertEqual(answer.body, b"all of it")
                self.assertEqual(answer.get("transfer-encoding"), "chunked")

    def test_connection_close_is_heeded_and_not_passed_on(self):
        app = self.upstream()
        front = self.gateway(app)
        with front.connect() as client:
            answer = client.get("/", "Connection: close")
            self.assertEqual((answer.get("connection"), client.is_closed()), ("close", True))
        with front.connect() as client:
            self.assertIsNone(client.get().get("connection"))

    def test_hints_come_before_the_answer(self):
        hints = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        with self.gateway(self.fixed(hints + reply(b"a"))).connect() as client:
            client.send(get())
            early = client.answer(interim=True)
            self.assertEqual((early.status, early.get("link")), (103, "</a>"))
            self.assertEqual(client.answer().body, b"a")

    # What was said before the answer takes no room from it.
    def test_any_number_of_hints_may_come(self):
        hint = b"HTTP/1.1 103 Early Hints\r\nLink: </%s>\r\n\r\n" % (b"a" * 200)
        with self.gateway(self.fixed(hint * 200 + reply(b"a"))).connect() as client:
            client.send(get())
            for _ in range(200):
                self.assertEqual(client.answer(interim=True).status, 103)
            self.assertEqual(client.answer().body, b"a")

    def test_connections_to_upstreams_are_used_again(self):
        app = self.upstream()
        with self.gateway(app).connect() as client:
            for _ in range(5):
                client.get()
        self.assertEqual([request.connection for request in app.requests], [1] * 5)


class Bodies(GatewayTest):
    def test_a_body_waits_until_it_is_welcome(self):
        app = self.upstream(lambda request, wire: wire.send(reply(request.body)) or True)
        rules = "[{name: one, per: ip, limit: 1/1h}]"
        with self.gateway(app, rules=rules).connect() as client:
            client.send(get("/", "Content-Length: 3", "Expect: 100-continue", method="POST"))
            self.assertEqual(client.answer(interim=True).status, 100)
            client.send(b"abc")
            self.assertEqual(client.answer().body, b"abc")
            self.assertIsNone(app.requests[0].get("expect"))
            client.send(get("/", "Content-Length: 3", "Expect: 100-continue", method="POST"))
            refused = client.answer(interim=True)
            self.assertEqual((refused.status, refused.get("connection")), (429, "close"))

    def test_large_bodies_cost_a_buffer(self):
        size = 64 * MEBI
        received, release = [], threading.Event()

        def serve(request, wire):
            release.wait(PATIENCE)
            left = size - len(wire.pending)
            while left:
                left -= len(wire.sock.recv(min(left, 1 << 18)))
            received.append(size)
            wire.send(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode())
            for _ in range(size // MEBI):
                wire.send(b"a" * MEBI)

        front = self.gateway(self.upstream(serve, EarlyUpstream))
        with front.connect(receive_buffer=65536) as client:
            before = front.resident_bytes()
            client.send(get("/", f"Content-Length: {size}", method="POST"))
            sender = threading.Thread(
                target=lambda: [client.send(b"b" * MEBI) for _ in range(size // MEBI)]
            )
            sender.start()
            release.set()
            head = client.head()
            sender.join(PATIENCE)
            self.assertEqual((head.status, received), (200, [size]))
            left = size - len(client.pending)
            peak = 0
            while left:
                left -= len(client.sock.recv(min(left, 1 << 18)))
                peak = max(peak, front.resident_bytes())
        self.assertLess(peak - before, 4 * MEBI)

    # An upstream that takes nothing stops the client, and the gateway holds next to nothing.
    def test_a_slow_upstream_slows_the_client_down(self):
        stop = threading.Event()
        front = self.gateway(self.upstream(lambda *_: stop.wait(PATIENCE), EarlyUpstream))
        with front.connect() as client:
            client.sock.settimeout(1)
            client.send(get("/", f"Content-Length: {256 * MEBI}", method="POST"))
            before, sent = front.resident_bytes(), 0
            with self.assertRaises(TimeoutError):
                while sent < 256 * MEBI:
                    sent += client.sock.send(b"b" * MEBI)
            self.assertLess(sent, 64 * MEBI)
            self.assertLess(front.resident_bytes() - before, 4 * MEBI)
        stop.set()

    def test_a_slow_client_slows_the_upstream_down(self):
        sent = []

        def serve(request, wire):
            if request.target == "/small":
                return wire.send(reply())
            wire.send(f"HTTP/1.1 200 OK\r\nContent-Length: {256 * MEBI}\r\n\r\n".encode())
            wire.sock.settimeout(1)
            while sum(sent) < 256 * MEBI:
                sent.append(wire.sock.send(b"a" * MEBI))

        app = self.upstream(serve)
        front = self.gateway(app)
        with front.connect(receive_buffer=65536) as client:
            client.get("/small")
            before = front.resident_bytes()
            client.send(get())
            wait_until(lambda: len(app.requests) == 2, "the upstream was asked")
            app.threads[2].join(PATIENCE)
            self.assertLess(sum(sent), 64 * MEBI)
            self.assertLess(front.resident_bytes() - before, 4 * MEBI)

    def test_an_answer_may_come_before_the_end_of_the_body(self):
        def serve(request, wire):
            wire.send(reply(b"enough", "403 Forbidden"))
            while wire.more():
                wire.pending = b""

        front = self.gateway(self.upstream(serve, EarlyUpstream))
        with front.connect() as client:
            client.send(get("/", f"Content-Length: {8 * MEBI}", method="POST") + b"a" * 1000)
            answer = client.answer()
            self.assertEqual((answer.status, answer.body), (403, b"enough"))
            self.assertEqual(answer.get("connection"), "close")
            client.send(get("/smuggled"))
            self.assertTrue(client.is_closed())

    # The request is over for us, too, when its client is gone.
    def test_a_client_that_leaves_takes_its_request_along(self):
        gone = threading.Event()

        def serve(request, wire):
            if not wire.more():
                gone.set()

        app = self.upstream(serve)
        front = self.gateway(app)
        for leave in ("close", "reset"):
            gone.clear()
            client = front.connect()
            client.send(get())
            wait_until(lambda: len(app.requests) > (leave == "reset"), "the upstream was asked")
            getattr(client, leave)()
            self.assertTrue(gone.wait(PATIENCE / 3), leave)  # long before any timeout


class BehindNginx(NginxTest):
    """The same with a server that others have written."""

    def files_of_nginx(self):
        folder = os.path.join(self.folder, "www")
        os.makedirs(folder)
        with open(os.path.join(folder, "file"), "wb") as stream:
            stream.write(os.urandom(3 * MEBI))
        socket_path = os.path.join(self.folder, "socket")
        self.nginx(
            f"""
            client_max_body_size 100m;
            server {{
              listen unix:{socket_path}; root {folder};
              location /seen {{ return 200 "$http_host $http_x_forwarded_for\\n"; }}
              location /gone {{ return 410; }}
            }}""",
            lambda: os.path.exists(socket_path),
        )
        return f"unix:{socket_path}", os.path.join(folder, "file")

    def test_files_ranges_conditions_and_errors(self):
        address, path = self.files_of_nginx()
        with open(path, "rb") as stream:
            content = stream.read()
        with self.gateway(address).connect() as client:
            whole = client.get("/file")
            self.assertEqual((whole.status, whole.body == content), (200, True))
            part = client.get("/file", "Range: bytes=1000-1999")
            self.assertEqual((part.status, part.body), (206, content[1000:2000]))
            tag = whole.get("etag")
            self.assertEqual(client.get("/file", f"If-None-Match: {tag}").status, 304)
            head = client.ask(get("/file", method="HEAD"))
            self.assertEqual(head.get("content-length"), str(len(content)))
            self.assertEqual(client.get("/seen").body, b"a.example 127.0.0.1\n")
            self.assertEqual(client.get("/missing").status, 404)
            self.assertEqual(client.get("/gone").status, 410)
            self.assertEqual(client.ask(post(b"a" * 100_000, path="/file")).status, 405)


if __name__ == "__main__":
    unittest.main()
