"""The command line itself: help, version, unknown words, completion."""

import subprocess
import unittest

from support import ScenarioTest


class Program(ScenarioTest):
    def test_version_and_help(self):
        self.assertRegex(self.ok("--version").out, r"^sluice \d+\.\d+\.\d+\n$")
        commands = ("", "init", "serve", "status", "check", "explain", "replay", "load", "keys new")
        for command in (*commands, "keys list", "completion"):
            text = self.ok(*command.split(), "--help").out
            self.assertIn("Examples:", text)
            self.assertIn("Exit status: 0", text)
        self.assertRegex(self.ok("--help").out, r"replay +Run .* rules")

    def test_unknown_words(self):
        self.refuses(2, r"unknown command 'reply'; did you mean replay\? known are", "reply")
        self.refuses(2, r"--nope", "--nope")
        known = "init, serve, status, check, explain, replay, load, keys and completion"
        self.refuses(2, f"a command is missing; known are {known}")


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
            sorted(self.complete("sluice", "replay", "--co")), ["--compare", "--count-denied"]
        )
        self.assertIn("--virtual", self.complete("sluice", "load", "--v"))
        self.assertEqual(self.complete("sluice", "load", "-a", "sliding_l"), ["sliding_log"])
        self.assertEqual(self.complete("sluice", "replay", "trace"), [])
        self.assertEqual(self.complete("sluice", "replay", ""), [])
        self.assertEqual(sorted(self.complete("sluice", "keys", "")), ["list", "new"])
        self.assertIn("--expires", self.complete("sluice", "keys", "new", "--"))
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
