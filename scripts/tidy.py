#!/usr/bin/env python3
"""Runs clang-tidy on the files that have changed since it had nothing to say of them.

A file is looked at again when it, anything of this project that it includes, or the configuration
has changed. What is known is kept in BUILD/tidy. Tests get the few checks that find mistakes in
tests. Files of one folder are looked at together, since most of the time goes into the headers that
they share. With --changed BASE only files that differ from that commit are looked at, and for a
header the file that is named like it, or else one that includes it. Exit code 1 when something was
found.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "include", "tests", "bench", "examples")
HEADERS = f"^{re.escape(str(ROOT))}/(include|src|tests)/"
# Of GCC alone: Clang takes it for a mistake.
UNKNOWN_TO_CLANG = re.compile(r"\s\"?-m(tune-ctrl|memset-strategy)=\S+")
INCLUDED = re.compile(rb'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
INCLUDE_FOLDERS = (ROOT / "include", ROOT / "src", ROOT / "tests", ROOT)
# The style of tests is for people to judge, and every check costs every one of their files time.
CHECKS_OF_TESTS = (
    "-*,clang-diagnostic-*,bugprone-use-after-move,bugprone-dangling-handle,"
    "bugprone-infinite-loop,bugprone-assert-side-effect,bugprone-sizeof-*,"
    "misc-unused-using-decls,readability-duplicate-include"
)

# As many as a unity build has in one.
FILES_TOGETHER = 12
OUTPUT = re.compile(r" -o \S+")


def is_test(path: str) -> bool:
    return path.endswith("_test.cc") or path.startswith(str(ROOT / "tests") + os.sep)


def commands(build: Path) -> list:
    """One for each file of the project that is compiled, in a form that Clang understands."""
    found = {}
    ours = tuple(str(ROOT / folder) + os.sep for folder in FOLDERS)
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        path = os.path.realpath(entry["file"])
        entry["command"] = UNKNOWN_TO_CLANG.sub("", entry["command"])
        if path.startswith(ours):
            found.setdefault(path, {**entry, "file": path})
    return list(found.values())


class Files:
    """What files of the project include, and what all of it hashes to."""

    def __init__(self) -> None:
        self.included: dict = {}

    def direct(self, path: str) -> list:
        """Those of the project that a file names, wherever they are found first."""
        if path not in self.included:
            content = Path(path).read_bytes()
            folders = (Path(path).parent, *INCLUDE_FOLDERS)
            names = [name.decode() for name in INCLUDED.findall(content)]
            found = [
                next((str(folder / name) for folder in folders if (folder / name).is_file()), None)
                for name in names
            ]
            self.included[path] = [os.path.realpath(one) for one in found if one]
        return self.included[path]

    def reached(self, path: str) -> set:
        """The file and everything that it includes, directly or not."""
        seen: set = set()
        waiting = [path]
        while waiting:
            file = waiting.pop()
            if file not in seen:
                seen.add(file)
                waiting.extend(self.direct(file))
        return seen

    def stamp(self, entry: dict, folder: Path, configuration: bytes) -> Path:
        digest = hashlib.sha256(configuration + entry["command"].encode())
        for path in sorted(self.reached(entry["file"])):
            digest.update(Path(path).read_bytes())
        return folder / digest.hexdigest()


def changed_since(base: str) -> set:
    def listed(*command) -> list:
        said = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, check=True).stdout
        return said.decode().splitlines()

    names = listed("diff", "--name-only", base)
    names += listed("ls-files", "--others", "--exclude-standard")
    return {str(ROOT / name) for name in names if (ROOT / name).is_file()}


def touched(entries: list, files: Files, base: str) -> list:
    """Entries of changed files, and one for each changed header."""
    changed = changed_since(base)
    chosen = {entry["file"]: entry for entry in entries if entry["file"] in changed}
    for header in sorted(path for path in changed if path.endswith(".h")):
        through = [entry for entry in entries if header in files.reached(entry["file"])]
        through.sort(key=lambda one: (Path(one["file"]).stem != Path(header).stem, one["file"]))
        if through:
            chosen.setdefault(through[0]["file"], through[0])
    return list(chosen.values())


def together(stale: list, folder: Path) -> list:
    """Stale entries as groups: an entry that stands for all of a group, with the stamps of all."""
    alike: dict = {}
    for entry, stamp in stale:
        path = entry["file"]
        flags = OUTPUT.sub("", entry["command"]).replace(path, "")
        # Names differ within a folder of the product; not in tests, fuzz targets and benchmarks.
        alone = is_test(path) or not path.startswith(str(ROOT / "src") + os.sep)
        key = (os.path.dirname(path), flags, path if alone else "")
        alike.setdefault(key, []).append((entry, stamp))
    groups = []
    for members in alike.values():
        for first in range(0, len(members), FILES_TOGETHER):
            part = members[first : first + FILES_TOGETHER]
            entry = joined([entry for entry, _ in part], folder / f"group_{len(groups)}.cc")
            groups.append((entry, is_test(part[0][0]["file"]), [stamp for _, stamp in part]))
    return groups


def joined(entries: list, file: Path) -> dict:
    """An entry for a file that includes those of all the entries."""
    if len(entries) == 1:
        return entries[0]
    hush = "// NOLINT(bugprone-suspicious-include)"
    lines = [f'#include "{entry["file"]}"  {hush}' for entry in entries]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = entries[0]["command"].replace(entries[0]["file"], str(file))
    return {**entries[0], "file": str(file), "command": command}


def look_at(path: str, short: bool, database: Path) -> str:
    """What there is to say; empty: nothing."""
    checks = [f"--checks={CHECKS_OF_TESTS}"] if short else []
    done = subprocess.run(
        ["clang-tidy-19", "--quiet", "-p", str(database), f"--header-filter={HEADERS}"]
        + [f"--config-file={ROOT / '.clang-tidy'}", *checks, path],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return ""
    # Findings are on standard output. Without one, the reason is on the other, or nowhere.
    return done.stdout or f"{path}: clang-tidy failed\n{done.stderr}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", type=Path, help="a folder that was configured")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--changed", metavar="BASE", help="only what differs from this commit")
    parser.add_argument("files", nargs="*", help="only these")
    arguments = parser.parse_intermixed_args()
    files = Files()
    entries = commands(arguments.build)
    if arguments.changed:
        entries = touched(entries, files, arguments.changed)
    wanted = {os.path.realpath(file) for file in arguments.files}
    entries = [entry for entry in entries if not wanted or entry["file"] in wanted]

    folder = arguments.build.resolve() / "tidy"
    folder.mkdir(exist_ok=True)
    configuration = (ROOT / ".clang-tidy").read_bytes() + CHECKS_OF_TESTS.encode()
    stamped = [(entry, files.stamp(entry, folder, configuration)) for entry in entries]
    stale = [(entry, stamp) for entry, stamp in stamped if not stamp.exists()]
    print(f"{len(entries) - len(stale)} of {len(entries)} files are clean already", file=sys.stderr)
    groups = together(stale, folder)
    database = json.dumps([entry for entry, _, _ in groups])
    (folder / "compile_commands.json").write_text(database, encoding="utf-8")
    found = set()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        running = {
            pool.submit(look_at, entry["file"], short, folder): stamps
            for entry, short, stamps in groups
        }
        for done in concurrent.futures.as_completed(running):
            said = done.result()
            if not said:
                for stamp in running[done]:
                    stamp.touch()
            elif said not in found:
                print(said, end="", flush=True)
            found.add(said)
    sys.exit(1 if found - {""} else 0)


if __name__ == "__main__":
    main()
