#!/usr/bin/env python3
"""Names the tests that failed, with the end of what each said, from the files that ctest left.

Meant for the last lines of a long run: what failed in the middle of it has scrolled away by then.
"""

import argparse
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def last_lines(text: str, count: int) -> list:
    lines = [line.rstrip() for line in text.strip().splitlines()]
    left_out = len(lines) - count
    return lines if left_out <= 0 else [f"... {left_out} lines before"] + lines[-count:]


def why(case: ElementTree.Element) -> str | None:
    """In a word, for one that failed or could not run; those that were skipped are fine."""
    if case.get("status") == "fail":
        failure = case.find("failure")
        return failure.get("message") if failure is not None else ""
    skipped = case.find("skipped")
    message = skipped.get("message") if skipped is not None else ""
    return None if case.get("status") == "run" or message.startswith("SKIP_") else message


def failures(report: Path) -> list:
    """(name, why, what it said) of each."""
    return [
        (case.get("name"), why(case), case.findtext("system-out") or "")
        for case in ElementTree.parse(report).iter("testcase")
        if why(case) is not None
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reports", nargs="+", type=Path, help="written by ctest --output-junit")
    parser.add_argument("--lines", type=int, default=40, help="of each test's output (default 40)")
    arguments = parser.parse_args()
    for report in arguments.reports:
        if not report.exists():
            print(f"{report}: no test ran", file=sys.stderr)
            continue
        for name, reason, said in failures(report):
            print(f"\nfailed: {name} ({report}) {reason}".rstrip(), file=sys.stderr)
            for line in last_lines(said, arguments.lines):
                print(f"    {line}", file=sys.stderr)


if __name__ == "__main__":
    main()
