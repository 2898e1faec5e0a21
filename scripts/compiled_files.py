#!/usr/bin/env python3
"""Passes on those lines of standard input that name a file of a compile_commands.json."""

import json
import os
import sys


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as database:
        compiled = {os.path.realpath(entry["file"]) for entry in json.load(database)}
    for line in sys.stdin:
        if os.path.realpath(line.rstrip("\n")) in compiled:
            sys.stdout.write(line)


if __name__ == "__main__":
    main()
