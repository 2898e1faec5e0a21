#!/usr/bin/env python3
"""Compares our event loop with Boost.Asio, by running net_bench.

Each forwards requests in a process of its own, in turn, several times; what counts is the best run
of each. Exit code 1 when ours costs more processor time than the other.
"""

import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from report import finish, heading, options  # noqa: E402

SUBJECTS = ("sluice", "asio")


def run(program: Path, subject: str, timers: bool) -> dict:
    command = [str(program), subject] + (["--timers"] if timers else [])
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def measure(program: Path, runs: int) -> dict:
    best: dict = {}
    for turn in range(runs):
        for timers in (False, True):
            for subject in SUBJECTS:
                print(f"{turn + 1}/{runs}: {subject}", file=sys.stderr)
                result = run(program, subject, timers)
                key = (subject, timers)
                if key not in best or result["cpu_ns"] < best[key]["cpu_ns"]:
                    best[key] = result
    return best


def rows(best: dict):
    boost = best["asio", False]["boost"].replace("_", ".")
    yield f"| forwarding | sluice | Boost.Asio {boost} | ratio |"
    yield "|---" + "|---:" * (len(SUBJECTS) + 1) + "|"
    for timers, what in ((False, "alone"), (True, "with a deadline put off by each request")):
        ours, theirs = (best[subject, timers]["cpu_ns"] for subject in SUBJECTS)
        yield f"| {what} | {ours / 1000:.2f} | {theirs / 1000:.2f} | {ours / theirs:.2f} |"


def page(best: dict, runs: int) -> tuple:
    lines = heading("net") + [
        "One thread forwards requests of 300 bytes and responses of 1200 over loopback, from 32",
        "clients with one request under way each, to an upstream with as many connections; all of",
        "them stay open, nothing is parsed. Processor time of that thread in microseconds per",
        f"request, best of {runs} runs, in turn.",
        "",
        *rows(best),
        "",
        "Both make the same two reads and two writes per request, which are most of it. Asio also",
        "tries every read before it waits, mostly in vain, and keeps an operation for each; our",
        "loop remembers what is ready.",
    ]
    met = all(best["sluice", t]["cpu_ns"] <= best["asio", t]["cpu_ns"] for t in (False, True))
    return "\n".join(lines) + "\n", met


def main() -> None:
    parser = options(__doc__, "net_bench")
    parser.add_argument("--runs", type=int, default=40)
    arguments = parser.parse_args()
    best = measure(arguments.program, arguments.runs)
    finish(arguments, *page(best, arguments.runs))


if __name__ == "__main__":
    main()
