"""The admin listener of the real gateway, and what it shows, read strictly."""

import json
import re
import subprocess
import threading

from gateway_support import Client, GatewayTest, connected, wait_until
from support import BINARY

SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (NaN|[+-]Inf|[0-9.e+-]+)$")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')


class Page:
    """A page in text 0.0.4, read strictly: what the format does not allow is an error."""

    def __init__(self, text):
        self.types = {}
        self.samples = {}
        if not text.endswith("\n"):
            raise ValueError("the last line does not end")
        for line in text[:-1].split("\n"):
            self.comment(line) if line.startswith("#") else self.sample(line)

    def comment(self, line):
        kind, name, rest = re.match(r"^# (HELP|TYPE) (\S+) (.+)$", line).groups()
        if kind == "TYPE":
            if name in self.types:
                raise ValueError(f"{name} has two types")
            if rest not in ("counter", "gauge", "histogram"):
                raise ValueError(line)
            self.types[name] = rest

    def sample(self, line):
        name, labels, value = SAMPLE.match(line).groups()
        family = re.sub(r"_(bucket|sum|count)$", "", name)
        if name not in self.types and self.types.get(family) != "histogram":
            raise ValueError(f"{name} has no type")
        at, pairs = 0, []
        while labels and at < len(labels):
            found = LABEL.match(labels, at)
            pairs.append((found.group(1), found.group(2)))
            at = found.end()
        key = (name, frozenset(pairs))
        if key in self.samples:
            raise ValueError(f"{line} is there twice")
        self.samples[key] = float(value)

    def sum(self, name, **labels):
        """Of all series with these labels."""
        wanted = set(labels.items())
        return sum(v for (n, pairs), v in self.samples.items() if n == name and wanted <= pairs)

    def has(self, name):
        return any(n == name for n, _ in self.samples)


class AdminTest(GatewayTest):
    def admin(self, *upstreams, listen="127.0.0.1:0", stdout=subprocess.DEVNULL, **options):
        text = self.configuration(*upstreams, **options)
        text = text.replace("listen: {", f"listen: {{admin: '{listen}', ")
        front = self.serve(text, stdout=stdout)
        front.says("admin on")
        found = re.search(r"admin on 127\.0\.0\.1:(\d+)", front.said)
        front.admin_port = int(found.group(1)) if found else None
        # It says where it listens, and is ready a moment later.
        if found:
            wait_until(lambda: self.ask(front, "/readyz").status == 200, "it is ready")
        return front

    def connect(self, front, receive_buffer=0):
        return Client(connected(front.admin_port, receive_buffer))

    def ask(self, front, path, *headers, host=None, method="GET"):
        host = host or f"127.0.0.1:{front.admin_port}"
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *headers]
        with self.connect(front) as client:
            return client.ask(("\r\n".join(lines) + "\r\n\r\n").encode())

    def page(self, front, *headers):
        answer = self.ask(front, "/metrics", *headers)
        self.assertEqual(answer.status, 200)
        return Page(answer.body.decode())

    def status(self, front):
        return json.loads(self.ask(front, "/v1/status").body)

    def url(self, front):
        return f"http://127.0.0.1:{front.admin_port}"


class Watcher:
    """`sluice status --watch`, line by line."""

    def __init__(self, url):
        self.lines = 0
        self.process = subprocess.Popen(
            [BINARY, "status", "--server", url, "--watch", "1ms", "--json"],
            stdout=subprocess.PIPE,
        )
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            json.loads(line)
            self.lines += 1
        self.process.stdout.close()

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.thread.join()
