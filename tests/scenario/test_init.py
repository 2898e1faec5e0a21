"""`sluice init`: every recipe, from the files that it writes to the decisions that follow."""

import json
import os
import re
import shlex
import stat
import unittest
from collections import Counter

from gateway_support import Gateway
from support import ScenarioTest, sluice

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
SOURCES = os.path.join(ROOT, "src", "cli", "init", "recipes")
TRACES = os.path.join(ROOT, "tests", "corpus", "init")
RECIPES = ("login", "public-api", "plans", "behind-nginx")
WITH_KEYS = ("public-api", "plans")


def read(path):
    with open(path, encoding="utf-8") as stream:
        return stream.read()


class InitTest(ScenarioTest):
    def path(self, *names):
        return os.path.join(self.folder, *names)

    def init(self, recipe, *arguments):
        """Writes the recipe into the folder; gives what the command tells."""
        done = self.ok("init", recipe, "-o", self.path("sluice.yaml"), "--json", *arguments)
        return json.loads(done.out)

    def files(self):
        return sorted(os.listdir(self.folder))

    def use_free_ports(self, file):
        """The ports of a recipe may be in use here, by anything; the system chooses others."""
        text = read(file)
        self.assertIn("gateway: 127.0.0.1:8080", text)
        self.assertIn("admin: 127.0.0.1:9090", text)  # where `sluice status` looks
        with open(file, "w", encoding="utf-8") as changed:
            changed.write(re.sub(r"127\.0\.0\.1:(8080|9090)", "127.0.0.1:0", text))


class Files(InitTest):
    def test_every_recipe_is_listed_and_no_other(self):
        listed = [line["name"] for line in self.ok("init", "--list", "--json").json_lines()]
        self.assertEqual(listed, list(RECIPES))
        self.assertEqual(sorted(f"{name}.yaml" for name in listed), sorted(os.listdir(SOURCES)))
        for name in RECIPES:
            self.assertRegex(self.ok("init", "--list").out, rf"(?m)^  {name} +\w")

    def test_what_is_written_is_the_recipe_and_good(self):
        for recipe in RECIPES:
            with self.subTest(recipe=recipe):
                folder = self.path(recipe) + "/"
                self.ok("init", recipe, "-o", folder)
                written = os.path.join(folder, "sluice.yaml")
                self.assertEqual(read(written), read(os.path.join(SOURCES, f"{recipe}.yaml")))
                self.use_free_ports(written)
                self.assertIn("nothing wrong", self.ok("check", written).out)

    def test_editors_find_the_schema_beside_every_file(self):
        for recipe in RECIPES:
            told = self.init(recipe, "--force")
            for path in told["files"]:
                if path.endswith(".json"):
                    continue
                first = read(path).splitlines()[0]
                named = re.fullmatch(r"# yaml-language-server: \$schema=(\./[a-z.]+)", first)
                self.assertTrue(named, first)
                schema = read(os.path.join(self.folder, named.group(1)))
                option = "--print-keys-schema" if "keys" in path else "--print-schema"
                self.assertEqual(schema, self.ok("check", option).out)

    def test_the_next_commands_work(self):
        for recipe in RECIPES:
            told = self.init(recipe, "--force")
            self.use_free_ports(self.path("sluice.yaml"))
            keys = [key["key"] for key in told["keys"]]
            for command in told["next"]:
                words = shlex.split(command.replace("KEY", keys[0]) if keys else command)
                self.assertEqual(words[0], "sluice")
                if words[1] == "serve":
                    self.assertServes(words[-1])
                    continue
                done = sluice(*words[1:])
                self.assertIn(done.code, (0, 1), command + "\n" + done.err)
                self.assertEqual(done.err, "", command)

    def assertServes(self, file):
        front = Gateway(file)
        try:
            front.says("admin on")
            admin = re.search(r"admin on (\S+)", front.said)[1]
            self.assertIn("serving", self.ok("status", "--server", f"http://{admin}").out)
            self.assertIn(front.get("/v1/a").status, (401, 502))  # there is no application
        finally:
            self.assertEqual(front.stop(), 0)

    def test_a_path_with_a_blank_is_quoted_in_the_next_commands(self):
        done = self.ok("init", "login", "-o", self.path("a b", "my config.yaml"), "--json")
        for command in json.loads(done.out)["next"]:
            self.assertIn(self.path("a b", "my config.yaml"), shlex.split(command))

    def test_people_are_told_the_same(self):
        done = self.ok("init", "plans", "-o", self.path("sluice.yaml"))
        for part in ("sluice.yaml", "keys.yaml", "shown only now", "demo-paid   sluice_", "Next:"):
            self.assertIn(part, done.out)
        # "Its keys" are those of the configuration, and "those of keys.yaml" come after it.
        wrote = [os.path.basename(word) for word in re.findall(r"(?m)^wrote (\S+)", done.out)]
        self.assertEqual(
            wrote, ["sluice.yaml", "sluice.schema.json", "keys.yaml", "keys.schema.json"]
        )


class Overwriting(InitTest):
    def test_nothing_is_replaced_without_being_told_to(self):
        for name in ("sluice.yaml", "keys.yaml", "keys.schema.json", "sluice.schema.json"):
            path = self.file(name, "mine\n")
            done = self.refuses(
                3, rf"there already: .*{name}; .*--force", "init", "plans", "-o", self.folder
            )
            self.assertEqual("stop working" in done.err, name == "keys.yaml")
            self.assertEqual(self.files(), [name])
            self.assertEqual(read(path), "mine\n")
            os.remove(path)

    def test_a_link_that_leads_nowhere_is_not_followed(self):
        os.symlink(self.path("elsewhere"), self.path("sluice.yaml"))
        self.refuses(3, r"there already", "init", "login", "-o", self.path("sluice.yaml"))
        self.assertEqual(self.files(), ["sluice.yaml"])

    def test_force_replaces(self):
        self.init("plans")
        first = read(self.path("keys.yaml"))
        self.init("public-api", "--force")
        self.assertIn("with-key", read(self.path("sluice.yaml")))
        self.assertNotEqual(read(self.path("keys.yaml")), first)

    def test_two_recipes_share_one_schema(self):
        self.init("login")
        done = self.ok("init", "behind-nginx", "-o", self.path("other.yaml"), "--json")
        self.assertEqual(json.loads(done.out)["files"], [self.path("other.yaml")])

    def test_what_cannot_be_written_leaves_nothing(self):
        os.mkdir(self.path("sluice.yaml"))
        done = sluice("init", "plans", "-o", self.path("sluice.yaml", "x", ""))
        self.assertEqual(done.code, 0, done.err)  # a folder in the folder
        blocked = self.file("blocked", "")
        self.refuses(3, r"folder", "init", "login", "-o", os.path.join(blocked, "sluice.yaml"))
        self.refuses(2, r"another name", "init", "plans", "-o", self.path("keys.yaml"))
        self.refuses(2, r"another name", "init", "login", "-o", self.path("sluice.schema.json"))
        self.assertEqual(self.files(), ["blocked", "sluice.yaml"])


class CommandLine(InitTest):
    def test_without_a_recipe_it_says_what_to_type(self):
        done = self.refuses(2, r"which recipe\?", "init")
        for recipe in RECIPES:
            self.assertIn(recipe, done.err)
        self.assertIn("sluice init login", done.err)

    def test_unknown_words(self):
        self.refuses(2, r"unknown recipe 'plan'; did you mean plans\? known are", "init", "plan")
        self.refuses(2, r"unknown option '--forse'; did you mean --force", "init", "--forse")


class Keys(InitTest):
    def test_keys_are_fresh_and_only_their_hashes_are_written(self):
        seen = set()
        for recipe in WITH_KEYS * 2:
            told = self.init(recipe, "--force")
            self.assertEqual([key["tier"] for key in told["keys"]], ["free", "paid"])
            for key in told["keys"]:
                self.assertRegex(key["key"], r"^sluice_[a-z2-7]{32}$")
                self.assertNotIn(key["key"], seen)
                seen.add(key["key"])
                for name in self.files():
                    self.assertNotIn(key["key"], read(self.path(name)))
            mode = stat.S_IMODE(os.stat(self.path("keys.yaml")).st_mode)
            self.assertEqual(mode, 0o600)

    def test_a_key_is_its_holder(self):
        key = self.init("public-api")["keys"][1]["key"]
        done = self.ok(
            "explain", "/v1/x", "-c", self.path("sluice.yaml"), "-H", f"x-api-key: {key}"
        )
        self.assertIn("authenticated, user demo-paid, api_key demo-paid, tier paid", done.out)
        self.assertIn("1200/1m token_bucket", done.out)


class Decisions(InitTest):
    def replay(self, recipe):
        """(request, verdict) for each line of the recorded trace."""
        self.init(recipe)
        trace = os.path.join(TRACES, f"{recipe}.jsonl")
        done = self.ok("replay", trace, "--rules", self.path("sluice.yaml"), "--json")
        requests = [json.loads(line) for line in read(trace).splitlines()]
        return list(zip(requests, done.json_lines(), strict=True))

    def explain(self, *arguments):
        done = sluice("explain", *arguments, "-c", self.path("sluice.yaml"), "--json")
        return json.loads(done.out)

    def test_login(self):
        by_address = {}
        for request, verdict in self.replay("login"):
            by_address.setdefault(request["ip"], []).append(verdict["reason"])
        # Eight guesses at once: five reach the login. The right word ten minutes later does not.
        guesser = ["allowed"] * 5 + ["limited"] + ["blocked"] * 3 + ["allowed"]
        self.assertEqual(by_address.pop("192.0.2.66"), guesser)
        # Four typing errors, and then as many successes as one likes.
        self.assertEqual(by_address.pop("198.51.100.7"), ["allowed"] * 10)
        # Guesses at one account from everywhere: ten, three refusals, then a block.
        account = [reason for reasons in by_address.values() for reason in reasons]
        self.assertEqual(account, ["allowed"] * 10 + ["limited"] * 3 + ["blocked"])
        attempts = self.explain("POST /login/.", "--repeat", "11")
        self.assertEqual((attempts["action"], attempts["status"]), ("reject", 429))
        self.assertEqual(self.explain("GET /login", "--repeat", "50")["reason"], "unmatched")

    def test_public_api(self):
        passed = Counter()
        for request, verdict in self.replay("public-api"):
            passed[request.get("tier", request["target"])] += verdict["allowed"]
        self.assertEqual(passed, {"/v1/items": 10, "free": 60, "paid": 62, "/health": 1})
        guess = self.explain("/v1/x", "-H", "x-api-key: guessed", "--repeat", "11")
        self.assertEqual(guess["client"]["proof"], "unknown key")
        self.assertEqual(guess["rule"], "anonymous")
        self.assertEqual(guess["action"], "reject")

    def test_plans(self):
        reasons = Counter()
        for request, verdict in self.replay("plans"):
            day = request["time"][8:10]
            reasons[(request["user"], day, verdict["rule"], verdict["allowed"])] += 1
        refused = {key[:3]: count for key, count in reasons.items() if not key[3]}
        # A day of the free plan is 200 requests that write; the next one begins at midnight.
        self.assertEqual(
            refused,
            {
                ("demo-free", "01", "daily-quota"): 20,
                ("demo-free", "02", "rate"): 3,
                ("demo-paid", "02", "exports-at-once"): 2,
                ("demo-paid", "02", None): 1,
            },
        )
        nobody = self.explain("/v1/items")
        self.assertEqual((nobody["reason"], nobody["status"]), ("unauthenticated", 401))

    def test_behind_nginx(self):
        passed = Counter()
        for request, verdict in self.replay("behind-nginx"):
            passed[request["ip"].rsplit(":" if ":" in request["ip"] else ".", 1)[0]] += verdict[
                "allowed"
            ]
        # One address; the addresses of one /64, which count as one; those of one /24.
        self.assertEqual(passed, {"192.0.2": 40, "2001:db8:": 40, "198.51.100": 400})

    def test_behind_nginx_believes_nginx_and_nobody_else(self):
        self.init("behind-nginx")
        for peer, header, client in (
            ("127.0.0.1", "203.0.113.7", "203.0.113.7"),
            ("::1", "10.9.9.9, 203.0.113.7", "203.0.113.7"),
            ("127.0.0.1", "203.0.113.7, 127.0.0.1", "203.0.113.7"),
            ("192.0.2.66", "203.0.113.7", "192.0.2.66"),
            ("127.0.0.1", "nonsense", "127.0.0.1"),
        ):
            told = self.explain("/", "--ip", peer, "-H", f"X-Forwarded-For: {header}")
            self.assertEqual(told["client"]["address"], client, (peer, header))


if __name__ == "__main__":
    unittest.main()
