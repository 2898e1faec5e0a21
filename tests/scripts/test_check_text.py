"""scripts/check_text.py: what it finds in lines and phrases, and what it lets pass."""

import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "check_text.py"


def load():
    spec = importlib.util.spec_from_file_location("check_text", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check_text = load()


def phrases(text, path="docs/a.md"):
    return [phrase for _, _, phrase, _ in check_text.phrases_in(path, text)]


class Phrases(unittest.TestCase):
    def test_each_is_found_with_its_place_and_what_to_write(self):
        text = "A line.\nIt limits nobody, and a request is under way.\n"
        self.assertEqual(
            list(check_text.phrases_in("docs/a.md", text)),
            [
                (2, 11, "nobody", "the thing that is absent: no client, no worker"),
                (2, 36, "under way", "in flight"),
            ],
        )

    def test_what_the_language_forbids(self):
        for wrong in (
            "to whoever asks",
            "Somebody asked",
            "left alone for a while",
            "it leaves alone",
            "were turned away",
            "who vouches for it",
            "rules that only tell",
            "the answer is 502",
            "the head of a message",
            "is refused with 400",
            "a refusal",
            "a key in debt",
            "it owes nothing",
            "a request is held",
            "it is passed on",
            "the limit is full",
            "has proven it",
            "opened anew",
            "took over the file",
            "another door",
            "the authorities",
            "tells when to come back",
            "one that was cut off",
            "those that wait",
            "those who wait",
            "keeps what was used",
            "so that two hold: who waits is admitted",
            "Nothing else. Who waits is admitted",
            "no route leads there",
        ):
            self.assertEqual(len(phrases(wrong)), 1, wrong)

    def test_what_is_no_such_phrase(self):
        for right in (
            "connection refused",
            "those of the file, and the one that binds, the last one that came, another one that",
            "HEAD and the headers of a request, ahead of it",
            "the server answers 502",
            "people who run Sluice",
            "# Who is asking",
            "the table is full",
            "promises, each held by a test",
            "`refusals_per_second`, refused_total",
            "the known doorway, borrowed",
            "$(head -n 1 key.txt)",
        ):
            self.assertEqual(phrases(right), [], right)

    def test_a_phrase_may_go_on_in_the_next_line(self):
        self.assertEqual(phrases("requests that are under\n  way"), ["under way"])
        self.assertEqual(phrases("// it is under\n// way\n", "include/sluice/a.h"), ["under way"])
        self.assertEqual(phrases('f("it is under "\n  "way");', "src/a.cc"), ["under way"])

    def test_a_line_may_be_allowed_one(self):
        self.assertEqual(phrases("nobody <!-- allow-phrase: nobody -->"), [])
        self.assertEqual(phrases("<!-- allow-phrase: nobody -->\nnobody"), [])
        self.assertEqual(phrases("<!-- allow-phrase: nobody -->\n\nnobody"), ["nobody"])
        self.assertEqual(phrases("nobody <!-- allow-phrase: somebody -->"), ["nobody"])
        self.assertEqual(phrases("// Under way. allow-phrase: under way", "include/sluice/a.h"), [])

    def test_of_code_only_what_people_read(self):
        code = 'refused = f("is refused", "refused", \'"\', R"(it is\nrefused)");  // refused\n'
        self.assertEqual(len(phrases(code, "src/a.cc")), 2)
        self.assertEqual(len(phrases(code, "include/sluice/a.h")), 3)
        self.assertEqual(phrases('// says "nobody is here"\n', "src/a.cc"), [])
        self.assertEqual(phrases('f("http://a b");  // nobody\n', "src/a.cc"), [])
        self.assertEqual(phrases("x = 10'000; y = '\"'; // nobody is \"here\"", "src/a.cc"), [])

    def test_other_files_are_not_asked(self):
        for path in ("tests/a.py", "src/a.py", "src/a_test.cc", "src/a_fixture.h"):
            self.assertEqual(phrases("says 'nobody is here' \"nobody is here\"", path), [], path)
        for path in ("README.md", "src/a/README.md", "CONTRIBUTING.md", "packaging/a.service"):
            self.assertEqual(phrases("nobody is here", path), ["nobody"], path)
        for path in ("examples/a.yaml", "src/cli/a.yaml"):
            self.assertEqual(phrases("nobody is here", path), ["nobody"], path)


class Lines(unittest.TestCase):
    def found(self, text, path):
        return [what for _, what in check_text.findings(pathlib.Path(path), text)]

    def test_length_whitespace_and_the_last_line(self):
        self.assertEqual(self.found("x" * 100 + "\n", "a.cc"), [])
        self.assertEqual(self.found("x" * 101 + "\n", "a.cc"), ["101 characters, more than 100"])
        self.assertEqual(self.found("x" * 121 + "\n", "a.md"), ["121 characters, more than 120"])
        self.assertEqual(self.found("|" + "x" * 121 + "\n", "a.md"), [])
        self.assertEqual(self.found("x \n", "a.cc"), ["trailing whitespace"])
        self.assertEqual(self.found("x", "a.cc"), ["no newline at the end of the file"])


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "docs").mkdir()
        (self.folder / "docs" / "a.md").write_text("Nobody, and somebody.\n")
        (self.folder / "scripts").mkdir()
        self.script = self.folder / "scripts" / SCRIPT.name
        self.script.write_bytes(SCRIPT.read_bytes())

    def run_script(self):
        done = subprocess.run(
            [sys.executable, "-B", str(self.script)],
            input="docs/a.md\n",
            capture_output=True,
            text=True,
            cwd=self.folder,
            check=False,
        )
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def test_findings_name_file_line_and_column(self):
        code, out = self.run_script()
        self.assertEqual(code, 1)
        self.assertRegex(out, r"^docs/a.md:1:1: 'Nobody'; write .*\ndocs/a.md:1:13: 'somebody'; ")

    def test_a_clean_file_has_no_findings(self):
        (self.folder / "docs" / "a.md").write_text("No client, and a user.\n")
        self.assertEqual(self.run_script(), (0, ""))


if __name__ == "__main__":
    unittest.main()
