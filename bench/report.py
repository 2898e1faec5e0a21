"""What all comparisons share: options, where they were measured, and whether budgets hold."""

import argparse
import datetime
import os
import platform
import shlex
import sys
from pathlib import Path


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def options(about: str, program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--program", type=Path, required=True, help=f"{program}, built by the release preset"
    )
    parser.add_argument("--write", type=Path, help="where the page goes")
    return parser


def command(name: str) -> str:
    """What measures the same again."""
    given = argparse.ArgumentParser(add_help=False)
    given.add_argument("--program")
    given.add_argument("--write")
    others = given.parse_known_args()[1]
    return f"./dev bench {name}" + (f" -- {shlex.join(others)}" if others else "")


def finish(arguments: argparse.Namespace, text: str, met: bool) -> None:
    """Shows and stores the page. Exit code 1 when a budget is missed."""
    print(text, end="")
    if arguments.write:
        arguments.write.write_text(text, encoding="utf-8")
    sys.exit(0 if met else 1)


def heading(name: str) -> list:
    now = datetime.datetime.now(datetime.timezone.utc)
    return [
        f"# Benchmark: {name}",
        "",
        f"- date: {now:%Y-%m-%d %H:%M} UTC",
        f"- processor: {cpu_model()}, {os.cpu_count()} cores",
        f"- kernel: {platform.system()} {platform.release()}",
        f"- command: `{command(name)}`",
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
