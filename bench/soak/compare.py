#!/usr/bin/env python3
"""Memory of the gateway: what an idle connection costs, and whether ten minutes of load cost more
than the first one. Exit code 1 when a budget is missed.

The load is what makes servers leak: requests over connections that stay, requests over connections
that close, refusals, uploads that are broken off, clients that leave before the answer, and
requests that are no requests.
"""

import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from gateway import peers  # noqa: E402
from report import budget_table, finish, heading, options  # noqa: E402

KIB = 1024
REQUEST = b"GET /idle HTTP/1.1\r\nHost: bench\r\n\r\n"
ODD = (
    b"POST /upload HTTP/1.1\r\nHost: bench\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 20_000,
    b"POST /upload HTTP/1.1\r\nHost: bench\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    b"GET /left HTTP/1.1\r\nHost: bench\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: bench\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET /slow HTTP/1.1\r\nHo",
)


# ---- idle connections --------------------------------------------------------------------------


def certificate(folder: Path) -> tuple:
    key, cert = str(folder / "key.pem"), str(folder / "cert.pem")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    command += " -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    command += f" -keyout {key} -out {cert}"
    subprocess.run(command.split(), check=True, capture_output=True)
    return key, cert


def open_idle(port: int, count: int, tls: ssl.SSLContext | None) -> list:
    """Connections that had a request and an answer, and then nothing more."""
    opened = []
    for _ in range(count):
        sock = socket.create_connection(("127.0.0.1", port))
        if tls:
            sock = tls.wrap_socket(sock, server_hostname="localhost")
        sock.sendall(REQUEST)
        if not sock.recv(4096).startswith(b"HTTP/1.1 200"):
            raise SystemExit("an answer was expected")
        opened.append(sock)
    return opened


def idle_bytes(arguments, folder: Path, app: peers.Peer, count: int, tls: bool) -> float:
    more, context = "", None
    if tls:
        key, cert = certificate(folder)
        more = f"gateway: {{tls: {{certificates: [{{cert_file: {cert}, key_file: {key}}}]}}}}\n"
        context = ssl.create_default_context(cafile=cert)
    with peers.sluice(arguments.program, folder, app, "1000000000/1h", None, more) as proxy:
        for sock in open_idle(proxy.port, 100, context):  # what is made once is made now
            sock.close()
        before = proxy.memory()
        opened = open_idle(proxy.port, count, context)
        time.sleep(1)
        grown = proxy.memory() - before
        for sock in opened:
            sock.close()
    return grown / count


# ---- the soak ----------------------------------------------------------------------------------


def wrk(port: int, seconds: float, *more: str) -> subprocess.Popen:
    command = [peers.program("wrk"), "-t1", "-c16", f"-d{seconds:.0f}s", *more]
    return subprocess.Popen(command + [f"http://127.0.0.1:{port}/v1/things"], stdout=subprocess.DEVNULL)


def misbehave(port: int, until: float) -> None:
    while time.monotonic() < until:
        for bytes_sent in ODD:
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
                    sock.sendall(bytes_sent)
                    sock.settimeout(0.005)
                    sock.recv(100)
            except OSError:
                pass  # refused, reset or silent: all of them are answers here
        time.sleep(0.02)


def soak(arguments, folder: Path, app: peers.Peer) -> list:
    """(seconds, bytes), now and then."""
    samples = []
    with peers.sluice(arguments.program, folder, app, "2000/1s", None) as proxy:
        began = time.monotonic()
        until = began + arguments.seconds
        odd = threading.Thread(target=misbehave, args=(proxy.port, until))
        odd.start()
        loads = [wrk(proxy.port, arguments.seconds)]
        loads.append(wrk(proxy.port, arguments.seconds, "-H", "Connection: close"))
        while time.monotonic() < until:
            time.sleep(max(0.1, min(5, until - time.monotonic())))
            samples.append((time.monotonic() - began, proxy.memory()))
        for load in loads:
            load.wait()
        odd.join()
        if proxy.process.poll() is not None:
            raise SystemExit("the gateway ended before its time")
    return samples


# ---- the page ----------------------------------------------------------------------------------


def steady(samples: list, seconds: float) -> float:
    """The most in the last tenth of the time, beside the most in the second tenth."""
    early = max(size for at, size in samples if 0.1 * seconds <= at < 0.2 * seconds)
    late = max(size for at, size in samples if at >= 0.9 * seconds)
    return late / early


def page(arguments, plain: float, under_tls: float, samples: list) -> tuple:
    mib = [size / KIB / KIB for _, size in samples]
    lines = heading("soak") + [
        f"{arguments.connections} idle connections, and {arguments.tls_connections} under TLS,",
        f"each after one request. Then one worker under load for {arguments.seconds:.0f} s:",
        "requests over connections that stay and that close, most of them rejected, uploads broken",
        "off, clients that leave, bytes that are no requests. Memory that is the process's own.",
        "",
        "| under load | MiB |",
        "|---|---:|",
        f"| at first | {mib[0]:.1f} |",
        f"| in the middle | {mib[len(mib) // 2]:.1f} |",
        f"| at the end | {mib[-1]:.1f} |",
        f"| at most | {max(mib):.1f} |",
        "",
    ]
    table, met = budget_table(
        [
            ("an idle connection: KiB", plain / KIB, "<=", 20),
            ("an idle connection under TLS: KiB", under_tls / KIB, "<=", 20),
            (
                "memory in the last tenth of the soak: times that in the second",
                steady(samples, arguments.seconds),
                "<=",
                1.02,
            ),
        ]
    )
    return "\n".join(lines + table) + "\n", met


def main() -> None:
    parser = options(__doc__, "sluice")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--tls-connections", type=int, default=1_000)
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as name, peers.upstream(Path(name)) as app:
        folder = Path(name)
        plain = idle_bytes(arguments, folder, app, arguments.connections, tls=False)
        under_tls = idle_bytes(arguments, folder, app, arguments.tls_connections, tls=True)
        print(f"idle: {plain:.0f} bytes, under TLS {under_tls:.0f}", file=sys.stderr)
        samples = soak(arguments, folder, app)
    finish(arguments, *page(arguments, plain, under_tls, samples))


if __name__ == "__main__":
    main()
