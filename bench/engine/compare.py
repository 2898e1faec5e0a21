#!/usr/bin/env python3
"""Compares a whole decision of the engine with a bare one of the table, by running engine_bench.

Both run in one process, several times, with small and with huge pages; what counts is the median of
the runs' ratios. Exit code 1 when a budget is missed.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from pairs import median_ratio  # noqa: E402
from report import budget_table, finish, heading, options  # noqa: E402

PAGES = {"small": "4 KiB pages", "huge": "huge pages"}
ROWS = {
    ("table", 1): "table, bare: yes or no",
    ("table_answered", 1): "table, bare: with a full decision",
    ("engine", 10): "engine, 10 rules",
    ("engine", 1000): "engine, 1,000 rules",
    ("engine", 10000): "engine, 10,000 rules",
    ("engine_batch", 1000): "engine, 1,000 rules, in batches of 16",
    ("match", 10): "matching alone, 10 rules",
    ("match", 1000): "matching alone, 1,000 rules",
    ("match", 10000): "matching alone, 10,000 rules",
    ("match_fields", 10): "matching alone, 10 rules distinguished by query, cookie, header prefix",
    ("match_fields", 1000): "the same, 1,000 rules",
    ("match_fields", 10000): "the same, 10,000 rules",
}


def measure(arguments: argparse.Namespace) -> list:
    """One dict for each run."""
    runs: list = []
    for turn in range(arguments.runs):
        runs.append({})
        for pages in PAGES if turn % 2 == 0 else reversed(PAGES):
            print(f"{turn + 1}/{arguments.runs}: {pages} pages", file=sys.stderr)
            command = [str(arguments.program), "--keys", str(arguments.keys)]
            command += ["--seconds", str(arguments.seconds)]
            if pages == "small":
                command.append("--small-pages")
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            for line in map(json.loads, done.stdout.splitlines()):
                runs[-1][pages, line["what"], line["rules"]] = line["ns"]
    return runs


def median(runs: list, key: tuple) -> float:
    return statistics.median(one[key] for one in runs)


def budgets(runs: list):
    for pages, name in PAGES.items():
        ratio = median_ratio(runs, (pages, "engine", 1000), (pages, "table_answered", 1))
        yield f"engine, one rule of 1,000, {name}: times the bare decision", ratio, "<=", 2
    match = median_ratio(runs, ("huge", "match", 10000), ("huge", "match", 10))
    yield "matching against 10,000 rules: times the same with 10", match, "<=", 3
    fields = median_ratio(runs, ("huge", "match_fields", 10000), ("huge", "match_fields", 10))
    yield "the same for rules distinguished by query, cookie and header prefix", fields, "<=", 3
    load = min(median(runs, (pages, "load", 10000)) for pages in PAGES) / 1e9
    yield "10,000 different rules, from text to the first decision: seconds", load, "<", 1


def page(arguments: argparse.Namespace, runs: list) -> tuple:
    lines = heading("engine") + [
        f"{arguments.keys} clients by address, all with usage; five headers, one API key among",
        "a thousand; one rule matches the request. The engine gives full decisions: what is",
        "left, when it is reset, when to retry. So does the bare decision it is compared with.",
        f"Medians of {arguments.runs} runs of {arguments.seconds} s, in ns of one thread's",
        "processor time per request; of each run the best slice of 10,240 requests, on both sides.",
        "",
        "| what | " + " | ".join(PAGES.values()) + " |",
        "|---" * (len(PAGES) + 1) + "|",
    ]
    for (what, rules), name in ROWS.items():
        cells = [f"{median(runs, (pages, what, rules)):.0f}" for pages in PAGES]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    table, met = budget_table(budgets(runs))
    lines += ["", *table, ""]
    lines += [
        "Beside a bare yes or no, which says neither what is left nor when to retry, and of",
        "which the processor begins several before the memory of the first is there:",
    ]
    for pages, name in PAGES.items():
        ratio = median_ratio(runs, (pages, "engine", 1000), (pages, "table", 1))
        lines.append(f"{ratio:.2f} times with {name}.")
    return "\n".join(lines) + "\n", met


def main() -> None:
    parser = options(__doc__, "engine_bench")
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=float, default=0.5, help="for each load of each run")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    finish(arguments, *page(arguments, measure(arguments)))


if __name__ == "__main__":
    main()
