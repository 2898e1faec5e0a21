#!/usr/bin/env python3
"""Compares our gateway with nginx (proxy_pass and limit_req) and HAProxy (a stick table).

Each has one worker on a processor of its own, the same upstream, and clients that keep their
connections; they take turns, several times, and what counts is the best turn of each: processor
time of the proxy per request. Exit code 1 when a budget is missed.
"""

import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from gateway import peers  # noqa: E402
from report import budget_table, finish, heading, options  # noqa: E402

SUBJECTS = {"sluice": "sluice", "nginx": "nginx", "haproxy": "HAProxy"}
TASKS = {"proxied": "proxied, one limit", "refused": "refused with 429"}
CONNECTIONS = 32


def start(arguments, folder: Path, app: peers.Peer, subject: str, refusing: bool) -> peers.Peer:
    core = 0
    if subject == "nginx":
        return peers.nginx_proxy(folder, app, refusing, core)
    if subject == "haproxy":
        return peers.haproxy(folder, app, refusing, core)
    limit = "1/1h" if refusing else "1000000000/1h"
    return peers.sluice(arguments.program, folder, app, limit, core)


def drive(port: int, seconds: float, core: int) -> tuple:
    """Requests that were answered, and how many of them with another status than 2xx or 3xx."""
    command = ["taskset", "-c", str(core), peers.program("wrk"), "-t1", f"-c{CONNECTIONS}"]
    command += [f"-d{seconds:.0f}s", "-H", "Accept: application/json", "-H", "User-Agent: bench/1"]
    command += ["-H", "Accept-Encoding: gzip", f"http://127.0.0.1:{port}/v1/things?page=1"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Socket errors" in said:
        raise SystemExit(f"requests failed:\n{said}")
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    requests = int(re.search(r"(\d+) requests in", said).group(1))
    return requests, int(refused.group(1)) if refused else 0


def one_turn(arguments, subject: str, task: str) -> float:
    """Microseconds of processor time per request."""
    refusing = task == "refused"
    with tempfile.TemporaryDirectory() as name, peers.upstream(Path(name), 1) as app:
        with start(arguments, Path(name), app, subject, refusing) as proxy:
            drive(proxy.port, 1, 1)  # connections are made, caches are warm
            before = proxy.cpu()
            requests, other = drive(proxy.port, arguments.seconds, 1)
            cost = (proxy.cpu() - before) / requests * 1e6
    if other != (requests if refusing else 0):
        raise SystemExit(f"{subject}, {task}: {other} of {requests} were refused")
    return cost


def start_ms(arguments) -> float:
    """From the start of the process to the first answer of the upstream, at best."""
    took = []
    with tempfile.TemporaryDirectory() as name, peers.upstream(Path(name), 1) as app:
        for _ in range(arguments.runs):
            began = time.monotonic()
            with start(arguments, Path(name), app, "sluice", refusing=False) as proxy:
                with urllib.request.urlopen(f"http://127.0.0.1:{proxy.port}/") as answer:
                    answer.read()
                took.append((time.monotonic() - began) * 1000)
    return min(took)


def measure(arguments) -> dict:
    best: dict = {"start": start_ms(arguments)}
    for turn in range(arguments.runs):
        for task in TASKS:
            for subject in SUBJECTS:
                cost = one_turn(arguments, subject, task)
                turns = f"{turn + 1}/{arguments.runs}"
                print(f"{turns}: {subject}, {task}: {cost:.2f} us", file=sys.stderr)
                best[subject, task] = min(cost, best.get((subject, task), cost))
    return best


def budgets(best: dict):
    ours = best["sluice", "proxied"]
    theirs = best["nginx", "proxied"]
    yield "a proxied request with one limit: times nginx's", ours / theirs, "<=", 1
    yield "a refusal: times a proxied request", best["sluice", "refused"] / ours, "<=", 0.5
    yield "from the start to the first answer: milliseconds", best["start"], "<", 100


def page(arguments, best: dict) -> tuple:
    lines = heading("gateway") + [
        f"One worker each, {CONNECTIONS} clients that keep their connections (wrk), an upstream",
        "that answers with 1,000 bytes (nginx), limits by address. Processor time of the proxy in",
        "microseconds per request, best of",
        f"{arguments.runs} turns of {arguments.seconds:.0f} s each.",
        "",
        "| what | " + " | ".join(SUBJECTS.values()) + " |",
        "|---" + "|---:" * len(SUBJECTS) + "|",
    ]
    for task, name in TASKS.items():
        cells = [f"{best[subject, task]:.2f}" for subject in SUBJECTS]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    table, met = budget_table(budgets(best))
    lines += ["", *table]
    return "\n".join(lines) + "\n", met


def main() -> None:
    parser = options(__doc__, "sluice")
    parser.add_argument("--seconds", type=float, default=4, help="for each turn")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    best = measure(arguments)
    finish(arguments, *page(arguments, best))


if __name__ == "__main__":
    main()
