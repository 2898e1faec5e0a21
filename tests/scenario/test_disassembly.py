"""What the compiler makes of the table. Its optimised objects come from SLUICE_OBJECTS."""

import os
import re
import subprocess
import unittest

OBJECTS = os.environ["SLUICE_OBJECTS"].split(";")
TABLE = "sluice::store::BasicTable<sluice::store::DirectAccess>::"


def disassembled():
    """Function name -> its instructions, those that call or jump with the target's name."""
    text = subprocess.run(
        ["objdump", "--disassemble", "--reloc", "--demangle", "--no-show-raw-insn", *OBJECTS],
        capture_output=True, text=True, timeout=120, check=True).stdout
    functions = {}
    name = None
    for line in text.splitlines():
        if begins := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            name = begins.group(1)
            functions[name] = []
        elif name and line.startswith((" ", "\t")):
            functions[name].append(line.split(":", 1)[-1].strip())
    return functions


class DisassemblyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.functions = disassembled()

    def of_table(self, method):
        found = [lines for name, lines in self.functions.items()
                 if name.startswith(TABLE + method + "(")]
        self.assertTrue(found, f"no {method} among {sorted(self.functions)}")
        return [line for lines in found for line in lines]

    def test_pairs_are_exchanged_by_one_instruction(self):
        """A decision, alone or among several, commits by lock cmpxchg16b."""
        everything = [line for lines in self.functions.values() for line in lines]
        self.assertTrue([line for line in everything if re.search(r"lock cmpxchg16b", line)])
        for method in ("try_update_slowly", "try_insert", "decide_all"):
            with self.subTest(method):
                self.assertRegex("\n".join(self.of_table(method)), r"lock cmpxchg16b")

    def test_nothing_calls_the_library_of_atomics(self):
        """It may lock, and a lock outlives the process that is killed with it."""
        for name, lines in self.functions.items():
            for line in lines:
                self.assertNotRegex(line, r"__atomic_|__sync_", name)

    def test_finding_and_updating_a_slot_divides_nothing(self):
        """Groups are found by multiplication. What divides is the arithmetic of windows, and an
        insertion, by the capacity, to compare debts."""
        dividing = {}
        for name, lines in self.functions.items():
            count = sum(1 for line in lines if re.match(r"i?div[bwlq]?\s", line))
            if count:
                dividing[name.split("(")[0]] = count
        print("divisions:", dividing)
        for method in ("decide", "operate", "find", "find_confirmed", "places_of", "try_update"):
            self.assertNotIn(TABLE + method, dividing)
