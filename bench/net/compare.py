#!/usr/bin/env python3
"""Compares our event loop with Boost.Asio, by running net_bench.

Each forwards requests in a process of its own, in turn, several times; what counts is the best run
of each. Exit code 1 when ours costs more processor time than the other.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

SUBJECTS = {"sluice": "sluice", "asio": "Boost.Asio 1.81"}


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


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
    yield "| forwarding | " + " | ".join(SUBJECTS.values()) + " | ratio |"
    yield "|---" + "|---:" * (len(SUBJECTS) + 1) + "|"
    for timers, what in ((False, "alone"), (True, "with a deadline put off by each request")):
        ours, theirs = (best[subject, timers]["cpu_ns"] for subject in SUBJECTS)
        yield f"| {what} | {ours / 1000:.2f} | {theirs / 1000:.2f} | {ours / theirs:.2f} |"


def page(best: dict, runs: int) -> str:
    now = datetime.datetime.now(datetime.timezone.utc)
    lines = [
        "# Benchmark: net",
        "",
        f"- date: {now:%Y-%m-%d %H:%M} UTC",
        f"- processor: {cpu_model()}, {os.cpu_count()} cores",
        f"- kernel: {platform.system()} {platform.release()}",
        "- command: `./dev bench net`",
        "",
        "One thread forwards requests of 300 bytes and answers of 1200 over loopback, from 32",
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
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    best = measure(arguments.program, arguments.runs)
    text = page(best, arguments.runs)
    print(text)
    if arguments.write:
        arguments.write.write_text(text, encoding="utf-8")
    slower = [t for t in (False, True) if best["sluice", t]["cpu_ns"] > best["asio", t]["cpu_ns"]]
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
