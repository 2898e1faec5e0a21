"""Every way to be refused, as clients read it, and what counts as an answer."""

import base64
import threading
import unittest

from gateway_support import GatewayTest, get, post, reply, wait_until
from support import sluice

GRPC = "Content-Type: application/grpc"


class Refused(GatewayTest):
    """By others than a limit that is reached: nothing reaches the upstream."""

    def refused(self, status, request=None, **options):
        app = self.upstream()
        with self.gateway(app, **options).connect() as client:
            answer = client.ask(request or get())
            self.assertProblem(answer, status)
            self.assertEqual(answer.get("cache-control"), "no-store")
            self.assertIsNone(answer.get("connection"))  # it may ask again
        self.assertEqual(app.requests, [])
        return answer

    def test_by_the_deny_list(self):
        answer = self.refused(403, more="lists: {deny: [ip=127.0.0.0/8]}")
        self.assertIsNone(answer.get("retry-after"))

    def test_where_no_rule_matches(self):
        answer = self.refused(503, more="unmatched: reject")
        self.assertIn(b"about:blank", answer.body)

    def test_where_a_value_is_missing(self):
        rules = "[{name: each, per: header.x-plan, on_missing: reject, limit: 9/1h}]"
        self.refused(403, rules=rules)

    def test_whoever_does_not_prove_who_they_are(self):
        keys = self.file("keys.yaml", "keys: []\n")
        made = sluice("keys", "create", "--name", "ann", "--file", keys)
        self.assertEqual(made.code, 0, made.err)
        more = "clients: {require_auth: true, api_keys: {header: x-api-key, file: keys.yaml}}"
        for request in (get(), get("/", "X-Api-Key: wrong")):
            answer = self.refused(401, request, more=more)
            self.assertTrue(answer.get("www-authenticate"))

    # A method without a path: no rule can concern it, and what follows was meant for a tunnel.
    def test_a_tunnel(self):
        app = self.upstream()
        with self.gateway(app).connect() as client:
            client.send(get("a.example:443", method="CONNECT") + get("/smuggled"))
            answer = client.answer()
            self.assertProblem(answer, 405)
            self.assertIn("GET", answer.get("allow"))
            self.assertTrue(client.is_closed())
        self.assertEqual(app.requests, [])


class Grpc(GatewayTest):
    """Clients of gRPC read their status in headers, whatever HTTP says."""

    def call(self, client, message=b"\0\0\0\0\0"):
        return client.ask(post(message, GRPC, "TE: trailers", path="/pkg.Service/Method"))

    def test_a_refusal_is_said_in_its_words(self):
        rules = "[{name: few, per: ip, limit: 1/1h}]"
        app = self.upstream()
        with self.gateway(app, rules=rules).connect() as client:
            self.assertEqual(self.call(client).body, b"hello")
            for _ in range(2):  # on the same connection
                refused = self.call(client)
                self.assertEqual((refused.status, refused.body), (200, b""))
                self.assertEqual(refused.get("content-type"), "application/grpc")
                self.assertEqual(refused.get("grpc-status"), "8")
                self.assertIn("limit of 1 request in 3600 seconds", refused.get("grpc-message"))
                pushback = int(refused.get("grpc-retry-pushback-ms"))
                self.assertTrue(3_590_000 < pushback <= 3_600_000, pushback)
                details = refused.get("grpc-status-details-bin")
                details = base64.b64decode(details + "=" * (-len(details) % 4))
                self.assertIn(b"google.rpc.QuotaFailure", details)
                self.assertIn('"few";r=0', refused.get("ratelimit"))
        self.assertEqual(len(app.requests), 1)

    def test_what_is_beyond_the_gateway_is_unavailable(self):
        with self.gateway("127.0.0.1:1").connect() as client:
            answer = self.call(client)
        self.assertEqual((answer.status, answer.get("grpc-status")), (200, "14"))


CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\nTransfer-Encoding: chunked\r\n\r\n"
MESSAGE = b"5\r\n\0\0\0\0\0\r\n"


def call_ended(status):
    """An answer with a message, whose status comes behind it."""
    return CHUNKED + MESSAGE + b"0\r\ngrpc-status: %d\r\n\r\n" % status


def call_refused(status):
    """An answer that has headers alone."""
    return reply(b"", "200 OK", GRPC, f"grpc-status: {status}")


class CountedCalls(GatewayTest):
    """Rules that count calls by how they ended."""

    RULES = "[{name: failed, per: ip, limit: 2/1h, count: {grpc_status: [16]}}]"

    def setUp(self):
        super().setUp()
        self.says = b""
        self.keeps = True
        self.app = self.upstream(lambda _, wire: wire.send(self.says) or self.keeps)

    def statuses(self, front, count, *headers):
        """What HTTP says, and gRPC in headers or trailers."""
        found = []
        with front.connect() as client:
            for _ in range(count):
                answer = client.ask(post(b"", GRPC, *headers))
                fields = dict(answer.headers + answer.trailers)
                found.append((answer.status, fields.get("grpc-status")))
        return found

    def only_the_named_status_counts(self, answer, *headers):
        front = self.gateway(self.app, rules=self.RULES)
        self.says = answer(0)
        self.assertEqual(len(self.statuses(front, 6, *headers)), 6)
        self.assertEqual(len(self.app.requests), 6)
        self.says = answer(16)
        self.statuses(front, 4, *headers)
        self.assertEqual(len(self.app.requests), 8, "two of them, and then no more")
        self.assertEqual(self.statuses(front, 1), [(200, "8")])

    def test_by_trailers(self):
        self.only_the_named_status_counts(call_ended, "TE: trailers")

    # Whether the client wants trailers has nothing to do with it.
    def test_by_trailers_that_are_not_passed_on(self):
        self.only_the_named_status_counts(call_ended)

    def test_by_headers_where_nothing_follows(self):
        self.only_the_named_status_counts(call_refused)

    def test_charged_afterwards_where_the_rule_says_so(self):
        rules = self.RULES.replace("[16]}", "[16], when: after}")
        front = self.gateway(self.app, rules=rules)
        self.says = call_ended(0)
        self.statuses(front, 4)
        self.says = call_ended(16)
        self.statuses(front, 4)
        self.assertEqual(len(self.app.requests), 6)

    # Nobody knows how it ended, and whoever makes it break off must not get it for nothing.
    def test_one_that_broke_off_stays_charged(self):
        front = self.gateway(self.app, rules=self.RULES)
        self.says, self.keeps = CHUNKED + MESSAGE, False
        for _ in range(2):
            with front.connect() as client:
                client.send(post(b"", GRPC))
                while not client.is_closed():
                    pass
        self.assertEqual(self.statuses(front, 1), [(200, "8")])

    def test_one_that_ends_without_a_status_stays_charged(self):
        front = self.gateway(self.app, rules=self.RULES)
        self.says = CHUNKED + MESSAGE + b"0\r\n\r\n"
        self.statuses(front, 2)
        self.assertEqual(self.statuses(front, 1), [(200, "8")])

    # A plain page has no such status, and never counts.
    def test_one_that_is_no_grpc_is_given_back(self):
        front = self.gateway(self.app, rules=self.RULES)
        self.says = reply(b"a page")
        self.assertEqual(self.statuses(front, 4), [(200, None)] * 4)

    def test_an_answer_of_the_gateway_is_one(self):
        unavailable = self.RULES.replace("[16]", "[14]")
        front = self.gateway("127.0.0.1:1", rules=unavailable)
        self.assertEqual(self.statuses(front, 3), [(200, "14"), (200, "14"), (200, "8")])


class CountedAnswers(GatewayTest):
    RULES = "[{name: failed, per: ip, limit: 1/1h, count: {status: [401]}}]"

    # A guess must not be free for those who do not wait for the answer.
    def test_a_client_that_leaves_stays_charged(self):
        finish = threading.Event()
        app = self.waiting(finish, b"a")
        front = self.gateway(app, rules=self.RULES, more="access_log: {file: access.log}")
        self.addCleanup(finish.set)
        client = front.connect()
        client.send(get())
        wait_until(lambda: app.requests, "it is passed on")
        client.reset()
        wait_until(lambda: "the client left" in self.log(), "the gateway knows")
        finish.set()
        self.assertEqual(front.get().status, 429)

    def test_a_client_that_waits_gets_it_back(self):
        front = self.gateway(self.upstream(), rules=self.RULES)
        self.assertEqual([front.get().status for _ in range(3)], [200] * 3)


class Queued(GatewayTest):
    """HTTP/1.0 has no way to ask a client whether it still waits."""

    RULES = """
      - {name: one, per: ip, limit: {rate: 1/1m, algorithm: leaky_bucket},
         action: {queue: {max_delay: 5m, max_queued: 1}}}
    """

    def is_held(self, client):
        client.sock.setblocking(False)
        try:
            return not client.more()
        except BlockingIOError:
            return True

    def test_a_client_of_http_1_0_that_ends_its_side_leaves_the_queue(self):
        front = self.gateway(self.upstream(), rules=self.RULES, workers=1)
        self.assertEqual(front.get().status, 200)
        for _ in range(3):  # there is one place
            with front.connect() as client:
                client.send(b"GET / HTTP/1.0\r\nHost: a\r\n\r\n")
                self.assertEqual(front.get().status, 429)  # it is taken
                self.assertTrue(self.is_held(client), client.pending)


if __name__ == "__main__":
    unittest.main()
