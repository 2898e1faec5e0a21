"""What a newcomer tries first: the demonstration, and the gateway of README.md with its answers."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import unittest

from gateway_support import PATIENCE, Client, GatewayTest, get, reply, wait_until
from support import BINARY

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"


class Readme(GatewayTest):
    def setUp(self):
        super().setUp()
        (section,) = re.findall(
            r"^## A gateway in ten lines\n(.*?)^## ", README.read_text(), re.DOTALL | re.MULTILINE
        )
        (self.configuration_text,) = re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)
        blocks = re.findall(r"(?:^(?:    .*)?\n)*^    .*\n", section, re.MULTILINE)
        self.passing, self.refusing = (re.sub("(?m)^    ", "", block) for block in blocks)

    def front(self, app):
        text = self.configuration_text.replace("':8080'", "127.0.0.1:0")
        text = re.sub(r"127\.0\.0\.1:300[01]", app.address, text)
        return self.serve(text)

    def test_the_gateway_has_ten_lines(self):
        self.assertEqual(len(self.configuration_text.splitlines()), 10)

    def test_answers_are_those_that_it_shows(self):
        front = self.front(self.upstream())
        shown = self.timeless(self.refusing.strip("\n"))
        with front.connect() as client:
            answer = client.get()
            for name, value in re.findall(r"^(\S+): (.*)$", self.passing, re.MULTILINE):
                self.assertEqual(answer.get(name.lower()), value)
            client.send(get() * 40)
            refused = [one for one in (client.answer() for _ in range(40)) if one.status == 429][0]
        lines = [refused.start, *(f"{name}: {value}" for name, value in refused.headers)]
        sent = "\n".join([*lines, "", refused.body.decode()])
        self.assertEqual(self.timeless(sent), shown)

    def timeless(self, text):
        """Without what no two answers have in common."""
        text = re.sub(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", "DATE", text)
        return re.sub(r"[0-9a-f]{32}", "ID", text)

    def test_failed_logins_are_blocked_and_good_ones_are_not_counted(self):
        status = ["200 OK"]
        front = self.front(self.upstream(lambda _, wire: wire.send(reply(b"", status[0])) or True))
        with front.connect() as client:
            self.assertEqual([client.get("/login").status for _ in range(8)], [200] * 8)
            status[0] = "401 Unauthorized"
            self.assertEqual([client.get("/login").status for _ in range(6)], [401] * 5 + [429])
            status[0] = "200 OK"
            self.assertEqual(client.get("/login").status, 429)


class Demonstration(GatewayTest):
    """`sluice serve` without a file, which is what ./dev run runs."""

    def setUp(self):
        super().setUp()
        self.process = subprocess.Popen(
            [BINARY, "serve"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": self.folder},
        )
        self.addCleanup(self.process.kill)
        self.told = ""
        while "Ctrl-C" not in self.told:
            line = self.process.stdout.readline()
            self.assertNotEqual(line, "", self.process.stderr.read() if not line else "")
            self.told += line
        self.port = int(re.search(r"at http://127\.0\.0\.1:(\d+)", self.told)[1])
        self.file = pathlib.Path(re.search(r"rules are in (\S+)", self.told)[1])

    def tearDown(self):
        self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate(timeout=PATIENCE)
        self.assertEqual(self.process.returncode, 0, said)
        self.assertNotIn("ERROR: AddressSanitizer", said)
        self.assertFalse(self.file.exists(), "it leaves its folder behind")

    def statuses(self, count, path, *headers):
        with Client(socket.create_connection(("127.0.0.1", self.port))) as client:
            client.send(get(path, *headers) * count)
            return [client.answer().status for _ in range(count)]

    # The first of each that it suggests passes, and as many more as it says.
    def test_what_it_suggests_works(self):
        self.assertEqual(self.statuses(7, "/hello"), [200] * 5 + [429] * 2)
        for tier, passing in (("free", 10), ("paid", 100)):
            statuses = self.statuses(passing + 1, "/hello", f"x-api-key: demo-{tier}")
            self.assertEqual(statuses[:passing], [200] * passing)
        for path in re.findall(r"curl -i .*http://[\d.:]+(/\w+)", self.told):
            self.assertIn(path, ("/hello", "/login", "/reports"))
        self.assertIn("demo-free", self.told)
        self.assertIn("demo-paid", self.told)

    def test_its_answers_have_a_reason(self):
        with Client(socket.create_connection(("127.0.0.1", self.port))) as client:
            client.send(get("/hello") + get("/status/404"))
            lines = [client.answer().start for _ in range(2)]
        self.assertEqual(lines, ["HTTP/1.1 200 OK", "HTTP/1.1 404 Not Found"])

    # Whoever used up what is there for all pages can still try the others.
    def test_a_login_is_blocked(self):
        self.assertEqual(self.statuses(6, "/hello")[-1], 429)
        with Client(socket.create_connection(("127.0.0.1", self.port))) as client:
            answers = [client.get("/login") for _ in range(4)]
        self.assertEqual([one.status for one in answers], [200] * 3 + [429])
        self.assertEqual(answers[3].get("retry-after"), "30", "the block, not the limit alone")

    def test_reports_are_held(self):
        begin = time.monotonic()
        self.assertEqual(self.statuses(3, "/reports"), [200] * 3)
        self.assertGreater(time.monotonic() - begin, 1.9)

    def test_what_is_saved_is_in_force(self):
        text = self.file.read_text()
        self.assertIn("limit: 5/10s", text)
        new = self.file.with_suffix(".new")
        new.write_text(text.replace("limit: 5/10s", "limit: 50/10s"))
        new.replace(self.file)
        wait_until(lambda: self.statuses(20, "/hello") == [200] * 20, "the new limit is in force")


if __name__ == "__main__":
    unittest.main()
