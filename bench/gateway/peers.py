"""The proxies that are compared, each with one worker, in front of one upstream: real nginx, real
HAProxy, and ours. All listen on loopback, on free ports, and are stopped by their process id."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
BODY = "x" * 1000
PATIENCE = 10  # seconds


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def program(name: str) -> str:
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin")
    if found is None:
        raise SystemExit(f"{name} is not installed; ./dev setup bench installs it")
    return found


@dataclass(frozen=True)
class Spent:
    """Processor time in seconds."""

    user: float
    system: float


def spent(pid: int) -> Spent:
    """By all threads of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return Spent(int(fields[11]) / TICKS, int(fields[12]) / TICKS)


def children(pid: int) -> list:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Peer:
    """A process that listens. `core`: the processor that it keeps to."""

    def __init__(self, name: str, command: list, port: int, core: int | None = None):
        self.name, self.port = name, port
        pinned = [] if core is None else ["taskset", "-c", str(core)]
        self.said = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            pinned + command, stdout=subprocess.DEVNULL, stderr=self.said
        )
        self.wait_until_it_listens()

    def wait_until_it_listens(self) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.001)
        self.stop()
        self.said.seek(0)
        said = self.said.read().decode(errors="replace")
        raise SystemExit(f"{self.name} does not listen on port {self.port}:\n{said}")

    def cpu(self) -> Spent:
        """Of the process and those that it started."""
        pid = self.process.pid
        all_of_it = [spent(one) for one in [pid, *children(pid)]]
        return Spent(sum(one.user for one in all_of_it), sum(one.system for one in all_of_it))

    def memory(self) -> int:
        """Bytes that are resident and its own."""
        rollup = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text(encoding="utf-8")
        kib = [int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Private_")]
        return sum(kib) * 1024

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


# ---- nginx -------------------------------------------------------------------------------------


def nginx(folder: Path, name: str, port: int, http: str, core: int | None) -> Peer:
    root = folder / name
    root.mkdir(exist_ok=True)
    temporary = "\n".join(
        f"  {kind}_temp_path {root}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = write(
        root,
        "nginx.conf",
        f"""daemon off;
worker_processes 1;
error_log /dev/null;
pid {root}/pid;
events {{ worker_connections 20000; }}
http {{
  access_log off;
  keepalive_requests 100000000;
{temporary}
{http}
}}
""",
    )
    return Peer(name, [program("nginx"), "-p", str(root), "-c", config], port, core)


def upstream(folder: Path, core: int | None = None) -> Peer:
    port = free_port()
    http = f"""  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{ default_type text/plain; return 200 "{BODY}"; }}
  }}"""
    return nginx(folder, "upstream", port, http, core)


def nginx_proxy(folder: Path, app: Peer, refusing: bool, core: int | None, pool: int = 64) -> Peer:
    """`pool`: idle connections to the upstream."""
    port = free_port()
    rate = "1r/m" if refusing else "1000000r/s"
    burst = "" if refusing else "burst=1000000 nodelay"
    http = f"""  limit_req_zone $binary_remote_addr zone=limit:10m rate={rate};
  limit_req_status 429;
  upstream app {{ server 127.0.0.1:{app.port}; keepalive {pool}; keepalive_requests 100000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      limit_req zone=limit {burst};
      proxy_pass http://app;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Request-Id $request_id;
    }}
  }}"""
    return nginx(folder, "nginx", port, http, core)


# ---- HAProxy -----------------------------------------------------------------------------------


def haproxy(folder: Path, app: Peer, refusing: bool, core: int | None, pool: int = 64) -> Peer:
    port = free_port()
    most = 0 if refusing else 1_000_000_000
    config = write(
        folder,
        "haproxy.cfg",
        f"""global
  nbthread 1
  maxconn 4000
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  option forwardfor
  http-reuse always
frontend front
  bind 127.0.0.1:{port} backlog 4096
  stick-table type ip size 1m expire 1h store http_req_rate(1h)
  http-request track-sc0 src
  http-request deny deny_status 429 if {{ sc_http_req_rate(0) gt {most} }}
  http-request set-header X-Forwarded-Proto http
  unique-id-format %{{+X}}o\\ %ci:%cp_%fi:%fp_%Ts_%rt:%pid
  unique-id-header X-Request-Id
  default_backend app
backend app
  server app 127.0.0.1:{app.port} pool-max-conn {pool}
""",
    )
    return Peer("haproxy", [program("haproxy"), "-db", "-f", config], port, core)


# ---- ours --------------------------------------------------------------------------------------


def sluice(
    binary: Path,
    folder: Path,
    app: Peer,
    limit: str,
    core: int | None,
    more: str = "",
    per: str = "ip",
) -> Peer:
    port = free_port()
    config = write(
        folder,
        "sluice.yaml",
        f"""listen: {{gateway: 127.0.0.1:{port}}}
workers: 1
upstreams: {{app: {{servers: [127.0.0.1:{app.port}]}}}}
routes: [{{path: /**, upstream: app}}]
rules: [{{name: everybody, per: {per}, limit: {limit}}}]
{more}""",
    )
    return Peer("sluice", [str(binary), "serve", "-c", config], port, core)
