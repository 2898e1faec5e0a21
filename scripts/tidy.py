#!/usr/bin/env python3
"""Runs clang-tidy on the files of a build that have changed since it had nothing to say of them.

A file is looked at again when it, anything of this project that it includes, or the configuration
has changed. What is known is kept in BUILD/tidy. Exit code 1 when something was found.
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
HEADERS = f"^{re.escape(str(ROOT))}/(include|src|tests)/"
# Of GCC alone: Clang takes it for a mistake.
UNKNOWN_TO_CLANG = re.compile(r"\s\"?-m(tune-ctrl|memset-strategy)=\S+")
OUTPUT = re.compile(r"\s-o (\S+)")


def commands(build: Path) -> list:
    """One for each file that was compiled, in a form that Clang understands."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        entry["command"] = UNKNOWN_TO_CLANG.sub("", entry["command"])
        found.setdefault(os.path.realpath(entry["file"]), entry)
    return list(found.values())


def dependencies(build: Path) -> dict:
    """object -> the files of this project that went into it."""
    said = subprocess.run(
        ["ninja", "-C", str(build), "-t", "deps"], capture_output=True, text=True, check=True
    ).stdout
    found: dict = {}
    files: list = []
    for line in said.splitlines():
        if line.startswith("    "):
            path = os.path.realpath(build / line.strip())
            if path.startswith(str(ROOT) + os.sep):
                files.append(path)
        elif ": #deps" in line:
            files = found.setdefault(line.split(": #deps", 1)[0], [])
    return found


class Stamps:
    """Which files were clean, by all that they depend on."""

    def __init__(self, build: Path):
        self.folder = build / "tidy"
        self.folder.mkdir(exist_ok=True)
        self.depends = dependencies(build)
        self.hashes: dict = {}
        self.configuration = self.hash_of(str(ROOT / ".clang-tidy"))

    def hash_of(self, path: str) -> bytes:
        if path not in self.hashes:
            self.hashes[path] = hashlib.sha256(Path(path).read_bytes()).digest()
        return self.hashes[path]

    def of(self, entry: dict) -> Path | None:
        """Nothing where nobody knows what it depends on: it was not compiled yet."""
        files = self.depends.get(OUTPUT.search(entry["command"]).group(1))
        if not files:
            return None
        digest = hashlib.sha256(self.configuration + entry["command"].encode())
        for path in sorted(files):
            digest.update(self.hash_of(path))
        return self.folder / digest.hexdigest()


def look_at(entry: dict, database: Path) -> str:
    """What there is to say; empty: nothing."""
    done = subprocess.run(
        ["clang-tidy-19", "--quiet", "-p", str(database), f"--header-filter={HEADERS}"]
        + [entry["file"]],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return ""
    # Findings are on standard output. Who died without one says why on the other, or not at all.
    return done.stdout or f"{entry['file']}: clang-tidy failed\n{done.stderr}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", type=Path, help="a folder that was built")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("files", nargs="*", help="only these")
    arguments = parser.parse_intermixed_args()
    wanted = {os.path.realpath(file) for file in arguments.files}
    entries = [
        entry
        for entry in commands(arguments.build)
        if not wanted or os.path.realpath(entry["file"]) in wanted
    ]
    stamps = Stamps(arguments.build)
    (stamps.folder / "compile_commands.json").write_text(json.dumps(entries), encoding="utf-8")
    stamped = [(entry, stamps.of(entry)) for entry in entries]
    stale = [(entry, stamp) for entry, stamp in stamped if not (stamp and stamp.exists())]
    print(f"{len(entries) - len(stale)} of {len(entries)} files are clean already", file=sys.stderr)
    found = set()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        running = {pool.submit(look_at, entry, stamps.folder): stamp for entry, stamp in stale}
        for done in concurrent.futures.as_completed(running):
            said = done.result()
            if not said and running[done]:
                running[done].touch()
            if said not in found:
                print(said, end="", flush=True)
            found.add(said)
    sys.exit(1 if found - {""} else 0)


if __name__ == "__main__":
    main()
