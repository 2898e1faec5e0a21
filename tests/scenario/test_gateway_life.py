"""Start, reload, drain and end of the gateway, and its memory."""

import contextlib
import os
import resource
import signal
import socket
import subprocess
import threading
import time
import unittest

from gateway_support import PATIENCE, Client, GatewayTest, get, post, reply, wait_until
from support import BINARY, sluice


class Load:
    """Clients that ask as fast as they can, each on a connection that it keeps while it may."""

    def __init__(self, front, clients=8):
        self.front = front
        self.answers = []
        self.failures = []
        self.turned_away = 0
        self.reset = 0
        self.ends = False  # the gateway was told to
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.run) for _ in range(clients)]
        for thread in self.threads:
            thread.start()

    def run(self):
        while not self.over.is_set():
            try:
                client = self.front.connect()
            except ConnectionRefusedError:  # nobody listens any more, and that is no failure
                self.turned_away += 1
                return
            with client:
                self.ask_until_told_to_stop(client)

    def ask_until_told_to_stop(self, client):
        is_new = True
        while not self.over.is_set():
            try:
                answer = client.get()
            except (EOFError, OSError) as failure:
                # The system resets what came between the last look at the queue and its end.
                # Nobody had taken it; what was taken is answered.
                if self.ends and is_new and isinstance(failure, ConnectionError):
                    self.reset += 1
                else:
                    self.failures.append(repr(failure))
                return
            is_new = False
            self.answers.append((answer.status, answer.body))
            if answer.get("connection") == "close":
                return

    def has_answers(self, count):
        goal = len(self.answers) + count
        wait_until(lambda: len(self.answers) >= goal, f"there are {count} answers more")

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join(PATIENCE)


class Reload(GatewayTest):
    def replace(self, text):
        """As editors do: a new file under the old name."""
        os.replace(self.file("new.yaml", text + "\n"), os.path.join(self.folder, "sluice.yaml"))

    def named(self, name):
        return self.upstream(lambda _, wire: wire.send(reply(name)) or True)

    def test_nobody_notices_but_by_what_is_new(self):
        a, b = self.named(b"a"), self.named(b"b")
        front = self.gateway(a)
        load = Load(front)
        load.has_answers(50)
        self.replace(self.configuration(b))  # the file is watched
        wait_until(lambda: load.answers[-1] == (200, b"b"), "the change of the file is noticed")
        for _ in range(5):
            front.signal(signal.SIGHUP)
            load.has_answers(20)
        load.end()
        self.assertEqual((load.failures, load.turned_away), ([], 0))
        self.assertEqual({status for status, _ in load.answers}, {200})

    def test_a_wrong_file_changes_nothing(self):
        front = self.gateway(self.named(b"a"))
        self.replace("rules: [{nam: x}]")
        front.says("kept the old configuration")
        self.assertRegex(front.said, r"sluice\.yaml:1:\d+")
        os.remove(os.path.join(self.folder, "sluice.yaml"))
        front.signal(signal.SIGHUP)
        wait_until(lambda: front.said.count("kept the old") >= 2, "the missing file is told of")
        self.assertEqual(front.get().body, b"a")

    def test_counters_survive(self):
        a = self.named(b"a")
        rules = "[{name: two, per: ip, limit: 2/1h}]"
        front = self.gateway(a, rules=rules)
        self.assertEqual([front.get().status for _ in range(3)], [200, 200, 429])
        self.replace(self.configuration(a, rules=rules.replace("2/1h", "3/1h")))
        front.says("configuration reloaded")
        wait_until(lambda: front.get().status == 200, "there is room for one more")
        self.assertEqual(front.get().status, 429)

    def test_a_request_under_way_ends_as_it_began(self):
        finish = threading.Event()
        a = self.waiting(finish, b"old")
        front = self.gateway(a)
        with front.connect() as client:
            client.send(get())
            wait_until(lambda: a.requests, "it is under way")
            self.replace(self.configuration(self.named(b"new")))
            front.says("configuration reloaded")
            finish.set()
            self.assertEqual(client.answer().body, b"old")
            self.assertEqual(client.get().body, b"new")


    # Who edits a rule does not want every server to be connected to anew.
    def test_connections_to_servers_stay(self):
        app = self.upstream()
        front = self.gateway(app, workers=1)
        edits = (
            ({"rules": "[{name: b, per: ip, limit: 9/1s}]"}, 1),
            ({"of_upstream": "response_timeout: 9s"}, 2),  # of the upstream itself: another one
        )
        with front.connect() as client:
            client.get()
            for count, (edit, connection) in enumerate(edits, 1):
                self.replace(self.configuration(app, workers=1, **edit))
                wait_until(
                    lambda: front.said.count("configuration reloaded") == count, "it is in force"
                )
                client.get()
                self.assertEqual(app.requests[-1].connection, connection)


class Ends(GatewayTest):
    def test_draining_loses_no_request(self):
        front = self.gateway(self.upstream())
        load = Load(front, 16)
        load.has_answers(200)
        load.ends = True
        front.signal(signal.SIGTERM)
        self.assertEqual(front.wait(), 0)
        load.end()
        self.assertEqual(load.failures, [])
        self.assertEqual({status for status, _ in load.answers}, {200})
        self.assertLessEqual(load.reset, 2)  # in no more than a moment

    def test_a_request_under_way_is_finished(self):
        finish = threading.Event()
        app = self.waiting(finish, b"a")
        front = self.gateway(app)
        with front.connect() as client:
            client.send(get())
            wait_until(lambda: app.requests, "it is under way")
            front.signal(signal.SIGTERM)
            front.says("draining")
            wait_until(lambda: not self.listens(front), "nobody listens any more")
            finish.set()
            answer = client.answer()
            self.assertEqual((answer.body, answer.get("connection")), (b"a", "close"))
            self.assertTrue(client.is_closed())
        self.assertEqual(front.wait(), 0)

    def test_a_second_signal_ends_at_once(self):
        stuck = threading.Event()
        app = self.upstream(lambda *_: stuck.wait(PATIENCE))
        front = self.gateway(app)
        with front.connect() as client:
            client.send(get())
            wait_until(lambda: app.requests, "it is under way")
            front.signal(signal.SIGINT)
            front.says("draining")
            begin = time.monotonic()
            front.signal(signal.SIGINT)
            self.assertEqual(front.wait(), 0)
            self.assertLess(time.monotonic() - begin, 5)
        stuck.set()

    # However quiet it is afterwards: not with the next request, which may never come.
    def test_what_is_over_is_logged_at_once(self):
        log = os.path.join(self.folder, "access.log")
        front = self.gateway(self.upstream(), more=f"access_log: {{file: '{log}'}}", workers=1)
        with front.connect() as client:
            client.get("/quiet")
            wait_until(lambda: "/quiet" in self.log(), "it is logged", seconds=10)

    # What was cut at the very end has its line in the log as well.
    def test_what_is_cut_at_the_end_is_logged(self):
        stuck = threading.Event()
        app = self.upstream(lambda *_: stuck.wait(PATIENCE))
        log = os.path.join(self.folder, "access.log")
        front = self.gateway(app, more=f"access_log: {{file: '{log}', format: json}}")
        with front.connect() as client:
            client.send(get("/cut"))
            wait_until(lambda: app.requests, "it is under way")
            front.signal(signal.SIGTERM)
            front.says("draining")
            front.signal(signal.SIGTERM)
            self.assertEqual(front.wait(), 0)
        stuck.set()
        with open(log, encoding="utf-8") as lines:
            self.assertIn("/cut", lines.read())

    def listens(self, front):
        try:
            front.connect().close()
            return True
        except OSError:
            return False

    def test_counters_survive_a_kill(self):
        text = self.configuration(
            self.upstream(),
            rules="[{name: three, per: ip, limit: 3/1h}]",
            state=f"state: {{memory: 4MiB, file: '{self.folder}/state'}}",
        )
        front = self.serve(text)
        self.assertEqual([front.get().status for _ in range(2)], [200, 200])
        front.kill()
        again = self.serve(text)
        self.assertEqual([again.get().status for _ in range(2)], [200, 429])

    # The process ends by SIGBUS all the same, but not without a word.
    def test_a_state_file_that_is_truncated_is_named(self):
        state = os.path.join(self.folder, "state")
        front = self.gateway(
            self.upstream(),
            rules="[{name: r, per: ip, limit: 5/1h}]",
            state="state: {memory: 4MiB, file: state}",
        )
        self.assertEqual(front.get().status, 200)
        resource.prlimit(front.process.pid, resource.RLIMIT_CORE, (0, 0))
        os.truncate(state, 4096)
        with front.connect() as client:
            client.send(get())
            self.assertTrue(client.is_closed())
        self.assertEqual(front.wait(), -signal.SIGBUS)
        line = f"sluice: state file '{state}': it was truncated, or its device failed"
        self.assertEqual(front.said.count(line), 1, front.said)


class Starts(GatewayTest):
    def fails(self, pattern, text=None, path=None):
        path = path or self.file("bad.yaml", text + "\n")
        done = sluice("serve", "-c", path)
        self.assertEqual(done.code, 3, done.err)
        self.assertRegex(done.err, pattern)
        self.assertRegex(done.err, r"(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z error \S")

    def test_a_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            text = self.configuration("127.0.0.1:1").replace("127.0.0.1:0", address)
            self.fails(f"{address}.*in use", text)
            self.fails(f"{address}.*in use", text.replace("workers: 2", "workers: 1"))

    # Workers share the port; two gateways by mistake do not.
    def test_a_port_of_another_gateway(self):
        text = self.configuration("127.0.0.1:1")
        front = self.serve(text)
        self.fails("in use", text.replace("127.0.0.1:0", f"127.0.0.1:{front.port}"))

    def test_a_file_that_is_missing_or_wrong(self):
        self.fails("missing.yaml", path=os.path.join(self.folder, "missing.yaml"))
        self.fails(r"bad\.yaml:1:1.*lissten", "lissten: {gateway: ':0'}\nrules: []")
        self.fails("nothing to listen on", f"rules: {self.NO_RULES}")
        admin = f"listen: {{admin: '127.0.0.1:0'}}\nrules: {self.NO_RULES}"
        self.fails(r"(?s)nothing to listen on but admin.*listen: {gateway:", admin)

    def test_a_certificate_that_is_missing_or_wrong(self):
        tls = "gateway: {tls: {certificates: [{cert_file: c.pem, key_file: c.key}]}}"
        text = self.configuration("127.0.0.1:1", more=tls)
        self.fails(r"c\.pem", text)
        self.file("c.pem", "no certificate")
        self.file("c.key", "no key")
        self.fails(r"c\.pem", text)

    # The default is more than most shells allow. Told once, not with every reload.
    def test_few_descriptors_for_the_connections_that_there_may_be(self):
        text = self.configuration(self.upstream(), workers=1)
        file = self.file("sluice.yaml", text + "\n")
        few = lambda *command: ["sh", "-c", 'ulimit -n 164 && exec "$@"', "sh", BINARY, *command]
        front = self.serve(text, command=few("serve", "-c", file))
        line = (
            "each worker takes at most 50 instead of 50000 connections: the process may have 164 "
            "file descriptors; raise the hard limit"
        )
        front.says(line)
        self.assertIn("write gateway: {max_connections_per_worker: 50}", front.said)
        front.signal(signal.SIGHUP)
        front.says("configuration reloaded")
        self.assertEqual(front.said.count(line), 1)
        with contextlib.ExitStack() as clients:
            for _ in range(50):
                clients.enter_context(front.connect()).send(b"GET / HT")
            self.assertTrue(clients.enter_context(front.connect()).is_closed())
        for option, told in (("--start", True), ("--offline", False)):
            done = subprocess.run(few("check", option, file), capture_output=True, text=True)
            self.assertEqual((done.returncode, line in done.stderr), (0, told), done.stderr)

    def test_an_upstream_that_is_none(self):
        text = self.configuration("127.0.0.1:1").replace("upstream: app", "upstream: ap")
        self.fails("there is no upstream 'ap'.*\n?.*did you mean 'app'", text)


class Memory(GatewayTest):
    # The promise is 10,000 at 20 KiB each.
    def test_idle_connections_cost_little(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < 10_400:
            self.skipTest(f"only {hard} files may be open: raise the hard limit (ulimit -Hn)")
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        count = 10_000
        front = self.gateway(
            self.upstream(),
            more="gateway: {keepalive_timeout: 10m, max_connections_per_worker: 10000}",
        )
        for _ in range(20):
            front.get()
        before = front.resident_bytes()
        clients = []
        self.addCleanup(lambda: [client.close() for client in clients])
        for _ in range(count):
            clients.append(front.connect())
            clients[-1].send(get())
            if len(clients) % 100 == 0:
                for client in clients[-100:]:
                    self.assertEqual(client.answer().status, 200)
        self.assertLess((front.resident_bytes() - before) / count, 20 * 1024)
        self.assertEqual(clients[0].get().status, 200)
        self.assertEqual(front.get().status, 200)


if __name__ == "__main__":
    unittest.main()
