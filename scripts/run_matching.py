#!/usr/bin/env python3
"""Runs the tests of a build whose names match: Suite.Name of unit tests, of others what ctest says.

A unit test program is one test for ctest, or a few; this looks inside. Exit code 1 when a test
fails or none matches.
"""

import argparse
import json
import os
import re
import subprocess
import sys


def known_tests(build: str) -> list:
    """As ctest tells: name, command, labels, environment and working folder of each."""
    shown = subprocess.run(
        ["ctest", "--test-dir", build, "--show-only=json-v1"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    tests = []
    for test in json.loads(shown)["tests"]:
        properties = {one["name"]: one["value"] for one in test.get("properties", [])}
        tests.append((test["name"], test.get("command", []), properties.get("LABELS", [])))
    return tests


def cases_of(program: str) -> list:
    """Suite.Name of each test in a program of GoogleTest."""
    listed = subprocess.run(
        [program, "--gtest_list_tests"], capture_output=True, text=True, check=True
    ).stdout
    suite, cases = "", []
    for line in listed.splitlines():
        name = line.split("#")[0].rstrip()
        if not line.startswith(" "):
            suite = name
        else:
            cases.append(suite + name.strip())
    return cases


def run_units(programs: list, pattern: re.Pattern) -> list:
    """Exit codes of the programs that have a test to run."""
    codes = []
    for program in programs:
        matching = [case for case in cases_of(program) if pattern.search(case)]
        if matching:
            print(f"{os.path.basename(program)}: {len(matching)} tests", flush=True)
            chosen = "--gtest_filter=" + ":".join(matching)
            done = subprocess.run([program, "--gtest_brief=1", chosen], check=False)
            codes.append(done.returncode)
    return codes


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", help="a folder that was built")
    parser.add_argument("regex", type=re.compile)
    arguments = parser.parse_args()
    tests = known_tests(arguments.build)
    programs = sorted({command[0] for _, command, labels in tests if "unit" in labels and command})
    codes = run_units(programs, arguments.regex)
    others = [
        name
        for name, _, labels in tests
        if "unit" not in labels and arguments.regex.search(name)
    ]
    if others:
        exactly = "^(" + "|".join(map(re.escape, others)) + ")$"
        command = ["ctest", "--test-dir", arguments.build, "--output-on-failure", "-R", exactly]
        codes.append(subprocess.run(command, check=False).returncode)
    if not codes:
        print(f"no test matches {arguments.regex.pattern}", file=sys.stderr)
    sys.exit(0 if codes and not any(codes) else 1)


if __name__ == "__main__":
    main()
