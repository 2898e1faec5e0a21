"""Runs the real binary. Its path comes from SLUICE_BINARY."""

import json
import os
import subprocess
import tempfile
import unittest
from dataclasses import dataclass

BINARY = os.environ["SLUICE_BINARY"]

# Whatever the mask of who runs the tests: files that everybody may change are not believed.
os.umask(0o022)


@dataclass
class Completed:
    out: str
    err: str
    code: int

    def lines(self):
        return self.out.splitlines()

    def json_lines(self):
        return [json.loads(line) for line in self.lines()]


def sluice(*arguments, stdin="", timeout=60):
    """Runs `sluice ARGUMENTS...` with the given text on standard input."""
    done = subprocess.run(
        [BINARY, *map(str, arguments)],
        input=stdin.encode("utf-8", "surrogateescape"),
        capture_output=True,
        timeout=timeout,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    return Completed(
        done.stdout.decode("utf-8", "replace"),
        done.stderr.decode("utf-8", "replace"),
        done.returncode,
    )


class ScenarioTest(unittest.TestCase):
    """A test with a temporary folder and shorthands for the usual assertions."""

    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def file(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8", newline="") as stream:
            stream.write(content)
        return path

    def ok(self, *arguments, stdin=""):
        done = sluice(*arguments, stdin=stdin)
        self.assertEqual((done.code, done.err), (0, ""), done.out)
        return done

    def verdicts(self, *arguments, stdin=""):
        return self.ok("replay", *arguments, stdin=stdin).out.split()

    def refuses(self, code, pattern, *arguments, stdin=""):
        """Exits with the code and one message that matches; prints no stack, no second opinion."""
        done = sluice(*arguments, stdin=stdin)
        self.assertEqual(done.code, code, done.err or done.out)
        self.assertRegex(done.err, pattern)
        self.assertTrue(done.err.startswith("sluice"), done.err)
        return done
