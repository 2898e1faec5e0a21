#!/usr/bin/env python3
"""Checks the text files that standard input names, one a line, and exits with 1 on any finding.

No trailing whitespace, a final newline, and lines of at most 100 characters, 120 in prose. Tables,
links and preformatted lines of prose may be longer. Binary files and recorded data are left alone.
"""

import sys
from pathlib import Path

CODE_COLUMNS = 100
PROSE_COLUMNS = 120
PROSE = {".md", ".txt"}
UNCHECKED = (
    ".clang-tidy",
    "LICENSE",
    "bench/results/",
    "docs/configuration.md",  # written by the program
    "docs/pictures/",
    "examples/identity/token",
    "examples/rules/traces/",
    "tests/corpus/",
)


def may_be_long(line: str, prose: bool) -> bool:
    if "://" in line:
        return True
    return prose and (line.lstrip().startswith("|") or line.startswith("    "))


def findings(path: Path, text: str):
    prose = path.suffix in PROSE
    columns = PROSE_COLUMNS if prose else CODE_COLUMNS
    for number, line in enumerate(text.split("\n"), start=1):
        if line != line.rstrip():
            yield number, "trailing whitespace"
        if len(line) > columns and not may_be_long(line, prose):
            yield number, f"{len(line)} characters, more than {columns}"
    if text and not text.endswith("\n"):
        yield text.count("\n") + 1, "no newline at the end of the file"


def main() -> int:
    found = 0
    for name in sys.stdin.read().splitlines():
        if name.startswith(UNCHECKED):
            continue
        content = Path(name).read_bytes()
        if b"\0" in content:
            continue
        for number, what in findings(Path(name), content.decode("utf-8", errors="replace")):
            print(f"{name}:{number}: {what}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
