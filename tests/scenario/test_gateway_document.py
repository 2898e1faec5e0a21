"""tests/gateway_checklist.md names tests: they exist."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Document(unittest.TestCase):
    def named(self):
        table = (ROOT / "tests" / "gateway_checklist.md").read_text(encoding="utf-8")
        return [
            name.split(".")
            for line in table.splitlines()
            if line.startswith("| ")
            for name in re.findall(r"`(\w+\.\w+)`", line.split(" | ")[1])
        ]

    def scenarios(self, part):
        path = ROOT / "tests" / "scenario" / f"test_gateway_{part}.py"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def test_every_test_that_is_named_exists(self):
        units = "".join(
            path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*_test.cc"))
        )
        named = self.named()
        self.assertGreater(len(named), 80)
        for suite, name in named:
            if suite[0].islower():
                self.assertIn(f"def test_{name}(", self.scenarios(suite))
            else:
                self.assertRegex(units, rf"TEST(_F)?\({suite}, {name}\)")


if __name__ == "__main__":
    unittest.main()
