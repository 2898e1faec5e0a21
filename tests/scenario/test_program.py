"""The command line itself: help, version, unknown words, completion."""

import subprocess
import unittest

from support import ScenarioTest


class Program(ScenarioTest):
    def test_version_and_help(self):
        self.assertRegex(self.ok("--version").out, r"^sluice \d+\.\d+\.\d+\n$")
        commands = ("", "init", "serve", "status", "check", "explain", "replay", "load")
        for command in (*commands, "keys create", "keys list", "completion"):
            text = self.ok(*command.split(), "--help").out
            self.assertIn("Examples:", text)
            self.assertIn("Exit status: 0", text)
        self.assertRegex(self.ok("--help").out, r"replay +Run .* rules")

    def test_unknown_words(self):
        self.refuses(2, r"unknown command 'reply'; did you mean replay\? known are", "reply")
        self.refuses(2, r"--nope", "--nope")
        known = "init, serve, status, check, explain, replay, load, keys and completion"
        self.refuses(2, f"a command is missing; known are {known}")

    # Commands of other servers are answered with what to do here.
    def test_commands_of_other_servers(self):
        self.refuses(2, r"unknown command 'reload'; edit the file: .* SIGHUP\n", "reload")
        self.refuses(2, r"unknown command 'stop'; send SIGTERM", "stop")
        self.refuses(2, r"unknown command 'configtest'; 'sluice check FILE'", "configtest")
        self.refuses(2, r"unknown command 'start'; 'sluice serve -c FILE'", "start", "-c", "x")
        self.refuses(2, r"sluice keys: unknown command 'reload'; .*known are", "keys", "reload")

    # Options and commands that were renamed are gone; the message names the new one.
    def test_former_names(self):
        options = (
            ("--zone", "--timezone", "UTC"),
            ("--granularity", "--bucket-width", "1s"),
            ("--ttl", "--slot-ttl", "1s"),
            ("--queue", "--max-delay", "1s"),
            ("--count-denied", "--count-rejected", None),
        )
        for command in ("replay", "load"):
            for before, now, value in options:
                told = rf"unknown option '{before}'; it is called {now} now"
                words = (before,) if value is None else (before, value)
                self.refuses(2, told, command, "--limit", "5/1s", *words)
                if value is not None:
                    self.refuses(2, told, command, "--limit", "5/1s", f"{before}={value}")
        told = r"unknown option '--ca'; it is called --ca-file now"
        self.refuses(2, told, "load", "https://127.0.0.1:1/", "--ca", "ca.pem")
        self.assertNotIn("--ca-file", self.refuses(2, r"'--ca'", "replay", "--ca", "x").err)
        told = r"sluice keys: unknown command 'new'; it is called create now"
        self.refuses(2, told, "keys", "new", "--name", "a")
        self.refuses(2, r"unknown command 'new'; known are", "new")


class Completion(ScenarioTest):
    def complete(self, *words):
        """What bash would offer after these words, the last of which is being typed."""
        script = self.ok("completion", "bash").out
        quoted = " ".join(f"'{word}'" for word in words)
        script += (
            f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _sluice; echo ${{COMPREPLY[*]}}"
        )
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes_commands_options_and_values(self):
        self.assertEqual(self.complete("sluice", "re"), ["replay"])
        self.assertIn("--version", self.complete("sluice", "--"))
        self.assertEqual(
            sorted(self.complete("sluice", "replay", "--co")), ["--compare", "--count-rejected"]
        )
        self.assertIn("--virtual", self.complete("sluice", "load", "--v"))
        self.assertEqual(self.complete("sluice", "load", "-a", "sliding_l"), ["sliding_log"])
        self.assertEqual(self.complete("sluice", "replay", "trace"), [])
        self.assertEqual(self.complete("sluice", "replay", ""), [])
        self.assertEqual(sorted(self.complete("sluice", "keys", "")), ["create", "list"])
        self.assertIn("--expires", self.complete("sluice", "keys", "create", "--"))
        self.assertEqual(self.complete("sluice", "init", "pl"), ["plans"])
        self.assertEqual(self.complete("sluice", "status", "--w"), ["--watch"])

    def test_the_other_shells_name_every_command(self):
        for shell in ("zsh", "fish"):
            script = self.ok("completion", shell).out
            for command in ("init", "status", "check", "explain", "replay", "load", "keys"):
                self.assertIn(command, script)
        self.refuses(2, r"unknown shell 'tcsh'; known are bash, zsh and fish", "completion", "tcsh")


if __name__ == "__main__":
    unittest.main()
