"""Runs what the documentation shows.

Conventions for a ```console block:

  $ sluice ...            is run by `sh -c`, with `sluice` being the binary in SLUICE_BINARY. So are
                          commands that begin with `printf` or `cat`, for pipes. The working
                          directory is new for every file and holds a copy of examples/ and an empty
                          docs/pictures/, so paths are written as seen from the root of the tree.
                          What `sluice init` writes there listens on free ports: those of the
                          recipe may be in use here.
  $ sluice ... \\         a backslash at the end of the line continues the command on the next.
  $ sluice ... # exits 2  expects that exit status; without the comment it is 0.
  true                    the lines up to the next `$`, or the end of the block, are all that the
                          command prints, standard error included. `...` stands for any lines.
  $ ./dev test            must name a subcommand of ./dev. Other commands (git, cd, cmake)
                          are only read.

A `sluice ...` anywhere else, in a sentence or in indented lines, is not run, but the command and
its options must exist.

A ```yaml block is a whole configuration and passes `sluice check`.

Pictures: docs/pictures/README.md lists the commands that draw them; each must come out the same to
the byte.
"""

import difflib
import itertools
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

# Whatever the mask of who runs the tests: files that everybody may change are not believed.
os.umask(0o022)

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
FOLDERS = ("bench", "docs", "examples", "include", "packaging", "src", "tests")
DEV_COMMANDS = {"setup", "build", "run", "test", "bench", "lint", "fuzz", "coverage"}
RUN = ("sluice", "printf", "cat")
READ = ("git", "cd", "cmake")
TIMEOUT_SECONDS = 120


def markdown_files():
    nested = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md"))
    return sorted({*ROOT.glob("*.md"), *nested})


def name_of(path):
    return str(path.relative_to(ROOT))


class Command:
    def __init__(self, line_number, text):
        exits = re.search(r"\s+# exits (\d+)$", text)
        self.line_number = line_number
        self.text = text[: exits.start()] if exits else text
        self.status = int(exits.group(1)) if exits else 0
        self.expected = []

    @property
    def program(self):
        return self.text.split()[0]


def split_fences(markdown):
    """Yields (line number, language or None for prose, lines) for every stretch of text."""
    language, start, lines = None, 1, []
    for number, line in enumerate(markdown.splitlines(), 1):
        if line.lstrip().startswith("```"):
            yield start, language, lines
            language = line.strip().strip("`") or "text" if language is None else None
            start, lines = number + 1, []
        else:
            lines.append(line)
    if language is not None:
        raise ValueError(f"the block that starts before line {start} is never closed")
    yield start, language, lines


def commands_in(markdown):
    commands = []
    for start, language, lines in split_fences(markdown):
        if language != "console":
            continue
        block, pending = [], None
        for number, line in enumerate(lines, start):
            if pending is not None:
                pending += " " + line.strip()
            elif line.startswith("$ "):
                pending = line[2:].strip()
            elif block:
                block[-1].expected.append(line)
            else:
                raise ValueError(f"line {number}: output before the first command")
            if pending is not None and pending.endswith("\\"):
                pending = pending[:-1].rstrip()
            elif pending is not None:
                block.append(Command(number, pending))
                pending = None
        if not block or pending is not None:
            raise ValueError(f"line {start}: a console block without a whole command")
        commands += block
    return commands


def matches(expected, printed):
    patterns = (r"(?:.*\n)*" if line == "..." else re.escape(line) + r"\n" for line in expected)
    return re.fullmatch("".join(patterns), printed) is not None


class Sandbox:
    """A directory in which documented commands find what a reader of the tree would find."""

    def __enter__(self):
        self._temporary = tempfile.TemporaryDirectory(prefix="sluice-docs-")
        base = pathlib.Path(self._temporary.name)
        self.directory = base / "tree"
        (self.directory / "docs" / "pictures").mkdir(parents=True)
        shutil.copytree(ROOT / "examples", self.directory / "examples")
        (base / "bin").mkdir()
        binary = pathlib.Path(os.environ["SLUICE_BINARY"]).resolve(strict=True)
        (base / "bin" / "sluice").symlink_to(binary)
        path = f"{base / 'bin'}:/usr/bin:/bin"
        self._environment = {**os.environ, "PATH": path, "LC_ALL": "C.UTF-8"}
        return self

    def __exit__(self, *_):
        self._temporary.cleanup()

    def _use_free_ports(self):
        written = self.directory / "sluice.yaml"
        if written.exists():
            text = written.read_text()
            written.write_text(re.sub(r"127\.0\.0\.1:(8080|9090)\b", "127.0.0.1:0", text))

    def problem_with(self, command):
        """None when the command does what the document says, else what is different."""
        done = subprocess.run(
            ["sh", "-c", command.text],
            cwd=self.directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        self._use_free_ports()
        printed = done.stdout.decode("utf-8")
        if done.returncode != command.status:
            return f"exits {done.returncode}, not {command.status}, and prints:\n{printed}"
        if not matches(command.expected, printed):
            difference = difflib.unified_diff(
                command.expected, printed.splitlines(), "documented", "printed", lineterm=""
            )
            return "prints something else:\n" + "\n".join(difference)
        return None


def mentioned_commands(markdown):
    """Yields (line number, words) for every `sluice ...` that is told of and not run."""
    for start, language, lines in split_fences(markdown):
        if language is not None:
            continue
        text = "\n".join(lines)
        spans = re.finditer(r"^    (sluice .+)$|`(sluice\s[^`]+)`", text, re.MULTILINE)
        for span in spans:
            command = re.split(r"[|;&>#]", span.group(1) or span.group(2))[0]
            yield start + text.count("\n", 0, span.start()), shlex.split(command)[1:]


class Manual:
    """What the program says about its own commands."""

    def __init__(self):
        self._helps = {}

    def help_of(self, *command):
        if command not in self._helps:
            done = subprocess.run(
                [os.environ["SLUICE_BINARY"], *command, "--help"],
                capture_output=True,
                text=True,
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
            self._helps[command] = done.stdout if done.returncode == 0 else None
        return self._helps[command]

    def problem_with(self, words):
        """None when there is such a command with all of these options."""
        names = list(itertools.takewhile(lambda word: re.fullmatch(r"[a-z]+", word), words))
        while len(names) > 1 and self.help_of(*names) == self.help_of(*names[:-1]):
            names.pop()  # an argument, not a command of a command
        described = self.help_of(*names)
        if described is None or (names and described == self.help_of()):  # shown for unknown words
            return f"there is no command '{' '.join(names)}'"
        known = re.findall(r"(?<![\w-])--?[a-z][\w-]*", described)
        wrong = [word for word in words if word.startswith("-") and word not in known]
        return f"'{' '.join(names)}' knows no {wrong}" if wrong else None


def anchors_of(path):
    """The anchors of a document's headings, the way GitHub makes them."""
    stretches = split_fences(path.read_text())
    prose = [line for _, language, lines in stretches if language is None for line in lines]
    headings = [match.group(1) for line in prose if (match := re.match(r"#+ (.*)", line))]
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


def links_in(markdown):
    for start, language, lines in split_fences(markdown):
        if language is not None:
            continue
        for number, line in enumerate(lines, start):
            without_code = re.sub(r"`[^`]*`", "", line)
            for match in re.finditer(r"\]\(([^)\s]+)[^)]*\)", without_code):
                yield number, match.group(1)


class Documents(unittest.TestCase):
    maxDiff = None

    def about(self, path, command):
        return self.subTest(file=name_of(path), line=command.line_number, command=command.text)

    def test_commands_print_what_the_documents_show(self):
        ran = {}
        for path in markdown_files():
            commands = [c for c in commands_in(path.read_text()) if c.program in RUN]
            with Sandbox() as sandbox:
                for command in commands:
                    ran[name_of(path)] = ran.get(name_of(path), 0) + 1
                    with self.about(path, command):
                        if problem := sandbox.problem_with(command):
                            self.fail(problem)
        for file in ("README.md", "docs/algorithms.md", "docs/seeds.md", "docs/pictures/README.md"):
            self.assertIn(file, ran, "shows no command")

    def test_commands_that_are_told_of_exist(self):
        manual, seen = Manual(), set()
        for path in markdown_files():
            for number, words in mentioned_commands(path.read_text()):
                seen.add(words[0])
                with self.subTest(file=name_of(path), line=number, command=" ".join(words)):
                    self.assertIsNone(manual.problem_with(words))
        self.assertLessEqual({"serve", "check", "replay", "explain"}, seen)

    def test_other_commands_exist(self):
        known = DEV_COMMANDS
        if (ROOT / "dev").exists():
            listed = subprocess.check_output([ROOT / "dev", "--help"], text=True)
            known = set(re.findall(r"^  ([a-z]+)  ", listed, re.MULTILINE))
        seen = 0
        for path in markdown_files():
            for command in commands_in(path.read_text()):
                if command.program in RUN:
                    continue
                with self.about(path, command):
                    self.assertIn(command.program, (*READ, "./dev"))
                    if command.program == "./dev":
                        seen += 1
                        self.assertIn(command.text.split()[1], known)
        self.assertGreater(seen, 0, "no document mentions ./dev")

    def test_pictures_are_drawn_by_the_commands_next_to_them(self):
        commands = commands_in((PICTURES / "README.md").read_text())
        with Sandbox() as sandbox:
            for command in commands:
                self.assertIsNone(sandbox.problem_with(command), command.text)
            folder = sandbox.directory / "docs" / "pictures"
            drawn = {path.name: path.read_bytes() for path in folder.iterdir()}
        kept = {path.name: path.read_bytes() for path in PICTURES.glob("*.svg")}
        self.assertGreater(len(kept), 0)
        self.assertEqual(sorted(drawn), sorted(kept), "commands and pictures do not match")
        for name in sorted(kept):
            self.assertTrue(drawn[name] == kept[name], f"{name} would be drawn differently today")

    def test_links_lead_somewhere(self):
        seen = 0
        for path in markdown_files():
            for number, link in links_in(path.read_text()):
                if re.match(r"[a-z]+:", link):
                    continue
                seen += 1
                with self.subTest(file=name_of(path), line=number, link=link):
                    file, _, anchor = link.partition("#")
                    target = (path.parent / file).resolve() if file else path
                    self.assertTrue(target.exists(), f"{link} does not exist")
                    if anchor:
                        self.assertIn(anchor, anchors_of(target))
        self.assertGreater(seen, 0, "no document links to another")

    def test_every_field_of_the_access_log_is_told_of(self):
        file = ROOT / "src" / "frontend" / "access_log" / "access_record.cc"
        source = file.read_text(encoding="utf-8")
        fields = set(re.findall(r'json\.(?:begin|text|number|number_if)\("(\w+)"', source))
        told = (ROOT / "docs" / "run.md").read_text(encoding="utf-8")
        self.assertGreater(len(fields), 20)
        self.assertEqual({field for field in fields if f"`{field}`" not in told}, set())

    def test_every_trace_says_what_it_shows(self):
        traces = sorted((ROOT / "examples" / "traces").iterdir())
        self.assertGreater(len(traces), 0)
        shown = "\n".join(path.read_text() for path in markdown_files())
        for trace in traces:
            with self.subTest(trace=trace.name):
                self.assertTrue(trace.read_text().startswith("# "), "the first line is no comment")
                self.assertTrue(f"traces/{trace.name}" in shown, "no document uses it")


    def test_configurations_are_good(self):
        """Every ```yaml block is a whole file that `sluice check` has nothing against."""
        seen = 0
        for path in markdown_files():
            for start, language, lines in split_fences(path.read_text()):
                if language != "yaml":
                    continue
                seen += 1
                with Sandbox() as sandbox, self.subTest(file=name_of(path), line=start):
                    (sandbox.directory / "sluice.yaml").write_text("\n".join(lines) + "\n")
                    check = Command(start, "sluice check --offline sluice.yaml")
                    check.expected = ["..."]
                    self.assertIsNone(sandbox.problem_with(check))
        self.assertGreater(seen, 0, "no document shows a configuration")


class Checker(unittest.TestCase):
    """What the tests above rest on finds differences, rather than overlooking them."""

    def problem_with(self, block):
        (command,) = commands_in(f"text\n\n```console\n{block}\n```\n")
        with Sandbox() as sandbox:
            return sandbox.problem_with(command)

    def test_accepts_what_is_printed(self):
        block = "$ printf '0\\n0\\n' | sluice replay \\\n    --limit 1/1s\ntrue\nfalse"
        self.assertIsNone(self.problem_with(block))

    def test_dots_stand_for_any_lines(self):
        self.assertIsNone(self.problem_with("$ printf 'a\\nb\\nc\\n'\na\n..."))
        self.assertIsNotNone(self.problem_with("$ printf 'a\\nb\\nc\\n'\n...\nb"))

    def test_notices_wrong_missing_and_surplus_lines(self):
        self.assertIsNotNone(self.problem_with("$ printf 'a\\nb\\n'\na\nc"))
        self.assertIsNotNone(self.problem_with("$ printf 'a\\nb\\n'\na"))
        self.assertIsNotNone(self.problem_with("$ printf 'a\\n'\na\nb"))

    def test_notices_the_exit_status(self):
        self.assertIsNone(self.problem_with("$ sluice replay --no-such-option # exits 2\n..."))
        self.assertIsNotNone(self.problem_with("$ sluice replay --no-such-option\n..."))

    def test_notices_commands_and_options_that_do_not_exist(self):
        text = "See `sluice keys\ncreate --name x`, or:\n\n    sluice check a.yaml && kill -HUP 1\n"
        told = [words for _, words in mentioned_commands(text)]
        self.assertEqual(told, [["keys", "create", "--name", "x"], ["check", "a.yaml"]])
        for words in told:
            self.assertIsNone(Manual().problem_with(words))
        for words in (["chek"], ["keys", "create", "--nam"], ["check", "a.yaml", "--rules"]):
            self.assertIsNotNone(Manual().problem_with(words))

    def test_refuses_blocks_it_cannot_read(self):
        for inside in ("", "output\n```\n", "```\n", "$ sluice \\\n```\n"):
            with self.assertRaises(ValueError):
                commands_in("```console\n" + inside)


if __name__ == "__main__":
    unittest.main()
