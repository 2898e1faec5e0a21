"""packaging/: the units and the container file, by the tools of those who read them where these are
installed, and by running what they run."""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
import unittest
from unittest import mock

from gateway_support import PATIENCE, GatewayTest
from support import BINARY, sluice

ROOT = pathlib.Path(__file__).resolve().parents[2]
SYSTEMD = ROOT / "packaging" / "systemd"
CONTAINERFILE = ROOT / "packaging" / "container" / "Containerfile"
INSTALLED = "/usr/local/bin/sluice"
ANALYZE = shutil.which("systemd-analyze") or "systemd-analyze"  # what is missing says so


def settings(unit):
    """(section, key, value) of every line; keys may stand several times."""
    section, found = None, []
    for line in (SYSTEMD / unit).read_text(encoding="ascii").splitlines():
        if not line or line.startswith("#"):
            continue
        if heading := re.fullmatch(r"\[(\w+)\]", line):
            section = heading.group(1)
            continue
        key, _, value = line.partition("=")
        if not section or not re.fullmatch(r"[A-Z][A-Za-z]+", key) or not value:
            raise AssertionError(f"{unit}: cannot read '{line}'")
        found.append((section, key, value))
    return found


def values(unit, key):
    return [value for _, name, value in settings(unit) if name == key]


def knows(command):
    """Whether the program has the command with all of its options, by its help."""
    described = sluice(command[0], "--help").out
    options = {word for word in command if word.startswith("-")}
    is_known = described != sluice("--help").out  # which is shown for unknown words
    return is_known and options <= set(re.findall(r"--?[\w-]+", described))


class Units(GatewayTest):
    def copies(self):
        """With the program where it is in this test, and a user that exists here."""
        folder = pathlib.Path(self.folder)
        for unit in ("sluice.service", "sluice.socket"):
            text = (SYSTEMD / unit).read_text(encoding="ascii").replace(INSTALLED, BINARY)
            self.file(unit, text.replace("=sluice\nGroup=sluice\n", "=root\nGroup=root\n"))
        return [str(folder / unit) for unit in ("sluice.service", "sluice.socket")]

    def run_analyze(self, *arguments):
        return subprocess.run(
            [ANALYZE, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def test_systemd_understands_them(self):
        done = self.run_analyze("verify", "--man=no", "--recursive-errors=no", *self.copies())
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    # 2.0 of 10, where 0 is a service that can do nothing.
    def test_the_service_is_exposed_to_little(self):
        unit = str(SYSTEMD / "sluice.service")
        done = self.run_analyze(
            "security", "--offline=true", "--threshold=20", "--no-pager", unit
        )
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_what_matters_is_there(self):
        for key, value in (
            ("Type", "notify"),
            ("User", "sluice"),
            ("NoNewPrivileges", "yes"),
            ("ProtectSystem", "strict"),
            ("ProtectHome", "yes"),
            ("StateDirectory", "sluice"),
            ("CapabilityBoundingSet", "CAP_NET_BIND_SERVICE"),
        ):
            self.assertEqual(values("sluice.service", key), [value], key)
        self.assertGreaterEqual(int(*values("sluice.service", "LimitNOFILE")), 100_000)
        # Longer than the server takes to drain, or systemd would kill it meanwhile.
        self.assertGreater(int(values("sluice.service", "TimeoutStopSec")[0].rstrip("s")), 30)
        self.assertEqual(values("sluice.socket", "FileDescriptorName"), ["gateway"])

    def test_the_program_knows_what_they_run(self):
        commands = [
            shlex.split(value)[1:]
            for key in ("ExecStart", "ExecReload")
            for value in values("sluice.service", key)
            if value.startswith(INSTALLED)
        ]
        self.assertEqual([command[0] for command in commands], ["serve", "check"])
        for command in commands:
            self.assertTrue(knows(command), command)

    @contextlib.contextmanager
    def service_manager(self, **environment):
        """What the programs that are started meanwhile tell systemd."""
        path = os.path.join(self.folder, "notify")
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as manager:
            manager.bind(path)
            manager.settimeout(PATIENCE)
            with mock.patch.dict(os.environ, NOTIFY_SOCKET=path, **environment):
                yield manager

    # It would be killed again and again where WatchdogSec is set.
    def test_it_feeds_the_watchdog(self):
        with self.service_manager(WATCHDOG_USEC="200000") as manager:
            begin = time.monotonic()
            self.gateway(self.upstream())
            self.assertIn("READY=1", manager.recv(4096).decode())
            self.assertEqual([manager.recv(4096) for _ in range(5)], [b"WATCHDOG=1"] * 5)
            self.assertGreater(time.monotonic() - begin, 0.2)  # and not all the time

    # Type=notify would wait for ever for a program that says nothing.
    def test_it_tells_the_service_manager_what_it_does(self):
        with self.service_manager() as manager:
            front = self.gateway(self.upstream())
            self.assertIn("READY=1", manager.recv(4096).decode())
            front.signal(signal.SIGHUP)  # ExecReload
            self.assertRegex(manager.recv(4096).decode(), r"RELOADING=1\nMONOTONIC_USEC=\d+")
            self.assertIn("READY=1", manager.recv(4096).decode())
            front.signal(signal.SIGTERM)
            self.assertIn("STOPPING=1", manager.recv(4096).decode())
            self.assertEqual(front.wait(), 0)


def instructions():
    """(stage, instruction, rest) of the container file, lines that go on joined."""
    text = re.sub(r"^#.*\n", "", CONTAINERFILE.read_text(encoding="ascii"), flags=re.MULTILINE)
    stage, found = -1, []
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        word, _, rest = line.partition(" ")
        stage += word == "FROM"
        found.append((stage, word, " ".join(rest.split())))
    return found


class Container(GatewayTest):
    def of(self, word, stage=1):
        return [rest for at, name, rest in instructions() if name == word and at == stage]

    def test_both_stages_are_of_the_distribution_that_is_tested(self):
        self.assertEqual(self.of("FROM", 0), ["debian:12-slim AS build"])
        self.assertEqual(self.of("FROM", 1), ["debian:12-slim"])

    def test_it_does_not_run_as_root(self):
        (user,) = self.of("USER")
        uid, gid = map(int, user.split(":"))
        self.assertGreater(min(uid, gid), 0)
        self.assertIn(f"--uid {uid}", self.of("RUN")[0])
        names = [name for stage, name, _ in instructions() if stage == 1]
        self.assertLess(names.index("USER"), names.index("ENTRYPOINT"))

    def test_the_program_knows_what_it_runs(self):
        self.assertEqual(self.of("STOPSIGNAL"), ["SIGTERM"])
        self.assertEqual(self.of("ENTRYPOINT"), ['["sluice"]'])
        command = re.findall(r'"([^"]+)"', self.of("CMD")[0])
        self.assertTrue(knows(command), command)
        program, *check = re.findall(r'"([^"]+)"', self.of("HEALTHCHECK")[0])
        self.assertEqual((program, check[0]), ("sluice", "status"))
        self.assertTrue(knows(check), check)

    def needed_packages(self):
        libraries = subprocess.check_output(["ldd", BINARY], text=True)
        for path in re.findall(r"=> (/\S+)", libraries):
            for one in (path, os.path.realpath(path), path.replace("/lib/", "/usr/lib/", 1)):
                owner = subprocess.run(
                    ["dpkg-query", "--search", one], capture_output=True, text=True, check=False
                )
                if owner.returncode == 0:
                    yield owner.stdout.split(":", 1)[0]
                    break

    # The program of a sanitizer's build needs more, none of which is in the image.
    @unittest.skipUnless(shutil.which("dpkg-query"), "no Debian")
    def test_the_image_has_the_libraries_of_the_program_and_no_compiler(self):
        (run,) = self.of("RUN")
        installed = re.search(r"--no-install-recommends (.*?) &&", run).group(1).split()
        base = {"libc6", "libgcc-s1"}  # of debian:12-slim itself
        known = {*installed, *base, "libasan8", "libubsan1", "libtsan2", "libclang-rt-19-dev"}
        self.assertLessEqual(set(self.needed_packages()), known)
        self.assertFalse([name for name in installed if re.search(r"-dev$|^g\+\+|^cmake", name)])

    # A file that is missing would be noticed only by whoever builds the image.
    def test_what_is_copied_is_enough_to_configure(self):
        tree = pathlib.Path(self.folder) / "tree"
        tree.mkdir()
        for copied in self.of("COPY", 0):
            *sources, target = copied.split()
            for source in sources:
                path = ROOT / source
                if path.is_dir():
                    shutil.copytree(path, tree / target)
                else:
                    shutil.copy(path, tree / target)
        if not shutil.which("cmake") or not shutil.which("g++"):
            self.skipTest("no compiler")
        done = subprocess.run(
            ["cmake", "--preset", "release"], cwd=tree, capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
