#!/usr/bin/env python3
"""Changes source files on purpose, one at a time, and names the changes that no test notices.

Each change is made in place, built, tested and undone; the file is restored however the script
ends. A change that no test notices (a survivor) is either one that makes no difference, or a test
that is missing.

  scripts/mutate.py src/identity \\
      --build 'ninja -C build/dev identity_test' --test build/dev/bin/identity_test
  scripts/mutate.py src/engine/key.cc --count 5 --seed 7 \\
      --build 'ninja -C build/asan engine_test' --test 'build/asan/bin/engine_test --gtest_brief=1'

Exits 0 if every change was noticed, 1 if some survived, 2 if it could not begin.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import time

# Strings and comments are blanked before anything is looked for; places stay the same.
HIDDEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)

# name, what is looked for, what stands instead
SWAPS = [
    ("comparison", r"(?<=\s)<=(?=\s)", "<"),
    ("comparison", r"(?<=\s)>=(?=\s)", ">"),
    ("comparison", r"(?<=\s)<(?=\s)", "<="),
    ("comparison", r"(?<=\s)>(?=\s)", ">="),
    ("equality", r"(?<=\s)==(?=\s)", "!="),
    ("equality", r"(?<=\s)!=(?=\s)", "=="),
    ("sum", r"(?<=\s)\+(?=\s)", "-"),
    ("sum", r"(?<=\s)-(?=\s)", "+"),
    ("logic", r"(?<=\s)&&(?=\s)", "||"),
    ("logic", r"(?<=\s)\|\|(?=\s)", "&&"),
    ("truth", r"\btrue\b", "false"),
    ("truth", r"\bfalse\b", "true"),
]
NUMBER = re.compile(r"(?<![\w.'])(\d+)(?=[UL]*\b)(?![\w.']*[.'xXeE])")
CONDITION = re.compile(r"\bif (?:constexpr )?\((?!.*;)(.+?)\)(?= [^&|<>=+*/-]|$)")
STATEMENT = re.compile(
    r"^\s*(?!return\b|const\b|using\b|case\b|break\b|auto\b|static\b|constexpr\b|friend\b)"
    r"[\w:.>()\[\]*+-]+(?:\(.*\)| (?:=|\+=|-=|\|=|&=) .+|\+\+);\s*$"
)


def blanked(text):
    """The same text with its strings and comments replaced by blanks."""
    return HIDDEN.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def is_code(line):
    """Whether a change of the line can make a difference, by its first look."""
    word = line.strip()
    declared = ("#", "static_assert", "template", "using ", "namespace", "[[", "inline constexpr")
    return bool(word) and not word.startswith(declared)


def changes_of(text):
    """Every change of a text: (place, size, instead, kind)."""
    found = []
    start = 0
    for line in blanked(text).splitlines(keepends=True):
        bare = line.rstrip("\n")
        if is_code(bare):
            found += changes_of_line(bare, start)
        start += len(line)
    return found


def changes_of_line(line, start):
    """Every change of one line that begins at `start`."""
    found = []
    for kind, pattern, instead in SWAPS:
        if kind == "comparison" and "template" in line:
            continue
        for one in re.finditer(pattern, line):
            found.append((start + one.start(), len(one[0]), instead, kind))
    for one in NUMBER.finditer(line):
        number = int(one[1])
        for other in {number + 1, max(number - 1, 0)} - {number}:
            found.append((start + one.start(), len(one[0]), str(other), "constant"))
    for one in CONDITION.finditer(line):
        if one[1].count("(") == one[1].count(")"):
            found.append((start + one.start(1), len(one[1]), None, "condition"))
    if STATEMENT.match(line):
        blanks = len(line) - len(line.lstrip())
        found.append((start + blanks, len(line) - blanks, "", "statement"))
    return found


def sources(paths):
    """The .cc and .h files below the paths that are no tests."""
    for path in paths:
        if os.path.isfile(path):
            yield path
            continue
        if not os.path.isdir(path):
            raise SystemExit(f"mutate: there is no {path}; name a source file or a folder")
        for folder, _, names in os.walk(path):
            for name in sorted(names):
                if re.search(r"(?<!_test)(?<!_bench)(?<!_fixture)\.(cc|h)$", name):
                    yield os.path.join(folder, name)


class Mutated:
    """A file with one change, until the end of the block."""

    def __init__(self, path, change):
        self.path = path
        with open(path, encoding="utf-8", newline="") as stream:
            self.before = stream.read()
        place, size, instead, self.kind = change
        old = self.before[place : place + size]
        new = f"!({old})" if instead is None else instead
        self.after = self.before[:place] + new + self.before[place + size :]
        self.line = self.before.count("\n", 0, place) + 1

    def __enter__(self):
        self.write(self.after)
        return self

    def __exit__(self, *_):
        self.write(self.before)

    def write(self, text):
        with open(self.path, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)

    def shown(self):
        """The line before and after."""
        old, new = (text.split("\n")[self.line - 1].strip() for text in (self.before, self.after))
        return f"{self.path}:{self.line}: {self.kind}\n  - {old}\n  + {new or '(nothing)'}"


def run(command, timeout):
    """Whether a command succeeds within so many seconds. Ends all that it started."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        command, shell=True, stdout=quiet, stderr=quiet, start_new_session=True
    ) as process:
        try:
            return process.wait(timeout) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("paths", nargs="+", metavar="PATH", help="a source file, or a folder of them")
    add("--build", default="true", metavar="COMMAND", help="builds what the tests need")
    add("--test", required=True, metavar="COMMAND", help="fails if a change is noticed")
    add("--count", type=int, default=20, metavar="N", help="so many changes (default 20)")
    add("--seed", type=int, default=1, metavar="N", help="chooses them (default 1)")
    add("--timeout", type=int, default=600, metavar="S", help="seconds of a command (default 600)")
    add("--list", action="store_true", help="show the changes, and make none")
    return parser.parse_args()


def chosen(arguments):
    """The changes that the seed chooses, in the order of the files."""
    everything = []
    for path in sources(arguments.paths):
        with open(path, encoding="utf-8", newline="") as stream:
            everything += [(path, change) for change in changes_of(stream.read())]
    count = min(arguments.count, len(everything))
    picked = random.Random(arguments.seed).sample(range(len(everything)), count)
    return [everything[i] for i in sorted(picked)]


def main():
    arguments = parse_arguments()
    # So that a file is restored also when this is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    picked = chosen(arguments)
    if arguments.list:
        for path, change in picked:
            print(Mutated(path, change).shown())
        return 0
    if not run(arguments.build, arguments.timeout) or not run(arguments.test, arguments.timeout):
        print("mutate: the tests fail without any change; repair them first", file=sys.stderr)
        return 2
    counts = {"noticed": 0, "does not build": 0, "survived": 0}
    try:
        for path, change in picked:
            began = time.monotonic()
            with Mutated(path, change) as mutated:
                if not run(arguments.build, arguments.timeout):
                    outcome = "does not build"
                elif not run(arguments.test, arguments.timeout):
                    outcome = "noticed"
                else:
                    outcome = "survived"
            counts[outcome] += 1
            print(f"{outcome} ({time.monotonic() - began:.0f} s): {mutated.shown()}", flush=True)
    except KeyboardInterrupt:
        print("mutate: interrupted; the file is restored", file=sys.stderr)
    finally:
        # What is built shall be of the files as they are.
        run(arguments.build, arguments.timeout)
    print(", ".join(f"{number} {outcome}" for outcome, number in counts.items()))
    return 1 if counts["survived"] > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
