#!/usr/bin/env python3
"""Compares our gateway with nginx (proxy_pass and limit_req) and HAProxy (a stick table).

Each has one worker on a processor of its own, the same upstream, clients that keep their
connections, and a pool of connections to the upstream: nginx and HAProxy are given one that is
large enough, ours is left at its defaults. The proxies run side by side and are measured in turn,
for a short time each and many times; what counts is the median of the rounds' ratios of processor
time per request. Exit code 1 when a budget is missed.
"""

import contextlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from gateway import peers  # noqa: E402
from pairs import median_of, median_ratio, ratios, rounds  # noqa: E402
from report import budget_table, finish, heading, options  # noqa: E402

SUBJECTS = {"sluice": "sluice", "nginx": "nginx", "haproxy": "HAProxy"}
PROMISED = {32: 0.95, 256: 1.0, 1000: 1.0}  # connections: times nginx's processor time
PROMISED_USER = 0.75  # of it in the program itself
PROXY_CORE, LOAD_CORE = 0, 1


@dataclass(frozen=True)
class Cost:
    """Of one request, in microseconds of processor time of the proxy."""

    user: float
    system: float
    busy: float  # the proxy's processor, as a share of the time

    @property
    def total(self) -> float:
        return self.user + self.system

    def __str__(self) -> str:
        return f"{self.total:.2f} us, {self.user:.2f} of them user, {100 * self.busy:.0f} % busy"

    __repr__ = __str__


def total(cost: Cost) -> float:
    return cost.total


def user(cost: Cost) -> float:
    return cost.user


def start(arguments, folder: Path, app: peers.Peer, subject: str, refusing: bool, pool: int):
    if subject == "nginx":
        return peers.nginx_proxy(folder, app, refusing, PROXY_CORE, pool)
    if subject == "haproxy":
        return peers.haproxy(folder, app, refusing, PROXY_CORE, pool)
    limit = "1/1h" if refusing else "1000000000/1h"
    return peers.sluice(arguments.program, folder, app, limit, PROXY_CORE)


def drive(port: int, seconds: float, connections: int) -> tuple:
    """Requests that were answered, and how many of them with another status than 2xx or 3xx."""
    command = ["taskset", "-c", str(LOAD_CORE), peers.program("wrk"), "-t1", f"-c{connections}"]
    command += [f"-d{seconds:.0f}s", "-H", "Accept: application/json", "-H", "User-Agent: bench/1"]
    command += ["-H", "Accept-Encoding: gzip", f"http://127.0.0.1:{port}/v1/things?page=1"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Socket errors" in said:
        raise SystemExit(f"requests failed:\n{said}")
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    requests = int(re.search(r"(\d+) requests in", said).group(1))
    return requests, int(refused.group(1)) if refused else 0


def cost_of(proxy: peers.Peer, seconds: float, connections: int, refusing: bool) -> Cost:
    began, before = time.monotonic(), proxy.cpu()
    requests, other = drive(proxy.port, seconds, connections)
    after, took = proxy.cpu(), time.monotonic() - began
    # The strictest limit of nginx still admits one request a minute.
    if not (requests - 2 <= other if refusing else other == 0):
        raise SystemExit(f"{proxy.name}: {other} of {requests} were rejected")
    spent_user, spent_system = after.user - before.user, after.system - before.system
    scale = 1e6 / requests
    return Cost(spent_user * scale, spent_system * scale, (spent_user + spent_system) / took)


def measured_rounds(arguments, proxies: dict, connections: int, label: str) -> list:
    """`proxies`: what to start, by name: the subject, and whether it rejects all requests."""
    with contextlib.ExitStack() as stack:
        subjects = {}
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        app = stack.enter_context(peers.upstream(folder, LOAD_CORE))
        for name, (subject, refusing) in proxies.items():
            own = folder / name
            own.mkdir()
            proxy = stack.enter_context(
                start(arguments, own, app, subject, refusing, pool=connections)
            )
            drive(proxy.port, 1, connections)  # connections are made, caches are warm
            subjects[name] = lambda proxy=proxy, refusing=refusing: cost_of(
                proxy, arguments.seconds, connections, refusing
            )
        every = {name: 3 for name, (subject, _) in proxies.items() if subject == "haproxy"}
        return rounds(arguments.rounds, subjects, label, every)


def start_ms(arguments) -> float:
    """From the start of the process to the first answer of the upstream, at best."""
    took = []
    with tempfile.TemporaryDirectory() as name, peers.upstream(Path(name), LOAD_CORE) as app:
        for _ in range(5):
            began = time.monotonic()
            with start(arguments, Path(name), app, "sluice", False, pool=0) as proxy:
                with urllib.request.urlopen(f"http://127.0.0.1:{proxy.port}/") as answer:
                    answer.read()
                took.append((time.monotonic() - began) * 1000)
    return min(took)


def measure(arguments) -> dict:
    found: dict = {"start": start_ms(arguments)}
    for connections in arguments.connections:
        proxies = {subject: (subject, False) for subject in SUBJECTS}
        found[connections] = measured_rounds(arguments, proxies, connections, str(connections))
    rejecting = {subject: (subject, True) for subject in SUBJECTS}
    rejecting["proxied"] = ("sluice", False)
    found["rejected"] = measured_rounds(arguments, rejecting, 32, "rejected")
    return found


def budgets(arguments, found: dict):
    for connections in arguments.connections:
        name = f"a proxied request with one limit, {connections:,} connections: times nginx's"
        bound = PROMISED.get(connections, 1.0)
        yield name, median_ratio(found[connections], "sluice", "nginx", total), "<=", bound
    for connections in arguments.connections:
        name = f"the same in user time, {connections:,} connections: times nginx's"
        yield name, median_ratio(found[connections], "sluice", "nginx", user), "<=", PROMISED_USER
    rejected = median_ratio(found["rejected"], "sluice", "proxied", total)
    yield "a rejection: times a proxied request", rejected, "<=", 0.5
    yield "from the start to the first response: milliseconds", found["start"], "<", 100


def cells(measured: list) -> list:
    def one(subject: str) -> str:
        costs = [median_of(measured, subject, value) for value in (total, user)]
        return "{:.2f} ({:.2f})".format(*costs)

    return [one(subject) for subject in SUBJECTS]


def spread(measured: list, value) -> str:
    of_rounds = ratios(measured, "sluice", "nginx", value)
    quarter = len(of_rounds) // 4
    return f"{of_rounds[quarter]:.2f} to {of_rounds[-1 - quarter]:.2f}"


def page(arguments, found: dict) -> tuple:
    tasks = {f"proxied, one limit, {n:,} connections": found[n] for n in arguments.connections}
    tasks["rejected with 429, 32 connections"] = found["rejected"]
    lines = heading("gateway") + [
        "One worker each, keep-alive clients (wrk), an upstream that responds with",
        "1,000 bytes (nginx), limits by address. Our gateway has its default configuration; the",
        "others have a pool of as many connections to the upstream as there are clients.",
        "Processor time of the proxy in microseconds per request, user time in brackets: medians",
        f"of {arguments.rounds} rounds, in which each is measured for {arguments.seconds:.0f} s",
        "(HAProxy in every third).",
        "",
        "| what | " + " | ".join(SUBJECTS.values()) + " | times nginx's, half of the rounds |",
        "|---" + "|---:" * (len(SUBJECTS) + 1) + "|",
    ]
    for name, measured in tasks.items():
        row = [name, *cells(measured), spread(measured, total)]
        lines.append("| " + " | ".join(row) + " |")
    busy = min(
        median_of(measured, subject, lambda cost: cost.busy)
        for measured in tasks.values()
        for subject in SUBJECTS
    )
    table, met = budget_table(budgets(arguments, found))
    lines += ["", *table, ""]
    lines += [
        "A ratio is the median of the rounds' ratios. The processor of each proxy was busy for",
        f"{100 * busy:.0f} % of the time or more.",
    ]
    return "\n".join(lines) + "\n", met


def main() -> None:
    parser = options(__doc__, "sluice")
    parser.add_argument("--seconds", type=float, default=2, help="for each turn")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument(
        "--connections", type=int, nargs="+", default=list(PROMISED), help="of the clients"
    )
    arguments = parser.parse_args()
    finish(arguments, *page(arguments, measure(arguments)))


if __name__ == "__main__":
    main()
