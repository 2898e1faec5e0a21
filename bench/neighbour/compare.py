#!/usr/bin/env python3
"""Whether one client that asks for a hundred times its limit troubles the others.

The same quiet clients drive the gateway by themselves, and beside the noisy one; in turn, several
times, and what counts is the median of the turns' ratios. Exit code 1 when a budget is missed.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from gateway import peers  # noqa: E402
from pairs import median_of, median_ratio, rounds  # noqa: E402
from report import budget_table, finish, heading, options  # noqa: E402

LIMIT = 50  # requests per second, of each client
QUIET = 40  # clients, each at a quarter of its limit
QUIET_RATE = QUIET * LIMIT // 4
NOISY_RATE = 100 * LIMIT


def load(
    arguments, port: int, rate: int, clients: int, name: str, seconds: float
) -> subprocess.Popen:
    command = ["taskset", "-c", "1", str(arguments.program), "load", f"http://127.0.0.1:{port}/"]
    command += ["--rate", f"{rate}/s", "--duration", f"{seconds:.0f}s", "--clients", str(clients)]
    command += ["--connections", "16", "--header", f"x-client: {name}", "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def result(process: subprocess.Popen) -> dict:
    return json.loads(process.communicate()[0])


def one_turn(arguments, port: int, noisy: bool) -> dict:
    noise = None
    if noisy:
        noise = load(arguments, port, NOISY_RATE, 1, "noisy", arguments.seconds + 1)
    quiet = result(load(arguments, port, QUIET_RATE, QUIET, "quiet-{n}", arguments.seconds))
    rejected = result(noise)["rejected"] if noise else 0
    errors = sum(quiet["errors"].values()) + quiet["not_sent"]
    return {
        "p50": quiet["latency_ns"]["all"]["p50"],
        "p99": quiet["latency_ns"]["all"]["p99"],
        "failed": quiet["offered"] - quiet["admitted"] + errors,
        "rejected": rejected,
    }


def start(arguments, folder: Path, app: peers.Peer) -> peers.Peer:
    limit, per = f"{LIMIT}/1s", "header.x-client"
    return peers.sluice(arguments.program, folder, app, limit, core=0, per=per)


def measure(arguments) -> list:
    with tempfile.TemporaryDirectory() as name, peers.upstream(Path(name), 1) as app:
        with start(arguments, Path(name), app) as proxy:
            subjects = {
                "alone": lambda: one_turn(arguments, proxy.port, noisy=False),
                "beside": lambda: one_turn(arguments, proxy.port, noisy=True),
            }
            return rounds(arguments.runs, subjects)


def microseconds(measured: list, subject: str, percentile: str) -> str:
    return f"{median_of(measured, subject, lambda one: one[percentile] / 1000):.0f}"


def page(arguments, measured: list) -> tuple:
    names = {"alone": "alone", "beside": "beside the noisy one"}
    failed = {subject: sum(one[subject]["failed"] for one in measured) for subject in names}
    lines = heading("neighbour") + [
        f"{QUIET} clients at a quarter of their limit of {LIMIT} requests per second, by",
        f"themselves and beside one that sends {NOISY_RATE} per second. One worker, an upstream",
        "that responds with 1,000 bytes (nginx), open loop: latencies in microseconds count from",
        f"the scheduled start. Medians of {arguments.runs} turns of",
        f"{arguments.seconds:.0f} s each; failures of all turns together.",
        "",
        "| the quiet ones | p50 | p99 | failed |",
        "|---|---:|---:|---:|",
    ]
    for subject, words in names.items():
        cells = [microseconds(measured, subject, percentile) for percentile in ("p50", "p99")]
        lines.append(f"| {words} | " + " | ".join(cells + [str(failed[subject])]) + " |")
    lines.append("")
    p99 = median_ratio(measured, "beside", "alone", lambda one: one["p99"])
    table, met = budget_table(
        [
            ("requests of the quiet ones that failed", failed["beside"], "<=", 0),
            ("p99 of the quiet ones: times that without the noise", p99, "<=", 1.2),
        ]
    )
    if not all(one["beside"]["rejected"] for one in measured):
        raise SystemExit("the noisy client was never rejected: nothing was measured")
    return "\n".join(lines + table) + "\n", met


def main() -> None:
    parser = options(__doc__, "sluice")
    parser.add_argument("--seconds", type=float, default=2, help="for each turn")
    parser.add_argument("--runs", type=int, default=15)
    arguments = parser.parse_args()
    finish(arguments, *page(arguments, measure(arguments)))


if __name__ == "__main__":
    main()
