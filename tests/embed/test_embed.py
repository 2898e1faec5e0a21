"""Runs examples/embed, and compares the guide with it.

An example ends with a comment: `// prints:`, then a line for each line of its output. Every block
of C++ in docs/embed.md is a part of an example, line for line, however deep it is indented there.
SLUICE_PROGRAMS is the folder of the built examples, SLUICE_ENGINE_LIBRARY is sluice::engine.
"""

import os
import pathlib
import re
import subprocess
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples" / "embed").glob("*.cc"))
GUIDES = [ROOT / "README.md", ROOT / "docs" / "embed.md"]
LINES_MAX = 60
TIMEOUT_SECONDS = 60


def split(text):
    """The program, and what it prints."""
    code, _, comment = text.partition("\n// prints:\n")
    return code, "".join(line.removeprefix("//")[1:] + "\n" for line in comment.splitlines())


def blocks_of(markdown):
    return re.findall(r"^```cpp\n(.*?)^```$", markdown, re.MULTILINE | re.DOTALL)


def contains(code, block):
    """Whether some lines of the code, less the indentation they share, are the block."""
    lines, wanted = code.splitlines(), block.splitlines()
    starts = range(len(lines) - len(wanted) + 1)
    parts = ("\n".join(lines[start : start + len(wanted)]) for start in starts)
    return any(textwrap.dedent(part).strip() == block.strip() for part in parts)


class Examples(unittest.TestCase):
    maxDiff = None

    def test_print_what_they_say(self):
        self.assertGreater(len(EXAMPLES), 5)
        for path in EXAMPLES:
            with self.subTest(example=path.name):
                program = pathlib.Path(os.environ["SLUICE_PROGRAMS"]) / f"embed_{path.stem}"
                done = subprocess.run(
                    [program], capture_output=True, timeout=TIMEOUT_SECONDS, check=False
                )
                printed = done.stdout.decode("utf-8")
                self.assertEqual((done.returncode, done.stderr.decode("utf-8")), (0, ""))
                self.assertEqual(printed, split(path.read_text())[1])

    def test_are_short_and_say_what_they_show(self):
        for path in EXAMPLES:
            with self.subTest(example=path.name):
                text = path.read_text()
                self.assertTrue(text.startswith("// "), "the first line is no comment")
                self.assertLessEqual(text.count("\n"), LINES_MAX)

    def test_the_guide_shows_parts_of_them(self):
        sources = [split(path.read_text())[0] for path in EXAMPLES]
        for guide in GUIDES:
            blocks = blocks_of(guide.read_text())
            self.assertGreater(len(blocks), 0, f"{guide.name} shows no code")
            for block in blocks:
                with self.subTest(guide=guide.name, block=block):
                    self.assertTrue(any(contains(code, block) for code in sources))

    def test_the_guide_quotes_messages_that_exist(self):
        guide = (ROOT / "docs" / "embed.md").read_text()
        source = (ROOT / "src" / "store" / "local" / "mapping.cc").read_text()
        rows = re.findall(r"^\| (`[^|]+) \|", guide, re.MULTILINE)
        self.assertGreater(len(rows), 5)
        for message in re.findall(r"`([^`]+)`", " ".join(rows)):
            with self.subTest(message=message):
                self.assertIn(re.sub(r"\b[NM]\b", "{}", message), source)

    def test_all_of_them_are_in_the_guide(self):
        guide = (ROOT / "docs" / "embed.md").read_text()
        for path in EXAMPLES:
            self.assertIn(path.name, guide)


def namespaces_of(folders):
    """The namespaces within sluice that the code in some folders of src declares."""
    files = (path for folder in folders for path in (ROOT / "src" / folder).rglob("*"))
    code = "".join(path.read_text() for path in files if path.suffix in (".h", ".cc"))
    return set(re.findall(r"^namespace sluice::(\w+) \{", code, re.MULTILINE))


class Library(unittest.TestCase):
    def test_the_engine_knows_nothing_of_sockets_and_front_ends(self):
        """Neither defined in it nor called from it."""
        command = ["nm", "--demangle", os.environ["SLUICE_ENGINE_LIBRARY"]]
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_SECONDS, check=True)
        linked = set(re.findall(r"\bsluice::(\w+)::", done.stdout.decode("utf-8")))
        others = namespaces_of(["net", "frontend", "app", "cli"])
        self.assertLessEqual({"net", "gateway", "app", "cli"}, others)
        self.assertLessEqual({"embed", "engine", "rules"}, linked)
        self.assertEqual(linked & others, set())


class Checker(unittest.TestCase):
    def test_finds_parts_whatever_their_indentation(self):
        code = "int main() {\n  one();\n  if (x) {\n    two();\n  }\n}\n"
        self.assertTrue(contains(code, "one();\nif (x) {\n  two();\n}\n"))
        self.assertFalse(contains(code, "one();\ntwo();\n"))
        self.assertFalse(contains(code, "if (x) {\ntwo();\n}\n"))


if __name__ == "__main__":
    unittest.main()
