"""The admin listener of the real gateway: metrics, probes, status, and the end."""

import os
import re
import signal
import socket
import threading
import time
import unittest

from admin_support import AdminTest, Page
from gateway_support import get, post, reply, wait_until
from support import sluice


class Paths(AdminTest):
    def test_every_path_answers(self):
        front = self.admin(self.upstream())
        listing = self.ask(front, "/")
        self.assertEqual(listing.get("content-type"), "text/plain; charset=utf-8")
        for path in re.findall(r"^(/\S*)", listing.body.decode(), re.M):
            for method in ("GET", "HEAD"):
                answer = self.ask(front, path, method=method)
                self.assertEqual((answer.status, path), (200, path))
                self.assertEqual(answer.get("cache-control"), "no-store")
                self.assertEqual(answer.get("x-content-type-options"), "nosniff")
        self.assertProblem(self.ask(front, "/nothing"), 404)
        self.assertProblem(self.ask(front, "/metrics", method="DELETE"), 405)
        self.assertEqual(self.ask(front, "/metrics", method="DELETE").get("allow"), "GET, HEAD")

    def test_metrics_come_in_both_forms(self):
        front = self.admin(self.upstream())
        front.get()
        text = self.ask(front, "/metrics")
        self.assertEqual(text.get("content-type"), "text/plain; version=0.0.4; charset=utf-8")
        Page(text.body.decode())
        accept = "Accept: application/openmetrics-text; version=1.0.0,text/plain;q=0.5"
        other = self.ask(front, "/metrics", accept)
        self.assertIn("application/openmetrics-text", other.get("content-type"))
        self.assertTrue(other.body.endswith(b"# EOF\n"))

    def test_bad_input_is_told_and_closed(self):
        front = self.admin(self.upstream())
        for bytes_, status in (
            (b"nonsense\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\n\r\n", 400),
            (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n", 414),
            (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
            (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n", 413),
        ):
            with self.connect(front) as client:
                client.send(bytes_)
                self.assertProblem(client.answer(), status)
                self.assertTrue(client.is_closed())
        self.assertEqual(self.ask(front, "/livez").status, 200)

    def test_a_unix_socket_serves_as_well(self):
        path = os.path.join(self.folder, "admin.sock")
        self.admin(self.upstream(), listen=f"unix:{path}")
        ask = lambda: sluice("status", "--server", f"unix:{path}")
        wait_until(lambda: ask().code == 0, "it is ready")
        self.assertTrue(ask().out.startswith("serving"))


class Counts(AdminTest):
    RULES = """
  - {name: five, match: {path: /five/**}, per: ip, limit: 5/1h}
  - {name: dear, match: {path: /dear}, per: ip, limit: 100/1h, cost: 3}
  - {name: shade, match: {path: /five/**}, per: ip, limit: 2/1h, action: shadow}
"""

    def test_everything_adds_up_over_all_workers(self):
        app = self.upstream(lambda request, wire: wire.send(reply(b"12345")) or True)
        log = os.path.join(self.folder, "access.log")
        front = self.admin(app, rules=self.RULES, more=f"access_log: {{file: '{log}'}}")
        statuses = []

        def client(number):
            for i in range(5):
                statuses.append(front.get(f"/five/{number}-{i}").status)

        threads = [threading.Thread(target=client, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for _ in range(4):
            statuses.append(front.get("/dear").status)
        with front.connect() as one:
            statuses.append(one.ask(post(b"x" * 1000, path="/free")).status)
        self.assertEqual((statuses.count(200), statuses.count(429)), (10, 35))

        # An answer is there before its request is counted.
        wait_until(lambda: self.page(front).sum("sluice_requests_total") == 45, "all are counted")
        page = self.page(front)
        requests = {c: page.sum("sluice_requests_total", code=c) for c in ("2xx", "4xx", "none")}
        self.assertEqual(requests, {"2xx": 10, "4xx": 35, "none": 0})
        decisions = lambda rule, word: page.sum(
            "sluice_decisions_total", rule=rule, decision=word
        )
        self.assertEqual((decisions("five", "allowed"), decisions("five", "rejected")), (5, 35))
        shade = (decisions("shade", "allowed"), decisions("shade", "shadow_rejected"))
        self.assertEqual(shade, (2, 3))
        self.assertEqual((decisions("dear", "allowed"), decisions("", "allowed")), (4, 1))
        self.assertEqual(page.sum("sluice_hits_total", rule="dear"), 12)
        self.assertEqual(page.sum("sluice_hits_total", rule="five"), 40)
        self.assertEqual(page.sum("sluice_rejections_total", reason="limited"), 35)
        self.assertEqual(page.sum("sluice_rejections_total"), 35)
        self.assertEqual(page.sum("sluice_request_duration_seconds_count"), 45)
        self.assertEqual(page.sum("sluice_request_body_bytes_total"), 1000)
        self.assertEqual(
            page.sum("sluice_upstream_requests_total", upstream="app", result="2xx"), 10
        )
        self.assertEqual(page.sum("sluice_upstream_requests_total"), 10)
        self.assertEqual(page.sum("sluice_upstream_duration_seconds_count"), 10)
        self.assertEqual(page.sum("sluice_upstream_servers_healthy"), 1)
        self.assertGreaterEqual(page.sum("sluice_upstream_connections"), 1)
        # Of each worker the first decision is timed, and every 64th behind it.
        self.assertIn(page.sum("sluice_decision_duration_seconds_count"), (1, 2))
        self.assertEqual(page.sum("sluice_requests_in_flight"), 0)
        self.assertEqual(page.sum("sluice_access_log_lines_total", result="written"), 45)
        self.assertGreaterEqual(page.sum("sluice_store_operations_total", op="decide"), 44)
        self.assertEqual(page.sum("sluice_build_info"), 1)
        self.assertEqual(page.sum("sluice_build_info", revision=""), 0, "it has one")
        self.assertGreater(page.sum("process_resident_memory_bytes"), 0)

        status = self.status(front)
        self.assertEqual((status["state"], status["workers"]), ("serving", 2))
        self.assertEqual(status["requests"]["4xx"], 35)
        self.assertEqual(status["rejections"], {"limited": 35})
        self.assertEqual(status["decisions"]["rejected"], 35)
        self.assertEqual(status["configuration"]["rules"], 3)
        server = status["upstreams"][0]["servers"][0]
        self.assertEqual((server["address"], server["healthy"]), (app.address, True))

    # Workers that shared a cell would lose some.
    def test_of_a_flood_not_one_is_lost(self):
        front = self.admin(self.upstream(), rules="[{name: once, per: ip, limit: 1/1h}]")
        clients, requests = 8, 1000

        def flood():
            with front.connect() as client:
                sender = threading.Thread(target=client.send, args=(get() * requests,))
                sender.start()
                for _ in range(requests):
                    client.answer()
                sender.join()

        threads = [threading.Thread(target=flood) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wait_until(lambda: self.page(front).sum("sluice_requests_in_flight") == 0, "all are over")
        page = self.page(front)
        total = clients * requests
        self.assertEqual(page.sum("sluice_requests_total"), total)
        self.assertEqual(page.sum("sluice_hits_total", rule="once"), total)
        self.assertEqual(page.sum("sluice_rejections_total"), total - 1)
        self.assertEqual(page.sum("sluice_request_duration_seconds_count"), total)

    def test_gauges_show_what_is_under_way(self):
        finish = threading.Event()
        app = self.waiting(finish, b"done")
        front = self.admin(app)
        with front.connect() as client:
            client.send(get())
            wait_until(lambda: app.requests, "it is under way")
            page = self.page(front)
            self.assertEqual(page.sum("sluice_requests_in_flight", listener="gateway"), 1)
            self.assertEqual(page.sum("sluice_connections", listener="gateway"), 1)
            self.assertEqual(self.status(front)["upstreams"][0]["servers"][0]["in_use"], 1)
            finish.set()
            client.answer()
        wait_until(lambda: self.page(front).sum("sluice_connections") == 0, "it is gone")
        self.assertEqual(self.page(front).sum("sluice_requests_in_flight"), 0)

    def test_held_requests_show_and_those_that_leave_do_not(self):
        rules = "[{name: q, per: ip, limit: {rate: 1/1h, algorithm: leaky_bucket},"
        rules += " action: {queue: {max_delay: 2h}}}]"
        front = self.admin(self.upstream(), rules=rules)
        front.get()
        with front.connect() as held:
            held.send(get())
            wait_until(lambda: self.page(front).sum("sluice_requests_queued") == 1, "it is queued")
        wait_until(lambda: self.page(front).sum("sluice_requests_queued") == 0, "it has left")
        page = self.page(front)
        self.assertEqual(page.sum("sluice_requests_total", code="none"), 1)

    def test_servers_in_trouble_show(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            nobody = "127.0.0.1:%d" % taken.getsockname()[1]
        options = "max_consecutive_failures: 1, ejection_time: 1h, retries: 0"
        front = self.admin(nobody, of_upstream=options)
        for _ in range(20):  # by connection: until each worker has tried
            self.assertEqual(front.get().status, 502)
        page = self.page(front)
        self.assertEqual(page.sum("sluice_upstream_requests_total", result="failed"), 20)
        self.assertEqual(page.sum("sluice_upstream_servers_healthy"), 0)
        self.assertEqual(page.sum("sluice_requests_total", code="5xx"), 20)
        self.assertFalse(self.status(front)["upstreams"][0]["servers"][0]["healthy"])

    def test_blocks_are_counted(self):
        rules = "[{name: b, per: ip, limit: 1/1h, block: {duration: 1h}}]"
        front = self.admin(self.upstream(), rules=rules)
        self.assertEqual([front.get().status for _ in range(3)], [200, 429, 429])
        wait_until(lambda: self.page(front).sum("sluice_blocks_total") == 1, "it is counted")
        self.assertEqual(self.status(front)["blocks"], 1)
        page = self.page(front)
        self.assertEqual(page.sum("sluice_rejections_total", reason="blocked"), 1)

    def test_connections_that_find_no_room_are_counted(self):
        more = "gateway: {max_connections_per_worker: 1}"
        front = self.admin(self.upstream(), workers=1, more=more)
        with front.connect() as first, front.connect() as second:
            self.assertEqual(first.get().status, 200)
            self.assertTrue(second.is_closed())
        turned_away = "sluice_connections_rejected_total"
        self.assertEqual(self.page(front).sum(turned_away, listener="gateway"), 1)
        self.assertEqual(self.status(front)["connections_rejected"], 1)
        with front.connect() as idle:
            self.assertEqual(idle.get().status, 200)
            time.sleep(1.1)  # from then on it is idle
            self.assertEqual(front.get().status, 200)
        self.assertEqual(self.page(front).sum("sluice_connections_evicted_total"), 1)
        self.assertEqual(self.status(front)["connections_evicted"], 1)
        shown = sluice("status", "--server", self.url(front)).out
        self.assertRegex(shown, r"\nconnections +\d, 1 evicted, 1 rejected\n")

    # By the word of a proxy, of a name that identifies clients, and of the client's address.
    def test_headers_that_are_not_passed_on_are_counted(self):
        keys = self.file("keys.json", '{"keys": []}')
        app = self.upstream()
        front = self.admin(
            app,
            more="clients: {client_ip_header: cf-connecting-ip, trusted_proxies: [192.0.2.1], "
            f"api_keys: {{file: '{keys}', header: x-api-key}}}}",
        )
        dropped = lambda: self.page(front).sum("sluice_request_headers_dropped_total")
        front.get("/", "Accept: */*", "X-Request-Id: mine", "Via: 1.1 other")
        self.assertEqual(dropped(), 0)
        for count, header in enumerate(
            (
                "X-Forwarded-For: 192.0.2.7",
                "X-Real-IP: 192.0.2.7",
                "X_Request_Id: mine",
                "X_Api_Key: secret",
                "CF-Connecting-IP: 192.0.2.7",
                "CF_Connecting_IP: 192.0.2.7",
            )
        ):
            front.get("/", header)
            self.assertEqual(dropped(), count + 1, header)
            self.assertNotIn(header.split(": ")[1], str(app.requests[-1]))

    # Each request has a key of its own under every rule; there is no route, so that no server is
    # needed for it.
    def test_a_flood_of_new_keys_shows_that_the_table_is_full(self):
        rules = "\n".join(
            f"  - {{name: r{i}, per: header.x-key, limit: {{rate: 1/1h, burst: {i + 1}}}}}"
            for i in range(32)
        )
        text = self.configuration(self.upstream(), rules="\n" + rules)
        text = text.replace("path: /**", "path: /nothing/else")
        text = text.replace("listen: {", "listen: {admin: '127.0.0.1:0', ")
        front = self.serve(text)
        front.says("admin on")
        front.admin_port = int(front.said.split("admin on 127.0.0.1:")[1].split()[0])
        self.assertFalse(self.status(front)["keys"]["full"])

        requests, batch, answers = 9000, 500, 0
        with front.connect() as client:
            for first in range(0, requests, batch):
                keys = range(first, first + batch)
                client.send(b"".join(get("/flood", f"X-Key: {key}") for key in keys))
                while answers < first + batch:
                    self.assertTrue(client.more())
                    answers += client.pending.count(b"HTTP/1.1 4")
                    client.pending = client.pending[-9:]  # of an answer that begins there
        keys = self.status(front)["keys"]
        self.assertTrue(keys["full"])
        self.assertGreater(keys["used"], 0.9 * keys["capacity"])
        self.assertGreater(keys["approximated"], 1000)
        self.assertGreater(keys["cells_used"], 0)
        page = self.page(front)
        full = lambda result: page.sum("sluice_table_full_decisions_total", result=result)
        self.assertEqual(full("approximated"), keys["approximated"])
        self.assertEqual((full("allowed"), full("rejected")), (0, 0))
        self.assertGreater(page.sum("sluice_table_fill_ratio"), 0.9)
        self.assertGreater(page.sum("sluice_table_shared_fill_ratio"), 0)
        shown = self.ok("status", "--server", self.url(front)).out
        count = keys["approximated"]
        warning = rf"\nwarning +the counter table is full; .*: {count} approximated, "
        self.assertRegex(shown, warning)

    def test_no_label_tells_who_asked(self):
        rules = "[{name: k, per: [header.x-key], limit: 5/1h}]"
        front = self.admin(self.upstream(), rules=rules)
        for i in range(20):
            front.get(f"/path-of-{i}", f"X-Key: secret-{i}", f"X-Forwarded-For: 203.0.113.{i}")
        page = self.ask(front, "/metrics").body + self.ask(front, "/v1/status").body
        for word in (b"secret", b"path-of", b"203.0.113", b"x-key"):
            self.assertNotIn(word, page)
        self.assertEqual(self.page(front).sum("sluice_table_keys"), 20)
        keys = self.status(front)["keys"]
        self.assertEqual((keys["used"], keys["evictions"]), (20, 0))
        self.assertGreater(keys["capacity"], 100_000)

    def test_a_reload_keeps_counts_and_is_counted(self):
        app = self.upstream()
        front = self.admin(app, rules="[{name: a, per: ip, limit: 9/1h}]")
        front.get()
        path = os.path.join(self.folder, "sluice.yaml")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIsNone(self.status(front)["configuration"]["last_reload"])
        replace = lambda new: os.replace(self.file("new.yaml", new), path)
        replace(text.replace("name: a", "name: b"))
        front.says("configuration reloaded")
        wait_until(lambda: front.get().status == 200, "it serves")
        replace("rules: [{nam: x}]\n")
        front.says("kept the old")
        page = self.page(front)
        self.assertEqual(page.sum("sluice_config_reloads_total", result="success"), 1)
        self.assertEqual(page.sum("sluice_config_reloads_total", result="error"), 1)
        self.assertEqual(page.sum("sluice_decisions_total", rule="a", decision="allowed"), 1)
        self.assertGreaterEqual(page.sum("sluice_decisions_total", rule="b"), 1)
        self.assertEqual(
            page.sum("sluice_upstream_requests_total"), page.sum("sluice_requests_total")
        )
        last = self.status(front)["configuration"]["last_reload"]
        self.assertEqual(last["result"], "error")


class Ends(AdminTest):
    def test_not_ready_at_once_then_the_end(self):
        finish = threading.Event()
        app = self.waiting(finish, b"late")
        front = self.admin(app)
        self.assertEqual(self.ask(front, "/readyz").body, b"ok\n")
        with front.connect() as client:
            client.send(get())
            wait_until(lambda: app.requests, "it is under way")
            front.signal(signal.SIGTERM)
            front.says("draining")
            answer = self.ask(front, "/readyz?verbose")
            self.assertEqual(answer.status, 503)
            self.assertIn(b"[-] not draining", answer.body)
            self.assertEqual(self.ask(front, "/livez").status, 200)
            self.assertEqual(self.status(front)["state"], "draining")
            done = sluice("status", "--server", self.url(front))
            self.assertEqual(done.code, 1)
            self.assertTrue(done.out.startswith("draining"))
            self.assertEqual(self.page(front).sum("sluice_requests_in_flight"), 1)
            finish.set()
            self.assertEqual(client.answer().body, b"late")
        self.assertEqual(front.wait(), 0)

    def test_during_the_delay_it_serves_as_before(self):
        front = self.admin(self.upstream(), more="drain: {delay: 1h}")
        front.signal(signal.SIGTERM)
        front.says("draining in 1h")
        self.assertEqual(self.ask(front, "/readyz").status, 503)
        answer = front.get()  # on a new connection
        self.assertEqual((answer.status, answer.get("connection")), (200, None))
        front.signal(signal.SIGTERM)
        self.assertEqual(front.wait(), 0)

    def test_after_the_delay_it_ends(self):
        front = self.admin(self.upstream(), more="drain: {delay: 50ms}")
        front.signal(signal.SIGTERM)
        self.assertEqual(front.wait(), 0)
        self.assertIn("draining in 50ms", front.said)

    def test_what_is_under_way_has_a_bounded_time(self):
        stuck = threading.Event()
        self.addCleanup(stuck.set)
        app = self.waiting(stuck, b"never")
        front = self.admin(app, more="drain: {timeout: 50ms}")
        with front.connect() as client:
            client.send(get())
            wait_until(lambda: app.requests, "it is under way")
            front.signal(signal.SIGTERM)
            self.assertEqual(front.wait(), 0)
        stuck.set()

    def test_the_access_log_is_opened_anew(self):
        log = os.path.join(self.folder, "access.log")
        front = self.admin(self.upstream(), more=f"access_log: {{file: '{log}'}}")

        def lines(path):
            if not os.path.exists(path):
                return []
            with open(path, encoding="utf-8") as file:
                return file.read().splitlines()

        front.get("/before")
        wait_until(lambda: len(lines(log)) == 1, "it is logged")
        os.rename(log, log + ".1")
        front.signal(signal.SIGUSR1)
        front.says("access log reopened")
        wait_until(lambda: os.path.exists(log), "it is there again")
        # Each worker changes files between two of its turns.
        for _ in range(8):
            front.get("/after")
        wait_until(lambda: len(lines(log)) + len(lines(log + ".1")) == 9, "all are logged")
        wait_until(lambda: front.get("/late") and "/late" in str(lines(log)), "in the new file")
        self.assertIn("/before", lines(log + ".1")[0])

    def test_lines_that_cannot_be_written_are_counted_and_hurt_nobody(self):
        front = self.admin(self.upstream(), more="access_log: {file: /dev/full}")
        for _ in range(5):
            self.assertEqual(front.get().status, 200)
        name = "sluice_access_log_lines_total"
        wait_until(lambda: self.page(front).sum(name, result="dropped") == 5, "all are counted")
        self.assertEqual(self.page(front).sum(name, result="written"), 0)

    def test_an_access_log_that_cannot_be_opened_changes_nothing(self):
        folder = os.path.join(self.folder, "logs")
        os.mkdir(folder)
        log = os.path.join(folder, "access.log")
        front = self.admin(self.upstream(), more=f"access_log: {{file: '{log}'}}")
        os.rename(folder, folder + ".1")
        front.signal(signal.SIGUSR1)
        front.says(f"kept the old access log: cannot open {log}: No such file")
        front.get("/kept")
        with open(os.path.join(folder + ".1", "access.log"), encoding="utf-8") as old:
            lines = []
            wait_until(
                lambda: lines.append(old.read()) or "/kept" in "".join(lines), "it is logged"
            )


if __name__ == "__main__":
    unittest.main()
