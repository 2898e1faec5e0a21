"""The real gateway, a client that sends any bytes, and an upstream that misbehaves on purpose."""

import os
import re
import signal
import socket
import subprocess
import threading
import time
from dataclasses import dataclass, field

from support import BINARY, ScenarioTest

PATIENCE = 30  # seconds until a test that waits for something gives up


def wait_until(condition, what, seconds=PATIENCE):
    """Looks again and again, for what no socket tells of."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited in vain until {what}")
        time.sleep(0.005)


def has_signal(pid, which, number):
    """Whether a signal is among those of a process that are caught (SigCgt) or pending (ShdPnd)."""
    with open(f"/proc/{pid}/status", encoding="ascii") as stream:
        signals = re.search(rf"^{which}:\s*(\w+)", stream.read(), re.MULTILINE)[1]
    return int(signals, 16) >> (number - 1) & 1 == 1


@dataclass
class Message:
    """A request or an answer, as it came."""

    start: str
    headers: list
    body: bytes = b""
    trailers: list = field(default_factory=list)
    connection: int = 0  # of the upstream, counted from 1

    @property
    def status(self):
        return int(self.start.split(" ")[1])

    @property
    def method(self):
        return self.start.split(" ")[0]

    @property
    def target(self):
        return self.start.split(" ")[1]

    def all(self, name):
        return [value for key, value in self.headers if key.lower() == name]

    def get(self, name):
        return ", ".join(self.all(name)) if self.all(name) else None


class Wire:
    """A socket with what was read of it and not yet understood."""

    def __init__(self, sock):
        self.sock = sock
        self.sock.settimeout(PATIENCE)
        self.pending = b""

    def send(self, data):
        self.sock.sendall(data)

    def more(self):
        """False at the end."""
        data = self.sock.recv(65536)
        self.pending += data
        return bool(data)

    def take(self, count):
        while len(self.pending) < count:
            if not self.more():
                raise EOFError(f"{len(self.pending)} of {count} bytes, then the end")
        taken, self.pending = self.pending[:count], self.pending[count:]
        return taken

    def until(self, mark):
        while mark not in self.pending:
            if not self.more():
                raise EOFError(f"the end, after {self.pending!r}")
        taken, self.pending = self.pending.split(mark, 1)
        return taken

    def fields(self, lines):
        pairs = [line.split(":", 1) for line in lines if line]
        return [(name, value.strip()) for name, value in pairs]

    def head(self):
        lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        return Message(lines[0], self.fields(lines[1:]))

    def chunks(self, message):
        while size := int(self.until(b"\r\n").split(b";")[0], 16):
            message.body += self.take(size)
            assert self.take(2) == b"\r\n"
        lines = []
        while line := self.until(b"\r\n").decode("latin-1"):
            lines.append(line)
        message.trailers = self.fields(lines)

    def body(self, message):
        if message.get("transfer-encoding") == "chunked":
            self.chunks(message)
        elif message.get("content-length"):
            message.body = self.take(int(message.get("content-length")))

    def close(self):
        self.sock.close()

    def reset(self):
        """Closes so that the other side reads an error, not an end."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def connected(port, receive_buffer=0):
    """A socket to a port of ours; with a small buffer, it soon takes no more."""
    sock = socket.socket()
    if receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    try:
        sock.connect(("127.0.0.1", port))
    except OSError:
        sock.close()
        raise
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


class Client(Wire):
    def answer(self, to="GET", interim=False):
        """The next answer; those of 1xx are passed over unless one is asked for."""
        message = self.head()
        if 100 <= message.status < 200:
            return message if interim else self.answer(to)
        if to == "HEAD" or message.status in (204, 304):
            return message
        framed = message.get("content-length") or message.get("transfer-encoding")
        if framed:
            self.body(message)
        else:
            while self.more():
                pass
            message.body, self.pending = self.pending, b""
        return message

    def ask(self, request):
        self.send(request)
        return self.answer(request.split(b" ", 1)[0].decode())

    def get(self, path="/", *headers):
        return self.ask(get(path, *headers))

    def is_closed(self):
        """Whether the other side ends the connection and says nothing before."""
        try:
            return not self.more()
        except ConnectionResetError:
            return True


def get(path="/", *headers, method="GET"):
    lines = [f"{method} {path} HTTP/1.1", "Host: a.example", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def post(body=b"", *headers, path="/"):
    return get(path, f"Content-Length: {len(body)}", *headers, method="POST") + body


def reply(body=b"", status="200 OK", *headers):
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


class Upstream:
    """Serves each connection by a thread. `serve(request, wire)` answers a request that was read
    whole and returns false to hang up; a class that overrides `connected` does as it likes."""

    def __init__(self, serve=None, port=0):
        self.serve = serve or (lambda request, wire: wire.send(reply(b"hello")) or True)
        self.requests = []
        self.wires = []
        self.listener = socket.create_server(("127.0.0.1", port), backlog=1024)
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.threads = [threading.Thread(target=self.accept, daemon=True)]
        self.threads[0].start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            wire = Wire(connection)
            self.wires.append(wire)
            thread = threading.Thread(target=self.talk, args=(wire, len(self.wires)), daemon=True)
            self.threads.append(thread)  # before it can answer: who has an answer may look for it
            thread.start()

    def talk(self, wire, number):
        try:
            self.connected(wire, number)
        except (OSError, EOFError, ValueError):
            pass  # the gateway hung up, or we did
        wire.close()

    def connected(self, wire, number):
        while True:
            request = wire.head()
            wire.body(request)
            request.connection = number
            self.requests.append(request)
            if not self.serve(request, wire):
                return

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for wire in self.wires:
            try:
                wire.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self.threads:
            thread.join(PATIENCE)


class EarlyUpstream(Upstream):
    """Calls `serve` with the head alone, the body unread."""

    def connected(self, wire, number):
        request = wire.head()
        request.connection = number
        self.requests.append(request)
        self.serve(request, wire)


class Gateway:
    """`sluice serve -c FILE`, with all that it says on standard error."""

    def __init__(self, file, command=None, pass_fds=(), stdout=subprocess.DEVNULL):
        self.file = file
        self.process = subprocess.Popen(
            command or [BINARY, "serve", "-c", file],
            stdout=stdout,
            stderr=subprocess.PIPE,
            env={**os.environ, "NO_COLOR": "1"},
            pass_fds=pass_fds,
        )
        self.said = ""
        self.listens = threading.Event()
        self.reader = threading.Thread(target=self.hear, daemon=True)
        self.reader.start()
        self.listens.wait(PATIENCE)
        found = re.search(r"gateway on 127\.0\.0\.1:(\d+)", self.said)
        if not found:
            self.kill()
            raise AssertionError(f"the gateway did not start: {self.said}")
        self.port = int(found.group(1))

    def hear(self):
        for line in self.process.stderr:
            self.said += line.decode()
            if "gateway on" in self.said:
                self.listens.set()
        self.process.stderr.close()
        self.listens.set()

    def connect(self, receive_buffer=0):
        return Client(connected(self.port, receive_buffer))

    def get(self, path="/", *headers):
        with self.connect() as client:
            return client.get(path, *headers)

    def signal(self, number):
        self.process.send_signal(number)

    def pause(self):
        """Until `resume`. The signal alone is only a request: threads run on for a moment."""
        self.signal(signal.SIGSTOP)
        wait_until(lambda: self.thread_states() == {"T"}, "all of its threads have stopped")

    def resume(self):
        self.signal(signal.SIGCONT)

    def thread_states(self):
        found = set()
        folder = f"/proc/{self.process.pid}/task"
        for thread in os.listdir(folder):
            with open(f"{folder}/{thread}/stat", encoding="utf-8") as stream:
                found.add(stream.read().rsplit(")", 1)[1].split()[0])
        return found

    def says(self, text):
        wait_until(lambda: text in self.said, f"it says {text!r}; it said {self.said}")

    def connections(self):
        """Of clients, that stand: (address, port) of the other ends."""
        wanted = "%04X" % self.port
        found = []
        with open("/proc/net/tcp", encoding="ascii") as table:
            for line in list(table)[1:]:
                _, local, remote, state, *_ = line.split()
                if local.endswith(":" + wanted) and state == "01":
                    found.append(remote)
        return found

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return 1024 * int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))

    def wait(self, seconds=PATIENCE):
        code = self.process.wait(seconds)
        self.reader.join(PATIENCE)
        return code

    def stop(self):
        """A clean end is part of every test."""
        if not self.is_over():
            self.signal(signal.SIGTERM)
            # Long enough to drain when nothing is under way: a second signal is for what hangs.
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                self.signal(signal.SIGTERM)
        return self.wait()

    def is_over(self):
        return self.process.poll() is not None

    def kill(self):
        self.process.kill()
        self.wait()


class Authority:
    """Issues certificates, as FILE.pem with FILE.key beside it."""

    def __init__(self, folder, name):
        self.folder = folder
        self.path = os.path.join(folder, name)
        self.file = self.path + ".pem"
        self.openssl(
            *("req", "-x509", *self.NEW_KEY, "-days", "2", "-subj", f"/CN={name}"),
            *("-keyout", self.path + ".key", "-out", self.file),
        )

    NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)

    def issue(self, name, common_name, names="", days=1):
        """Returns the path without its ending. Of fewer than 0 days: it has expired."""
        path = os.path.join(self.folder, name)
        self.openssl(
            *("req", *self.NEW_KEY, "-subj", f"/CN={common_name}" if common_name else "/"),
            *("-keyout", path + ".key", "-out", path + ".csr"),
        )
        with open(path + ".ext", "w", encoding="ascii") as stream:
            stream.write(f"subjectAltName={names}\n" if names else "basicConstraints=CA:FALSE\n")
        self.openssl(
            *("x509", "-req", "-in", path + ".csr", "-CA", self.file, "-CAkey", self.path + ".key"),
            *("-CAcreateserial", "-days", str(days), "-extfile", path + ".ext"),
            *("-out", path + ".pem"),
        )
        return path


class GatewayTest(ScenarioTest):
    """A test with upstreams and gateways that end with it."""

    # The usual rules concern nobody, so that tests of other things are not limited.
    NO_RULES = "[{name: nobody, match: {path: /nobody}, per: ip, limit: 1/1h}]"

    def upstream(self, serve=None, kind=Upstream, port=0):
        started = kind(serve, port)
        self.addCleanup(started.stop)
        return started

    def waiting(self, event, body):
        """An upstream that answers when something has happened."""

        def serve(_, wire):
            event.wait(PATIENCE)
            wire.send(reply(body))
            return True

        return self.upstream(serve)

    STATE = "state: {memory: 4MiB}"

    def configuration(
        self,
        *upstreams,
        rules=NO_RULES,
        of_upstream="",
        more="",
        state=STATE,
        listen="127.0.0.1:0",
        workers=2,
    ):
        servers = ", ".join(f"'{getattr(one, 'address', one)}'" for one in upstreams)
        return "\n".join(
            [
                f"listen: {{gateway: {listen}}}",
                f"workers: {workers}",
                f"upstreams: {{app: {{servers: [{servers}]{of_upstream and ', '}{of_upstream}}}}}",
                "routes: [{path: /**, upstream: app}]",
                f"rules: {rules}",
                state,
                more,
            ]
        )

    def serve(self, text, **options):
        gateway = Gateway(self.file("sluice.yaml", text + "\n"), **options)
        self.addCleanup(self.ended_well, gateway)
        return gateway

    def gateway(self, *upstreams, **options):
        return self.serve(self.configuration(*upstreams, **options))

    def log(self):
        """What `access_log: {file: access.log}` has."""
        with open(os.path.join(self.folder, "access.log"), encoding="utf-8") as stream:
            return stream.read()

    def ended_well(self, gateway):
        if gateway.process.poll() is None:
            self.assertEqual(gateway.stop(), 0, gateway.said)
        self.assertNotIn("ERROR: AddressSanitizer", gateway.said)
        self.assertNotIn("runtime error", gateway.said)

    def assertProblem(self, answer, status):
        self.assertEqual(answer.status, status, answer)
        self.assertEqual(answer.get("content-type"), "application/problem+json")
        self.assertIn(f'"status":{status}'.encode(), answer.body.replace(b" ", b""))
