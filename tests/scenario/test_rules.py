"""`sluice check` and `sluice explain`: a configuration, and one request through it."""

import json
import os
import unittest

from support import ScenarioTest, sluice

CONFIGURATION = """\
rules:
  - name: api-per-user
    match: {method: [GET, POST], path: /v1/**, host: api.example.com}
    per: [user]
    limit: [100/1s, {rate: 10000/1h, algorithm: sliding_counter}]
    tiers: {by: client.tier, values: {free: 10/1s, paid: [1000/1s, 50000/1h]}}
  - name: login-failures
    match: {path: /login}
    per: [ip]
    limit: 3/1h
    count: {status: [401, 403]}
    block: {for: 15m}
"""


class Check(ScenarioTest):
    def test_a_good_file_is_answered_with_what_it_promises(self):
        done = self.ok("check", self.file("sluice.yaml", CONFIGURATION))
        self.assertIn("2 rules, nothing wrong", done.out)
        self.assertRegex(done.out, r"api-per-user +user +100/1s token_bucket +199 in any 1s")
        self.assertRegex(done.out, r"10000/1h sliding_counter +19999 in any 1h")
        self.assertRegex(done.out, r"1000/1s token_bucket +1999 in any 1s +tier paid")

    def test_json(self):
        done = self.ok("check", "--json", self.file("sluice.yaml", CONFIGURATION))
        answer = json.loads(done.out)
        self.assertEqual(answer["errors"], 0)
        names = [rule["name"] for rule in answer["rules"]]
        self.assertEqual(names, ["api-per-user", "login-failures"])
        self.assertEqual(answer["rules"][0]["limits"][0]["most"], 199)

    def test_all_mistakes_at_once(self):
        bad = self.file(
            "bad.yaml", "rules:\n  - nmae: x\n    limit: 5/1x\n  - {name: b, limit: 0/1s}\n"
        )
        done = sluice("check", bad)
        self.assertEqual(done.code, 1)
        self.assertIn("bad.yaml:2:5: unknown key 'nmae' in rule; did you mean 'name'?", done.err)
        self.assertIn("bad.yaml:3:12: ", done.err)
        self.assertIn("bad.yaml:4:22: ", done.err)
        answer = json.loads(sluice("check", "--json", bad).out)
        self.assertEqual(answer["mistakes"][0]["line"], 2)
        self.assertEqual(answer["mistakes"][0]["column"], 5)

    def test_files_that_cannot_be_used(self):
        self.refuses(3, r"nowhere.yaml.*No such file", "check", "nowhere.yaml")
        keys = self.file("sluice.yaml", CONFIGURATION + "clients: {api_keys: {file: keys.json}}\n")
        done = sluice("check", keys)
        self.assertEqual(done.code, 1)
        self.assertRegex(done.err, r"cannot open '.*keys.json'")
        self.assertIn("1 mistake in the files that it names (--offline does not look", done.err)
        self.assertEqual(json.loads(sluice("check", "--json", keys).out)["errors"], 1)
        self.ok("check", "--offline", keys)
        self.refuses(2, r"FILE is required", "check")

    # What a server would stumble over, before anybody tells it to read the file.
    def test_certificates_and_tokens_that_cannot_be_used(self):
        listen = (
            "listen: {gateway: '127.0.0.1:0', admin: '127.0.0.1:0'}\n"
            "upstreams: {app: {servers: ['127.0.0.1:1']}}\nroutes: [{upstream: app}]\n"
        )
        short = self.file("token", "short\n")
        cases = (
            ("gateway: {tls: {certificates: [{certificate: no.pem, key: k}]}}\n", r"no\.pem"),
            ("admin: {token_file: nowhere}\n", r"cannot open '.*nowhere'"),
            (f"admin: {{token_file: {short}}}\n", r"the token in '.*token' is too short"),
        )
        for more, problem in cases:
            file = self.file("sluice.yaml", CONFIGURATION + listen + more)
            done = sluice("check", file)
            self.assertEqual(done.code, 1, more)
            self.assertRegex(done.err, problem)
            self.ok("check", "--offline", file)

    def test_modes_that_do_nothing_yet(self):
        rule = "  - {name: shared, limit: 5/1s, per: [ip], mode: gossip}\n"
        done = sluice("check", self.file("sluice.yaml", "rules:\n" + rule))
        self.assertEqual(done.code, 0)
        self.assertRegex(done.err, r"sluice\.yaml:2:5: warning: rule 'shared' has a mode, but")
        local = self.file("sluice.yaml", "rules:\n" + rule.replace("gossip", "local"))
        self.assertEqual(self.ok("check", local).err, "")

    def test_the_schema_names_every_key_of_a_good_file(self):
        schema = json.loads(self.ok("check", "--print-schema").out)
        rule = schema["$defs"]["rule"]["properties"]
        for key in ("name", "match", "per", "limit", "tiers", "count", "block"):
            self.assertIn(key, rule)


class Explain(ScenarioTest):
    def explain(self, *arguments):
        return ("explain", *arguments, "-c", self.file("sluice.yaml", CONFIGURATION))

    def test_every_rule_and_why(self):
        who = ("--host", "API.example.com", "--ip", "192.0.2.1")
        done = self.ok(*self.explain("GET /v1//users/?x=1", *who))
        self.assertIn("path      /v1/users\n", done.out)
        self.assertIn("client    192.0.2.1, anonymous", done.out)
        self.assertIn("+ api-per-user per user", done.out)
        self.assertIn("100/1s token_bucket: 99 of 100 left", done.out)
        self.assertIn("- login-failures: path does not match", done.out)
        self.assertIn("decision  passes", done.out)

    def test_a_refusal_and_a_block(self):
        done = sluice(*self.explain("POST /login/.", "--repeat", "4"))
        self.assertEqual(done.code, 1)
        self.assertIn("rejected with 429: limited by login-failures", done.out)
        done = sluice(*self.explain("POST /%6cogin", "--repeat", "5"))
        self.assertIn("blocked by login-failures for another 15", done.out)

    def test_json(self):
        done = self.ok(*self.explain("/login", "--json"))
        answer = json.loads(done.out)
        self.assertEqual(answer["action"], "pass")
        self.assertEqual(answer["rule"], "login-failures")
        self.assertEqual(answer["rules"][0]["mismatch"], "host")
        self.assertEqual(answer["decision"]["remaining"], 2)

    def test_preflights(self):
        preflight = ("OPTIONS /login", "-H", "Origin: https://a.example")
        preflight += ("-H", "Access-Control-Request-Method: POST", "--repeat", "9")
        for clients, code, told in (
            ("", 1, "rejected with 429: blocked by login-failures"),
            ("clients: {require: true}", 1, "rejected with 429: blocked by login-failures"),
            ("clients: {require: true, preflight: exempt}", 0, "passes: preflight"),
        ):
            with self.subTest(clients):
                file = self.file("sluice.yaml", CONFIGURATION + clients + "\n")
                done = sluice("explain", *preflight, "-c", file)
                self.assertEqual(done.code, code, done.out)
                self.assertIn("decision  " + told, done.out)
        done = sluice("explain", *preflight[:3], "-c", file)
        self.assertIn("rejected with 401", done.out)

    def test_what_cannot_be_understood(self):
        self.refuses(2, r"'login' is no request; write a method and a path", *self.explain("login"))
        self.refuses(2, r"'x' is no header", *self.explain("/", "-H", "x"))
        self.refuses(2, r"'1.2.3' is no address", *self.explain("/", "--ip", "1.2.3"))
        self.refuses(3, r"nowhere.yaml", "explain", "/", "-c", "nowhere.yaml")


TREES = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "envoy", "sluice.yaml")


class Envoy(ScenarioTest):
    """Trees of envoyproxy/ratelimit, which a configuration names by their folder."""

    def explain(self, *arguments):
        return ("explain", "-c", TREES, "--domain", "edge", *arguments)

    def test_check_counts_domains_and_limits(self):
        done = self.ok("check", TREES)
        self.assertIn("4 limits in 1 domain, nothing wrong", done.out)
        answer = json.loads(self.ok("check", "--json", TREES).out)
        self.assertEqual(answer["domains"], [{"name": "edge", "limits": 4}])
        self.assertEqual(answer["rules"], [])

    def test_mistakes_have_their_places_in_the_files_of_the_folder(self):
        tree = self.file("tree.yaml", "domain: d\ndescriptors: [{kye: a}]\n")
        folder = os.path.join(os.path.dirname(tree), "trees")
        os.mkdir(folder)
        os.rename(tree, os.path.join(folder, "tree.yaml"))
        bad = self.file("sluice.yaml", "rules_from: {envoy: trees}\n")
        done = sluice("check", bad)
        self.assertEqual(done.code, 1)
        self.assertIn("tree.yaml:2:16: unknown key 'kye'; did you mean 'key'?", done.err)
        self.assertIn("mistakes in the files that it names", done.err)
        self.ok("check", "--offline", bad)
        done = sluice("explain", "-c", bad, "--domain", "d", "--descriptor", "a=b")
        self.assertEqual(done.code, 3)
        self.assertIn("tree.yaml:2:16: unknown key 'kye'", done.err)

    def test_one_status_for_each_descriptor(self):
        descriptors = ("--descriptor", "plan=gold", "tenant=a=b", "--descriptor", "path=/health")
        answer = json.loads(self.ok(*self.explain(*descriptors, "--json")).out)
        self.assertEqual(answer["overall_code"], "ok")
        first, second = answer["statuses"]
        self.assertEqual(first["entries"][1], {"key": "tenant", "value": "a=b"})
        self.assertEqual(
            first["current_limit"],
            {"requests_per_unit": 100, "unit": "second", "name": "gold-tenants"},
        )
        self.assertEqual(first["limit_remaining"], 99)
        self.assertEqual(first["duration_until_reset_s"], 1)
        self.assertIsNone(second["current_limit"])
        self.assertEqual(second["limit_remaining"], 4294967295)

    def test_over_the_limit(self):
        done = sluice(*self.explain("--descriptor", "path=/export/x", "--repeat", "3"))
        self.assertEqual(done.code, 1)
        self.assertIn("path=/export/x: over_limit, 0 of 2 per second left (exports)", done.out)
        self.assertIn("decision  over_limit", done.out)

    def test_what_cannot_be_understood(self):
        self.refuses(2, r"'x' is no entry of a descriptor", *self.explain("--descriptor", "x"))
        self.refuses(2, r"'=x' is no entry", *self.explain("--descriptor", "=x"))
        self.refuses(2, r"REQUEST or --descriptor", *self.explain())
        self.refuses(2, r"--domain", "explain", "-c", TREES, "--descriptor", "a=b")
        self.refuses(2, r"excludes", *self.explain("--ip", "::1", "--descriptor", "a=b"))
        rules = self.file("sluice.yaml", CONFIGURATION)
        self.refuses(
            3, r"no trees", "explain", "-c", rules, "--domain", "d", "--descriptor", "a=b"
        )


if __name__ == "__main__":
    unittest.main()
