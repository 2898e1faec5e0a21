"""Limits as clients of the gateway meet them, and the time that slow clients are given."""

import threading
import time
import unittest
from collections import Counter

from admin_support import AdminTest
from gateway_support import PATIENCE, EarlyUpstream, GatewayTest, get, post, reply, wait_until


class Enforcement(GatewayTest):
    def statuses(self, front, count, request=None):
        with front.connect() as client:
            return [client.ask(request or get()).status for _ in range(count)]

    def test_refusals_keep_the_connection_and_never_reach_the_upstream(self):
        app = self.upstream()
        front = self.gateway(app, rules="[{name: three, per: ip, limit: 3/1h}]")
        with front.connect() as client:
            for _ in range(3):
                self.assertEqual(client.get().status, 200)
            refused = client.get()
            self.assertEqual(refused.status, 429)
            self.assertIsNone(refused.get("connection"))
            self.assertGreater(int(refused.get("retry-after")), 0)
            self.assertEqual(client.ask(get(method="HEAD")).status, 429)
            self.assertEqual(client.get().status, 429)
        self.assertEqual(len(app.requests), 3)

    # Neither is a part of the body taken for a request, nor is the answer lost.
    def test_refusing_an_upload_does_not_confuse_the_connection(self):
        app = self.upstream()
        rules = "[{name: none, match: {method: POST}, per: ip, limit: 1/1h}]"
        front = self.gateway(app, rules=rules)
        self.statuses(front, 1, post(b"a"))
        with front.connect() as client:  # all of it is there already
            client.send(post(get("/hidden")) + get("/next"))
            self.assertEqual(client.answer().status, 429)
            self.assertEqual(client.answer().status, 200)
            chunks = b"5\r\nhello\r\n0\r\n\r\n"
            client.send(get("/", "Transfer-Encoding: chunked", method="POST") + chunks + get())
            self.assertEqual(client.answer().status, 429)
            self.assertEqual(client.answer().status, 200)
        with front.connect() as client:  # most of it is yet to come
            client.send(get("/", f"Content-Length: {4 << 20}", method="POST"))
            client.send(get("/hidden") * 1000)
            refused = client.answer()
            self.assertEqual((refused.status, refused.get("connection")), (429, "close"))
            client.send(get("/hidden") * 1000)
            self.assertTrue(client.is_closed())
        self.assertEqual([one.target for one in app.requests], ["/", "/next", "/"])

    def test_limits_are_exact_however_many_ask(self):
        app = self.upstream()
        front = self.gateway(app, rules="[{name: some, per: ip, limit: 500/1h}]")
        begin, counts = threading.Barrier(64), Counter()

        def run():
            with front.connect() as client:
                begin.wait(PATIENCE)
                for _ in range(20):
                    counts[client.get().status, threading.get_ident()] += 1

        threads = [threading.Thread(target=run) for _ in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        by_status = Counter()
        for (status, _), count in counts.items():
            by_status[status] += count
        self.assertEqual(by_status, {200: 500, 429: 64 * 20 - 500})
        self.assertEqual(len(app.requests), 500)

    # As long as a rule may have it, whatever the size of our buffers.
    def test_the_words_of_a_rule_arrive_whole(self):
        words = "long " * 13_107
        action = f"{{reject: {{status: 503, body: '{words}'}}}}"
        rules = f"[{{name: one, per: ip, limit: 1/1h, action: {action}}}]"
        with self.gateway(self.upstream(), rules=rules).connect() as client:
            self.assertEqual(client.get().status, 200)
            for _ in range(2):
                refused = client.get()
                self.assertEqual((refused.status, refused.body), (503, words.encode()))

    def test_only_the_answers_that_a_rule_names_count(self):
        status = ["401 Unauthorized"]
        app = self.upstream(lambda _, wire: wire.send(reply(b"", status[0])) or True)
        rules = "[{name: failed, per: ip, limit: 2/1h, count: {status: [401]}}]"
        front = self.gateway(app, rules=rules)
        status[0] = "200 OK"
        self.assertEqual(self.statuses(front, 5), [200] * 5)
        status[0] = "401 Unauthorized"
        self.assertEqual(self.statuses(front, 4), [401, 401, 429, 429])

    def test_shadow_only_tells(self):
        rules = "[{name: quiet, per: ip, limit: 1/1h, action: shadow}]"
        front = self.gateway(self.upstream(), rules=rules, more="access_log: {file: access.log}")
        self.assertEqual(self.statuses(front, 5), [200] * 5)
        wait_until(lambda: self.log().count("\n") == 5, "all are logged")
        self.assertEqual(self.log().count("shadow_rejected"), 4)  # the operator, not the client

    def test_drop_says_nothing(self):
        rules = "[{name: harsh, per: ip, limit: 1/1h, action: drop}]"
        front = self.gateway(self.upstream(), rules=rules)
        with front.connect() as client:
            self.assertEqual(client.get().status, 200)
            client.send(get())
            self.assertTrue(client.is_closed())

    def test_a_block_lasts_also_where_the_limit_would_not(self):
        rules = "[{name: login, per: ip, limit: 5/50ms, block: {duration: 1h}}]"
        front = self.gateway(self.upstream(), rules=rules)
        with front.connect() as client:
            wait_until(lambda: client.get().status == 429, "it is blocked")
            end = time.monotonic() + 0.2
            while time.monotonic() < end:
                self.assertEqual(client.get().status, 429)

    def test_rules_know_the_client_behind_trusted_proxies(self):
        front = self.gateway(
            self.upstream(),
            rules="[{name: one, per: ip, limit: 1/1h}]",
            more="clients: {trusted_proxies: [127.0.0.0/8]}",
        )
        for _ in range(2):
            statuses = [front.get("/", f"X-Forwarded-For: 10.0.0.{i}").status for i in (1, 2)]
        self.assertEqual(statuses, [429, 429])
        self.assertEqual(front.get("/", "X-Forwarded-For: 10.0.0.3").status, 200)

    # The path has one spelling for limits and routes: others do not get around them.
    def test_other_spellings_of_a_path_are_the_same_path(self):
        rules = "[{name: login, match: {path: /login}, per: ip, limit: 1/1h}]"
        front = self.gateway(self.upstream(), rules=rules)
        with front.connect() as client:
            self.assertEqual(client.get("/login").status, 200)
            for path in ("/login", "/%6cogin", "/x/../login", "/./login", "//login", "/login?a"):
                self.assertEqual(client.get(path).status, 429, path)


class UnderWay(GatewayTest):
    """Rules about requests that take their time."""

    def setUp(self):
        super().setUp()
        self.finish = threading.Semaphore(0)

    def slow(self):
        def serve(request, wire):
            if "slow" in request.target:
                self.finish.acquire(timeout=PATIENCE)
            wire.send(reply(b"done"))
            return True

        app = self.upstream(serve)
        self.addCleanup(self.finish.release, 1000)  # before it is stopped
        return app

    CONCURRENT = "[{name: slots, per: ip, limit: {max_concurrent: 2}}]"

    def occupied(self, front, app, count=2):
        clients = [front.connect() for _ in range(count)]
        for client in clients:
            self.addCleanup(client.close)
            client.send(get("/slow"))
        wait_until(lambda: len(app.requests) >= count, "they are under way")
        return clients

    def test_a_slot_is_free_at_the_end_of_the_answer(self):
        app = self.slow()
        front = self.gateway(app, rules=self.CONCURRENT)
        first, _ = self.occupied(front, app)
        self.assertEqual(front.get("/").status, 429)
        self.finish.release(2)
        self.assertEqual(first.answer().status, 200)
        wait_until(lambda: front.get("/").status == 200, "there is room again")

    def test_a_slot_is_free_when_its_client_leaves(self):
        app = self.slow()
        front = self.gateway(app, rules=self.CONCURRENT)
        first, _ = self.occupied(front, app)
        self.assertEqual(front.get("/").status, 429)
        first.close()
        wait_until(lambda: front.get("/").status == 200, "there is room again", 10)

    def test_a_slot_is_free_when_its_client_leaves_in_the_middle_of_the_answer(self):
        more = threading.Event()

        def serve(request, wire):
            if request.target != "/slow":
                return wire.send(reply()) or True
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
            return more.wait(PATIENCE) and False

        app = self.upstream(serve)
        front = self.gateway(app, rules=self.CONCURRENT)
        first, second = self.occupied(front, app)
        self.assertEqual(first.head().status, 200)
        self.assertEqual(second.head().status, 200)
        self.assertEqual(front.get("/").status, 429)
        first.close()
        wait_until(lambda: front.get("/").status == 200, "there is room again", 10)
        more.set()

    # A lease that nobody renews would run out under a request that takes longer.
    def test_a_slot_is_taken_as_long_as_the_answer_lasts(self):
        def serve(request, wire):
            if request.target != "/slow":
                return wire.send(reply()) or True
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlo")
            self.finish.acquire(timeout=PATIENCE)
            return wire.send(b"ng") or True

        app = self.upstream(serve)
        self.addCleanup(self.finish.release, 1000)  # before it is stopped
        rules = "[{name: s, per: ip, limit: {max_concurrent: 1, slot_ttl: 1s}}]"
        front = self.gateway(app, rules=rules)
        (slow,) = self.occupied(front, app, 1)
        end = time.monotonic() + 3.5
        while time.monotonic() < end:
            self.assertEqual(front.get("/").status, 429)
        self.finish.release()
        answer = slow.answer()
        self.assertEqual((answer.status, answer.body), (200, b"long"))
        wait_until(lambda: front.get("/").status == 200, "there is room again", 10)

    QUEUE = (
        "[{name: smooth, match: {path: /q}, per: ip, limit: 2/1s, algorithm: leaky_bucket, "
        "burst: 1, action: {queue: {max_delay: 1m, max_queued: 3}}}]"
    )

    def test_a_queue_holds_requests_and_refuses_those_that_find_no_place(self):
        app = self.upstream()
        front = self.gateway(app, rules=self.QUEUE)
        # The first response comes before the others are sent: two workers read their clocks at the
        # start of a turn, and a request of an instant before the first one would find a queue that
        # is longer by the difference.
        begin = time.monotonic()
        self.assertEqual(front.get("/q").status, 200)
        clients = [front.connect() for _ in range(4)]
        for client in clients:
            client.send(get("/q"))
        statuses = sorted(client.answer().status for client in clients)
        self.assertEqual(statuses, [200, 200, 200, 429])
        self.assertGreaterEqual(time.monotonic() - begin, 1.5)
        for client in clients:
            client.close()


class Leaving(AdminTest):
    INTERVAL = 5

    # From the end of the queue: the turn of whoever left is the next one's. With the turns of all
    # three lost, the fifth would be served after four intervals.
    def test_whoever_leaves_the_queue_is_not_passed_on(self):
        app = self.upstream()
        front = self.admin(app, rules=UnderWay.QUEUE.replace("2/1s", f"1/{self.INTERVAL}s"))
        held = lambda: self.page(front).sum("sluice_requests_queued")
        begin = time.monotonic()
        self.assertEqual(front.get("/q").status, 200)
        clients = []
        for number in range(3):
            clients.append(front.connect())
            clients[-1].send(get("/q"))
            wait_until(lambda: held() == number + 1, "it is held behind the others")
        self.assertEqual(front.get("/q").status, 429)
        while clients:
            clients.pop().close()
            wait_until(lambda: held() == len(clients), "its place is free")
        self.assertLess(time.monotonic() - begin, self.INTERVAL, "too slow to tell anything")
        self.assertEqual(front.get("/q").status, 200)
        served = time.monotonic() - begin
        self.assertGreaterEqual(served, self.INTERVAL * 0.9)
        self.assertLess(served, self.INTERVAL * 2)
        self.assertEqual(len(app.requests), 2)


class SlowClients(GatewayTest):
    TIMES = "gateway: {header_timeout: 300ms, keepalive_timeout: 300ms}"

    def closed_after(self, client, least, send=b""):
        begin = time.monotonic()
        while True:
            client.sock.settimeout(0.05)
            try:
                if not client.more():
                    break
            except TimeoutError:
                if send:
                    client.send(send)
            except ConnectionError:
                break
            self.assertLess(time.monotonic() - begin, PATIENCE)
        # The wheel of timers may be a tick early or late, and so may the clocks.
        self.assertGreaterEqual(time.monotonic() - begin, least * 0.9)
        return client.pending

    # The time is for the whole head, however regularly its bytes come.
    def test_a_head_that_comes_drop_by_drop(self):
        front = self.gateway(self.upstream(), more=self.TIMES)
        with front.connect() as client:
            client.send(b"GET / HTTP/1.1\r\nHost: a\r\nX: ")
            self.assertIn(b" 408 ", self.closed_after(client, 0.3, b"a"))

    def test_a_head_that_began_with_the_last_request(self):
        more = self.TIMES.replace("keepalive_timeout: 300ms", "keepalive_timeout: 1m")
        with self.gateway(self.upstream(), more=more).connect() as client:
            self.assertEqual(client.ask(get() + b"GET / HT").status, 200)
            self.assertIn(b" 408 ", self.closed_after(client, 0.3))

    def test_a_connection_without_a_request(self):
        front = self.gateway(self.upstream(), more=self.TIMES)
        with front.connect() as client:
            self.assertEqual(self.closed_after(client, 0.3), b"")
        with front.connect() as client:
            client.get()
            self.assertEqual(self.closed_after(client, 0.3), b"")

    def test_a_body_that_comes_drop_by_drop(self):
        app = self.upstream(kind=EarlyUpstream, serve=lambda _, wire: wire.until(b"never"))
        front = self.gateway(app, more="gateway: {min_upload_rate: 1000}")
        with front.connect() as client:
            client.send(get("/", "Content-Length: 100000", method="POST"))
            self.assertIn(b" 408 ", self.closed_after(client, 9, b"aaaa"))

    # Slow, but not idle: an upstream may take its time with a body that it takes.
    def test_an_upstream_that_takes_a_body_slowly_is_no_failure(self):
        size = 48 << 20

        def serve(_, wire):
            left = size - len(wire.pending)
            end = time.monotonic() + 12
            while left:
                left -= len(wire.sock.recv(min(left, 65536)))
                if time.monotonic() < end and left < size - (1 << 20):
                    time.sleep(0.05)
            wire.send(reply(b"took it"))

        front = self.gateway(self.upstream(serve, EarlyUpstream))
        with front.connect() as client:
            client.send(get("/", f"Content-Length: {size}", method="POST"))
            client.send(b"a" * size)
            self.assertEqual(client.answer().body, b"took it")

    def test_an_answer_that_nobody_takes(self):
        app = self.upstream(lambda _, wire: wire.send(reply(b"x" * (16 << 20))) or True)
        more = "gateway: {download_rate_interval: 300ms}\naccess_log: {file: access.log}"
        front = self.gateway(app, more=more)
        with front.connect(receive_buffer=4096) as client:
            client.send(get())
            wait_until(lambda: app.requests, "it is passed on")
            wait_until(lambda: not front.connections(), "the gateway gives up")
        wait_until(lambda: "the client does not read the response" in self.log(), "the log tells")

    # Some bytes now and then would hold a server and a slot for ever.
    def test_an_answer_that_is_taken_too_slowly(self):
        app = self.upstream(lambda _, wire: wire.send(reply(b"x" * (16 << 20))) or True)
        rules = "[{name: few, per: ip, limit: {max_concurrent: 1}}]"
        more = (
            "gateway: {download_rate_interval: 500ms, min_download_rate: 1000000}\n"
            "access_log: {file: access.log}"
        )
        front = self.gateway(app, rules=rules, more=more)
        with front.connect(receive_buffer=4096) as client:
            client.send(get())
            end = time.monotonic() + PATIENCE
            while front.connections() and time.monotonic() < end:
                try:
                    client.sock.recv(512)
                except ConnectionError:
                    break
                time.sleep(0.05)
        wait_until(lambda: "reads the response too slowly" in self.log(), "the log tells")
        wait_until(lambda: front.get().status == 200, "the slot is free")

    def test_a_connection_has_so_many_requests(self):
        front = self.gateway(self.upstream(), more="gateway: {keepalive_requests: 2}")
        with front.connect() as client:
            self.assertIsNone(client.get().get("connection"))
            self.assertEqual(client.get().get("connection"), "close")
            self.assertTrue(client.is_closed())

    def test_heads_have_the_size_that_is_configured(self):
        sizes = "max_request_line_size: 1KiB, max_headers_size: 2KiB, max_headers_count: 5"
        more = f"gateway: {{{sizes}}}"
        front = self.gateway(self.upstream(), more=more)
        self.assertEqual(front.get("/" + "a" * 1100).status, 414)
        self.assertEqual(front.get("/", "A: " + "a" * 2100).status, 431)
        self.assertEqual(front.get("/", *["A: a"] * 5).status, 431)
        self.assertEqual(front.get("/", *["A: a"] * 4).status, 200)
        # Also those that were understood by the old limits, once there are new ones.
        with open(front.file, encoding="utf-8") as stream:
            text = stream.read()
        self.file("sluice.yaml", text.replace("max_headers_size: 2KiB", "max_headers_size: 4KiB"))
        front.says("configuration reloaded")
        wait_until(lambda: front.get("/", "A: " + "a" * 2100).status == 200, "more is allowed")

    def test_a_body_rate_below_a_second_is_heeded(self):
        more = "gateway: {min_upload_rate: 1000, upload_rate_interval: 200ms}"
        front = self.gateway(self.upstream(), more=more)
        with front.connect() as client:
            client.send(get("/", "Content-Length: 100000", method="POST") + b"a")
            self.assertEqual(client.answer().status, 408)

    def test_one_address_has_so_many_connections(self):
        text = self.configuration(self.upstream(), more="gateway: {max_connections_per_ip: 2}")
        front = self.serve(text.replace("workers: 2", "workers: 1"))
        with front.connect() as first, front.connect() as second, front.connect() as third:
            self.assertEqual([first.get().status, second.get().status], [200, 200])
            self.assertTrue(third.is_closed())
            first.close()
            wait_until(lambda: self.is_served(front), "there is room again")

    # The system spreads connections over workers: each of them by itself would let in three.
    def test_one_address_has_so_many_connections_over_all_workers(self):
        front = self.gateway(
            self.upstream(), workers=2, more="gateway: {max_connections_per_ip: 3}"
        )
        clients = [front.connect() for _ in range(40)]
        for client in clients:
            self.addCleanup(client.close)
        self.assertEqual(sum(self.is_served(one) for one in clients), 3)
        for client in clients:
            client.close()
        wait_until(lambda: self.is_served(front), "there is room again")

    def test_a_worker_has_so_many_connections(self):
        more = "gateway: {max_connections_per_worker: 2}"
        front = self.gateway(self.upstream(), workers=1, more=more)
        with front.connect() as first, front.connect() as second, front.connect() as third:
            self.assertEqual([first.get().status, second.get().status], [200, 200])
            self.assertTrue(third.is_closed())
            first.close()
            wait_until(lambda: self.is_served(front), "there is room again")

    # Slow, but not idle: as long as it takes something, it has its time.
    def test_an_answer_of_our_own_that_is_taken_slowly_arrives_whole(self):
        words = "long " * 13_107
        rules = f"[{{name: one, per: ip, limit: 1/1h, action: {{reject: {{body: '{words}'}}}}}}]"
        front = self.gateway(
            self.upstream(), rules=rules, workers=1, more="gateway: {download_rate_interval: 400ms}"
        )
        count = 200  # answers, so many that the system cannot hold them all
        with front.connect(receive_buffer=4096) as client:
            client.get()
            client.send(get() * count)
            begin = time.monotonic()
            for _ in range(count):
                self.assertEqual(client.answer().body, words.encode())
                if time.monotonic() < begin + 2:
                    time.sleep(0.05)
            self.assertGreater(time.monotonic() - begin, 2)

    def is_served(self, front):
        try:
            return front.get().status == 200
        except (EOFError, ConnectionError):
            return False


if __name__ == "__main__":
    unittest.main()
