"""What the pages of all comparisons share: where they were measured, and whether budgets hold."""

import datetime
import os
import platform
from pathlib import Path


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def heading(name: str) -> list:
    now = datetime.datetime.now(datetime.timezone.utc)
    return [
        f"# Benchmark: {name}",
        "",
        f"- date: {now:%Y-%m-%d %H:%M} UTC",
        f"- processor: {cpu_model()}, {os.cpu_count()} cores",
        f"- kernel: {platform.system()} {platform.release()}",
        f"- command: `./dev bench {name}`",
        "",
    ]


def holds(value: float, relation: str, bound: float) -> bool:
    return {">=": value >= bound, "<=": value <= bound, "<": value < bound}[relation]


def budget_table(budgets) -> tuple:
    """Rows of (what, measured, relation, bound) as a table, and whether all of them hold."""
    lines = ["| budget | measured | promised | |", "|---|---:|---:|---|"]
    met = True
    for what, value, relation, bound in budgets:
        good = holds(value, relation, bound)
        met &= good
        lines.append(
            f"| {what} | {value:.3g} | {relation} {bound} | {'holds' if good else 'MISSED'} |"
        )
    return lines, met
