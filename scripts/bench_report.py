#!/usr/bin/env python3
"""Turns Google Benchmark's JSON into a page that says what was measured, where, and how.

The machine, the compiler, the command and the date are added to the JSON, too. The best of several
repetitions is what the code costs; the median shows how noisy the machine was.
"""

import argparse
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from pathlib import Path

NANOS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def cached(cache: Path, name: str) -> str:
    found = re.search(rf"^{name}:\w+=(.*)$", cache.read_text(encoding="utf-8"), re.MULTILINE)
    return found.group(1) if found else ""


def compiler(cache: Path) -> str:
    program = cached(cache, "CMAKE_CXX_COMPILER")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    flags = [cached(cache, "CMAKE_CXX_FLAGS"), cached(cache, "CMAKE_CXX_FLAGS_RELEASE")]
    return " ".join([version.stdout.splitlines()[0], *filter(None, flags)])


def circumstances(arguments: argparse.Namespace) -> dict:
    now = datetime.datetime.now(datetime.timezone.utc)
    return {
        "date": now.strftime("%Y-%m-%d %H:%M UTC"),
        "processor": f"{cpu_model()}, {os.cpu_count()} cores",
        "kernel": f"{platform.system()} {platform.release()}",
        "compiler": compiler(arguments.cache),
        "command": arguments.command,
    }


def in_source_order(run: dict) -> tuple:
    return run["family_index"], run["per_family_instance_index"]


def times_by_name(report: dict) -> dict:
    times: dict = {}
    for run in sorted(report["benchmarks"], key=in_source_order):
        if run.get("error_occurred"):
            sys.exit(f"{run['name']}: {run['error_message']}")
        if run["run_type"] == "iteration":
            nanos = run["cpu_time"] * NANOS[run["time_unit"]]
            times.setdefault(run["run_name"], []).append(nanos)
    return times


def table(times: dict):
    width = max(map(len, times))
    yield f"| {'benchmark':<{width}} | best ns | median ns | million per second |"
    yield f"|{'-' * (width + 2)}|--------:|----------:|-------------------:|"
    for name, nanos in times.items():
        best, median = min(nanos), statistics.median(nanos)
        yield f"| {name:<{width}} | {best:7.1f} | {median:9.1f} | {1e3 / best:18.1f} |"


def page(name: str, facts: dict, times: dict) -> str:
    lines = [f"# Benchmark: {name}", ""]
    lines += [f"- {key}: {value}" for key, value in facts.items()]
    repetitions = max(map(len, times.values()))
    lines += ["", f"CPU time of one decision (one digest), of {repetitions} runs. One thread.", ""]
    lines += table(times)
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("json", type=Path, help="Google Benchmark's output; facts are added to it")
    parser.add_argument("--command", required=True, help="what was run")
    parser.add_argument("--cache", type=Path, required=True, help="CMakeCache.txt of the build")
    parser.add_argument("--write", type=Path, required=True, help="where the page goes")
    arguments = parser.parse_args()

    report = json.loads(arguments.json.read_text(encoding="utf-8"))
    times = times_by_name(report)
    if not times:
        sys.exit("no benchmark ran; does the filter match any?")
    facts = circumstances(arguments)
    report["circumstances"] = facts
    arguments.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    text = page(arguments.json.stem, facts, times)
    arguments.write.write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
