"""`sluice keys`: API keys made for a file, and listed."""

import hashlib
import hmac
import json
import os
import subprocess
import unittest

from support import BINARY, ScenarioTest, sluice

RULES = "rules: [{name: all, per: api_key, limit: 5/1s}]\n"


class Keys(ScenarioTest):
    def setUp(self):
        super().setUp()
        self.keys = os.path.join(self.folder, "keys.yaml")

    def new(self, *arguments):
        return json.loads(self.ok("keys", "create", *arguments, "--json").out)

    def listed(self):
        return self.ok("keys", "list", "--file", self.keys, "--json").json_lines()

    def text(self):
        with open(self.keys, encoding="utf-8") as stream:
            return stream.read()

    def client(self, key, clients="api_keys: {file: keys.yaml}"):
        """Who somebody with this key is."""
        configuration = self.file("sluice.yaml", RULES + "clients:\n  " + clients + "\n")
        done = sluice("explain", "/", "-c", configuration, "-H", f"x-api-key: {key}", "--json")
        self.assertEqual(done.err, "")
        return json.loads(done.out)["client"]

    def test_a_new_key_is_known_by_its_hash(self):
        made = self.new("--name", "acme", "--user", "u", "--tenant", "t", "--tier", "paid",
                        "--file", self.keys)  # fmt: skip
        self.assertEqual(made["hash"], "sha256:" + hashlib.sha256(made["key"].encode()).hexdigest())
        self.assertNotIn(made["key"], self.text())
        client = self.client(made["key"])
        who = {name: client[name] for name in ("proof", "user", "api_key", "tenant", "tier")}
        self.assertEqual(
            who,
            {
                "proof": "authenticated",
                "user": "u",
                "api_key": "acme",
                "tenant": "t",
                "tier": "paid",
            },
        )
        self.assertEqual(self.client(made["key"] + "x")["proof"], "unknown key")

    def test_rules_use_the_attributes_of_a_key(self):
        attributes = ("--attribute", "team=infra", "--attribute", "rps=7")
        made = self.new("--name", "acme", *attributes, "--file", self.keys)
        configuration = self.file(
            "sluice.yaml",
            """\
clients: {api_keys: {file: keys.yaml}}
rules:
  - name: teams
    match: {attribute: [team]}
    per: [attribute.team]
    limit: {rate: 2/1s, from: {attribute: rps, max: 50}}
""",
        )
        key = ("-H", f"x-api-key: {made['key']}")
        done = self.ok("explain", "/", "-c", configuration, *key)
        self.assertIn("+ teams per attribute.team", done.out)
        self.assertIn("6 of 7 left", done.out)
        done = self.ok("explain", "/", "-c", configuration)
        self.assertIn("- teams: client.attribute does not match", done.out)

    def test_without_a_file_the_entry_is_printed(self):
        attribute = ("--attribute", "plan.seats=5")
        done = self.ok("keys", "create", "--name", "a", "--tier", "free", *attribute)
        key = done.lines()[0]
        entry = done.out[done.out.index("  - name:") :]
        self.file("keys.yaml", "keys:\n" + entry)
        self.assertEqual(self.client(key)["tier"], "free")
        self.assertEqual(self.listed()[0]["attributes"], {"plan.seats": "5"})

    def test_comments_and_arrangement_stay(self):
        before = "# ours\nkeys:\n- name: a  # Ann's\n  hash: sha256:" + "0" * 64 + "\n"
        self.file("keys.yaml", before)
        self.new("--name", "b", "--file", self.keys)
        self.assertTrue(self.text().startswith(before + "- name: b\n  hash: sha256:"), self.text())

    def test_names_are_unique(self):
        self.new("--name", "a", "--file", self.keys)
        before = self.text()
        again = ("keys", "create", "--name", "a", "--file", self.keys)
        self.refuses(3, r"has a key called 'a'", *again)
        self.assertEqual(self.text(), before)

    def test_a_file_that_is_no_good_is_left_alone(self):
        self.file("keys.yaml", "keys: [{name: a, hash: my-secret}]\n")
        done = self.refuses(
            *(3, r"keys.yaml:1:24: hash: the hash"),
            *("keys", "create", "--name", "b", "--file", self.keys),
        )
        self.assertNotIn("my-secret", done.err)
        done = sluice("keys", "list", "--file", self.keys)
        self.assertEqual(done.code, 3)
        self.assertIn("keys.yaml:1:24: hash: the hash has no known prefix", done.err)
        self.assertNotIn("my-secret", done.err)

    def test_a_json_file_is_read_and_not_rearranged(self):
        self.file("keys.yaml", json.dumps({"keys": [{"name": "a", "hash": "sha256:" + "0" * 64}]}))
        self.assertEqual([key["name"] for key in self.listed()], ["a"])
        self.refuses(
            3,
            r"in brackets; add it by hand:\n  - name: b",
            *("keys", "create", "--name", "b", "--file", self.keys),
        )

    def test_who_may_read_the_file_stays_so(self):
        self.new("--name", "a", "--file", self.keys)
        self.assertEqual(os.stat(self.keys).st_mode & 0o777, 0o600)
        os.chmod(self.keys, 0o640)
        self.new("--name", "b", "--file", self.keys)
        self.assertEqual(os.stat(self.keys).st_mode & 0o777, 0o640)
        self.assertEqual(os.listdir(self.folder), ["keys.yaml"])

    def test_a_link_stays_a_link(self):
        real = os.path.join(self.folder, "real.yaml")
        os.symlink("real.yaml", self.keys)
        self.file("real.yaml", "keys: []\n")
        self.new("--name", "a", "--file", self.keys)
        self.assertTrue(os.path.islink(self.keys))
        self.assertFalse(os.path.islink(real))
        self.assertEqual([key["name"] for key in self.listed()], ["a"])

    def test_many_at_once_lose_none(self):
        commands = [
            subprocess.Popen(
                [BINARY, "keys", "create", "--name", f"k{i}", "--file", self.keys],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            for i in range(12)
        ]
        for command in commands:
            _, err = command.communicate(timeout=60)
            self.assertEqual((command.returncode, err), (0, b""))
        names = sorted(key["name"] for key in self.listed())
        self.assertEqual(names, sorted(f"k{i}" for i in range(12)))

    def test_a_keyed_hash(self):
        secret = self.file("secret", "a secret of some length\n")
        made = self.new("--name", "a", "--secret-file", secret, "--file", self.keys)
        digest = hmac.new(b"a secret of some length", made["key"].encode(), "sha256").hexdigest()
        self.assertEqual(made["hash"], "hmac-sha256:" + digest)
        clients = "api_keys: {file: keys.yaml, secret_file: secret}"
        self.assertEqual(self.client(made["key"], clients)["api_key"], "a")
        configuration = self.file("bad.yaml", RULES + "clients: {api_keys: {file: keys.yaml}}\n")
        done = sluice("check", configuration)
        self.assertEqual(done.code, 1)
        self.assertIn("hashed under a secret, but there is none", done.err)

    def test_keys_expire(self):
        for when, pattern in (
            ("30d", r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$"),
            ("2100-01-01T00:00:00Z", r"^2100-01-01T00:00:00Z$"),
        ):
            made = self.new("--name", when[:4], "--expires", when, "--file", self.keys)
            self.assertRegex(made["expires"], pattern)
        for wrong in ("tomorrow", "0s", "2001-01-01T00:00:00Z", "", "99999w"):
            new = ("keys", "create", "--name", "x", "--file", self.keys)
            self.refuses(2, "--expires .*(neither|past)", *new, "--expires", wrong)
        self.assertFalse(any(key["expired"] for key in self.listed()))
        entry = "{name: old, hash: 'sha256:" + "0" * 64 + "', expires: 2001-01-01T00:00:00Z}"
        self.file("keys.yaml", f"keys: [{entry}]\n")
        self.assertTrue(self.listed()[0]["expired"])
        done = self.ok("keys", "list", "--file", self.keys)
        self.assertRegex(done.out, r"old +- +- +- +2001-01-01T00:00:00Z, expired")

    def test_an_empty_list_says_how_to_go_on(self):
        self.file("keys.yaml", "keys: []\n")
        self.assertIn("sluice keys create", self.ok("keys", "list", "--file", self.keys).out)

    def test_what_cannot_be_understood(self):
        self.refuses(2, r"a command is missing; known are create and list", "keys")
        self.refuses(2, r"unknown command 'lst'; did you mean list\?", "keys", "lst")
        self.refuses(2, r"sluice keys create: --name is required", "keys", "create")
        self.refuses(2, r"--name is empty", "keys", "create", "--name", "")
        self.refuses(2, r"--file is empty", "keys", "create", "--name", "a", "--file", "")
        self.refuses(2, r"no name and value", "keys", "create", "--name", "a", "--attribute", "x")
        twice = ("--attribute", "x=1", "--attribute", "x=2")
        self.refuses(2, r"'x' is given twice", "keys", "create", "--name", "a", *twice)
        self.refuses(2, r"did you mean --tier", "keys", "create", "--name", "a", "--teir", "x")
        self.refuses(3, r"nowhere", "keys", "list", "--file", "nowhere.yaml")
        self.refuses(3, r"create the folder", "keys", "create", "--name", "a", "--file",
                     os.path.join(self.folder, "no", "keys.yaml"))  # fmt: skip


if __name__ == "__main__":
    unittest.main()
