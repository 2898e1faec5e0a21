"""How ./dev installs packages: what it lacks, and never at the expense of another one.

Programs of Debian's package manager are replaced by scripts that write down how they were called.
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

DPKG_QUERY = """#!/bin/sh
# As dpkg-query does, of the names that it was given those that are installed.
for name in "$@"; do
  grep -qxF -e "$name" "$INSTALLED" && echo "ii  $name"
done
exit 1 # there is always one that it does not know
"""
APT_GET = """#!/bin/sh
echo "$*" >> "$CALLS"
case $* in *install*) exit "$APT_STATUS" ;; esac
"""
APT_CACHE = """#!/bin/sh
shift
for name in "$@"; do printf '%s:\\n  Candidate: 1\\n' "$name"; done
"""
SUDO = """#!/bin/sh
shift
exec "$@"
"""


class Packages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        programs = {
            "dpkg-query": DPKG_QUERY,
            "apt-get": APT_GET,
            "apt-cache": APT_CACHE,
            "sudo": SUDO,
        }
        for name, text in programs.items():
            path = self.folder / name
            path.write_text(text)
            path.chmod(0o755)

    def packages_of(self, step):
        table = 'eval "$(sed -n "/^declare -Ar packages/,/^)/p" dev)"'
        words = subprocess.check_output(
            ["bash", "-c", f"{table}; echo ${{packages[{step}]}}"], cwd=ROOT, text=True
        ).split()
        self.assertGreater(len(words), 3, step)
        return words

    def run_dev(self, *arguments, installed=(), status=0):
        """Exit code, standard error, and all calls of apt-get."""
        (self.folder / "installed").write_text("".join(name + "\n" for name in installed))
        calls = self.folder / "calls"
        calls.write_text("")
        environment = os.environ | {
            "PATH": f"{self.folder}:{os.environ['PATH']}",
            "INSTALLED": str(self.folder / "installed"),
            "CALLS": str(calls),
            "APT_STATUS": str(status),
        }
        done = subprocess.run(
            ["./dev", *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr, calls.read_text().splitlines()

    def test_nothing_is_called_when_all_is_there(self):
        first_of_each = [word.split("|")[0] for word in self.packages_of("bench")]
        code, said, calls = self.run_dev("setup", "bench", installed=first_of_each)
        self.assertEqual((code, calls), (0, []), said)

    def test_any_of_several_will_do(self):
        (several,) = [word for word in self.packages_of("bench") if "|" in word]
        others = [word for word in self.packages_of("bench") if word != several]
        self.assertEqual(several, "libboost-dev|libboost1.81-dev")
        for one in several.split("|"):
            code, said, calls = self.run_dev("setup", "bench", installed=[*others, one])
            self.assertEqual((code, calls), (0, []), said)
        code, said, calls = self.run_dev("setup", "bench", installed=others)
        self.assertEqual(code, 0, said)
        self.assertRegex(calls[-1], r" install .*--no-remove .*recommends libboost-dev$")

    def test_no_package_is_removed(self):
        for status in (0, 100):
            code, said, calls = self.run_dev("setup", status=status)
            self.assertEqual(code, 3 if status else 0, said)
            installs = [call for call in calls if " install " in f" {call} "]
            self.assertEqual(len(installs), 1, calls)
            self.assertIn(" --no-remove ", installs[0])
            for call in calls:
                self.assertNotRegex(call, r"\b(?<!--no-)(remove|purge|autoremove|dist-upgrade)\b")
                self.assertNotIn("--allow-remove", call)
        self.assertIn("could not be installed without removing any", said)

    def test_the_command_to_paste_removes_none_either(self):
        script = 'say() { echo "$*" >&2; }; source scripts/packages.sh; explain_missing one two'
        done = subprocess.run(
            ["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r"apt-get install --no-remove .* one two\n")

    # What the program and its tests are built from is there on every Debian, whatever Boost it has.
    def test_boost_is_for_benchmarks_alone(self):
        for step in ("build", "test", "lint", "fuzz"):
            self.assertFalse([word for word in self.packages_of(step) if "boost" in word], step)


if __name__ == "__main__":
    unittest.main()
