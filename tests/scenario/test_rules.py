"""`sluice check` and `sluice explain`: a configuration, and one request through it."""

import hashlib
import json
import os
import socket
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
    block: {duration: 15m}
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

    # What other programs call their option for it.
    def test_the_file_may_stand_behind_c(self):
        file = self.file("sluice.yaml", CONFIGURATION)
        expected = self.ok("check", file).out
        self.assertEqual(self.ok("check", "-c", file).out, expected)
        self.assertEqual(self.ok("check", "--config", file).out, expected)
        self.assertEqual(sluice("check", "-c", file, file).code, 2)

    def test_a_file_with_warnings_is_not_called_free_of_them(self):
        file = self.file("sluice.yaml", CONFIGURATION + "upstreams: {a: {servers: ['[::1]:1']}}\n")
        done = sluice("check", file)
        self.assertEqual(done.code, 0)
        self.assertIn("'upstreams' has no effect", done.err)
        self.assertIn("2 rules, valid, 1 warning\n", done.out)
        self.assertNotIn("nothing wrong", done.out)

    # Their mistakes come in two lots, and the first says so.
    def test_files_are_looked_at_once_the_text_has_no_mistake(self):
        keys = "clients: {api_keys: {file: keys.json}}\n"
        file = self.file("sluice.yaml", CONFIGURATION + keys + "drain: {timeout: soon}\n")
        done = sluice("check", file)
        self.assertNotIn("keys.json", done.err)
        told = "1 mistake; what the file names is checked once it has no mistake\n"
        self.assertIn(told, done.err)
        self.assertNotIn("what the file names", sluice("check", "--offline", file).err)

    def test_files_that_cannot_be_used(self):
        self.refuses(3, r"nowhere.yaml.*No such file", "check", "nowhere.yaml")
        keys = self.file("sluice.yaml", CONFIGURATION + "clients: {api_keys: {file: keys.json}}\n")
        done = sluice("check", keys)
        self.assertEqual(done.code, 1)
        self.assertRegex(done.err, r"cannot read '.*keys.json'")
        self.assertIn("clients.api_keys.file: cannot read", done.err)
        self.assertIn("1 mistake in what it names (--offline does not look", done.err)
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
            ("gateway: {tls: {certificates: [{cert_file: no.pem, key_file: k}]}}\n", r"no\.pem"),
            ("admin: {token_file: nowhere}\n", r"cannot read '.*nowhere'"),
            (f"admin: {{token_file: {short}}}\n", r"the token in '.*token' is too short"),
        )
        for more, problem in cases:
            file = self.file("sluice.yaml", CONFIGURATION + listen + more)
            done = sluice("check", file)
            self.assertEqual(done.code, 1, more)
            self.assertRegex(done.err, problem)
            self.assertEqual(sluice("check", "--offline", file).code, 0)

    def test_modes_that_do_nothing_yet(self):
        rule = "  - {name: shared, limit: 5/1s, per: [ip], mode: gossip}\n"
        done = sluice("check", self.file("sluice.yaml", "rules:\n" + rule))
        self.assertEqual(done.code, 0)
        self.assertRegex(done.err, r"sluice\.yaml:2:50: warning: rule 'shared': 'mode' has no eff")
        local = self.file("sluice.yaml", "rules:\n" + rule.replace("gossip", "local"))
        self.assertEqual(self.ok("check", local).err, "")

    # Each with its place and the key that names it, also those of the rules and of servers.
    def test_all_files_that_are_missing_at_once(self):
        file = self.file(
            "sluice.yaml",
            "rules_from: {file: rules.yaml}\n"
            "listen: {gateway: '127.0.0.1:0', admin: '127.0.0.1:0'}\n"
            "upstreams: {app: {servers: ['127.0.0.1:1'], tls: {ca_file: ca.pem}}}\n"
            "routes: [{upstream: app}]\n"
            "clients:\n"
            "  api_keys: {file: keys.yaml, secret_file: keys.secret}\n"
            "  jwt: {jwks_file: [a.json, b.json], public_key_file: c.pem}\n"
            "gateway: {tls: {certificates: [{cert_file: d.pem, key_file: d.key}], "
            "client_ca_file: e.pem}}\n"
            "admin: {token_file: admin.token}\n",
        )
        err = sluice("check", file).err
        for place, key in (
            ("1:20", "rules_from.file"),
            ("3:60", "upstreams.app.tls.ca_file"),
            ("6:20", "clients.api_keys.file"),
            ("6:44", "clients.api_keys.secret_file"),
            ("7:21", "clients.jwt.jwks_file"),
            ("7:29", "clients.jwt.jwks_file"),
            ("7:55", "clients.jwt.public_key_file"),
            ("8:44", "gateway.tls.certificates.cert_file"),
            ("8:61", "gateway.tls.certificates.key_file"),
            ("8:86", "gateway.tls.client_ca_file"),
            ("9:21", "admin.token_file"),
        ):
            self.assertIn(f"sluice.yaml:{place}: {key}: ", err)
        self.assertIn("11 mistakes", err)

    def test_what_a_server_would_stumble_over(self):
        held = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(held.close)
        listen = (
            f"listen: {{gateway: '127.0.0.1:{held.getsockname()[1]}'}}\n"
            "upstreams: {app: {servers: ['127.0.0.1:1']}}\nroutes: [{upstream: app}]\n"
        )
        rules = "rules: [{name: a, per: ip, limit: 5/1s}]\n"
        file = self.file("sluice.yaml", rules + listen)
        done = sluice("check", file)
        self.assertEqual(done.code, 0)
        self.assertIn("warning: listen.gateway: cannot listen", done.err)
        self.assertEqual(sluice("check", "--start", file).code, 1)
        self.assertEqual(self.ok("check", "--offline", file).err, "")
        self.refuses(2, "--offline", "check", "--start", "--offline", file)
        for more, problem in (
            ("state: {file: no/state}\n", "state.file: cannot write"),
            ("access_log: {file: no/log}\n", "access_log.file: cannot write"),
        ):
            done = sluice("check", self.file("sluice.yaml", rules + listen + more))
            self.assertEqual(done.code, 1)
            self.assertIn(problem, done.err)
        self.assertEqual(os.listdir(self.folder), ["sluice.yaml"])

    def promised(self, rule, more=""):
        file = self.file("sluice.yaml", f"rules: [{{name: a, {rule}}}]\n{more}")
        text = self.ok("check", file).out
        [limit] = json.loads(self.ok("check", "--json", file).out)["rules"][0]["limits"]
        self.assertIn(limit["bound"], text)
        return limit["most"], limit["bound"], text

    # Whatever a request may bring along, and whoever is treated otherwise.
    def test_the_bound_holds_for_whoever_may_have_most(self):
        claim = "per: user, limit: {rate: 5/1h, from: {claim: quota, max: 1000}}"
        self.assertEqual(self.promised(claim)[:2], (1999, "1999 in any 1h"))
        twice = (
            "overrides: [{subject: user=acme, multiplier: 10}, "
            "{subject: user=zoo, multiplier: 2}]\n"
        )
        most, bound, text = self.promised("per: user, limit: 5/1h", twice)
        self.assertEqual((most, bound), (9, "9 in any 1h"), "the others have no override")
        self.assertRegex(text, r"5/1h token_bucket +9 in any 1h *\n +99 in any 1h +with override u")
        self.assertIn("with override user=acme (multiplier 10)", text)
        path = os.path.join(self.folder, "sluice.yaml")
        [rule] = json.loads(self.ok("check", "--json", path).out)["rules"]
        self.assertEqual(
            rule["limits"][0]["with_override"],
            {"subject": "user=acme", "multiplier": 10, "most": 99, "bound": "99 in any 1h"},
        )
        self.assertRegex(self.promised(claim, twice)[2], r"19999 in any 1h +with override user=")
        # Overrides that are over, that give less, or that concern nobody here.
        for other in (
            "{subject: user=a, multiplier: 10, expires: '2020-01-01T00:00:00Z'}",
            "{subject: user=a, multiplier: 0.5}",
            "{subject: tenant=a, multiplier: 10}",
        ):
            rest = f"overrides: [{other}]\n"
            most, _, text = self.promised("per: user, limit: 5/1h", rest)
            self.assertEqual(most, 9, other)
            self.assertNotIn("with override", text)

    def test_what_is_charged_later_may_be_overrun_by_what_is_in_flight(self):
        limit = "limit: {rate: 3/1h, algorithm: sliding_log}"
        after = self.promised(limit + ", count: {status: [401], when: after}")
        self.assertEqual(after[:2], (3, "3 in any 1h + in flight"))
        at_once = self.promised(limit + ", count: {status: [401]}")
        self.assertEqual(at_once[:2], (3, "3 in any 1h"))
        window = "limit: {rate: 3/1h, algorithm: fixed_window, align: first_request}"
        self.assertEqual(self.promised(window)[0], 5)
        self.assertEqual(self.promised(window + ", count: {status: [401]}")[0], 6, "refunds")

    def test_a_shadow_limits_nothing(self):
        most, bound, _ = self.promised("limit: 3/1h, action: shadow")
        self.assertEqual((most, bound), (None, "none (shadow)"))

    def limits(self, count, more=""):
        rules = "".join(
            f"  - {{name: r{i}, match: {{path: /{i}}}, limit: {i + 1}/1h}}\n" for i in range(count)
        )
        return self.file("sluice.yaml", "rules:\n" + rules + more)

    # Whoever calls a file good has looked whether there is room for it.
    def test_limits_that_the_memory_does_not_hold(self):
        memory = "state: {memory: 4MiB}\n"
        done = sluice("check", self.limits(1093, memory))
        self.assertEqual(done.code, 1)
        self.assertIn("1093 different limits, and 4MiB of memory hold 1092", done.err)
        self.assertIn("write state: {memory: 5MiB}", done.err)
        answer = json.loads(sluice("check", "--json", self.limits(1093, memory)).out)
        self.assertEqual(answer["errors"], 1)
        self.assertEqual(sluice("explain", "/", "-c", self.limits(1093, memory)).code, 3)
        # Exactly as many as are said to fit do, with what overrides and blocks need.
        self.ok("check", self.limits(1092, memory))
        self.assertEqual(sluice("explain", "/", "-c", self.limits(1092, memory)).code, 0)
        block = "  - {name: b, limit: 2000/1h, block: {duration: 1h, threshold: 2}, per: ip}\n"
        twice = "overrides: [{subject: ip=192.0.2.1, multiplier: 2.5}]\n"
        for count, code in ((1088, 0), (1089, 1)):
            file = self.limits(count, block + memory + twice)
            self.assertEqual(sluice("check", file).code, code)
            self.assertEqual(sluice("explain", "/", "-c", file).code, 3 * code)

    def test_the_memory_that_is_configured_is_used_to_explain(self):
        self.assertIn("+ r1499 per", self.ok("explain", "/1499", "-c", self.limits(1500)).out)

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
        self.assertIn("decision  allowed", done.out)

    def test_a_refusal_and_a_block(self):
        done = sluice(*self.explain("POST /login/.", "--repeat", "4"))
        self.assertEqual(done.code, 1)
        self.assertIn("rejected with 429: limited by login-failures", done.out)
        told = "the last of 4 requests; the responses to the others are assumed to count\n"
        self.assertIn("repeat    " + told, done.out)
        self.assertNotIn("repeat", sluice(*self.explain("POST /login")).out)
        other = sluice(*self.explain("GET /v1/x", "--host", "api.example.com", "--repeat", "2"))
        self.assertIn("repeat    the last of 2 requests\n", other.out)
        done = sluice(*self.explain("POST /%6cogin", "--repeat", "5"))
        self.assertIn("blocked by login-failures for another 15m\n", done.out)

    def test_json(self):
        done = self.ok(*self.explain("/login", "--json"))
        answer = json.loads(done.out)
        self.assertEqual(answer["action"], "pass")
        self.assertEqual(answer["rule"], "login-failures")
        self.assertEqual(answer["rules"][0]["mismatch"], "host")
        self.assertEqual(answer["decision"]["remaining"], 2)

    RULES = """\
clients: {trusted_proxies: [127.0.0.1], api_keys: {file: keys.json}}
lists:
  allow: [{subject: user=root, note: the operator}]
  deny: [ip=203.0.113.0/24]
overrides: [{subject: user=acme, multiplier: 2}]
rules:
  - name: each
    per: [ip, user, method, header.x-team]
    limit: 10/1h
    cost: {header: x-cost, max: 5}
  - name: plans
    per: [user]
    limit: 5/1h
    tiers: {by: client.tier, values: {paid: 50/1h}}
  - {name: given, per: [ip], limit: {rate: 1/1h, from: {header: x-max, max: 9}}}
  - {name: skipped, per: [query.q], on_missing: skip, limit: 7/1h}
  - {name: gold, match: {descriptor: {plan: gold}}, per: [descriptor.who], limit: 3/1h}
"""
    KEYS = [
        {"name": name, "hash": "sha256:" + hashlib.sha256(name.encode()).hexdigest(), **more}
        for name, more in {
            "acme": {"user": "acme", "tier": "paid"},
            "root": {"user": "root"},
        }.items()
    ]

    def told(self, *arguments, code=0):
        self.file("keys.json", json.dumps({"keys": self.KEYS}))
        command = ("explain", *arguments, "-c", self.file("rules.yaml", self.RULES))
        done, answer = sluice(*command), sluice(*command, "--json")
        self.assertEqual((done.code, done.err, answer.code), (code, "", code), done.out)
        answer = json.loads(answer.out)
        return done.out, answer, {rule["name"]: rule for rule in answer["rules"]}

    def test_keys_and_what_stands_for_a_missing_value(self):
        out, _, rules = self.told("/x", "--ip", "192.0.2.9", "-H", "X-Team: blue")
        key = "key  ip=192.0.2.9 user=(missing, ip 192.0.2.9) method=GET header.x-team=blue\n"
        self.assertIn("+ each per ip, user, method, header.x-team\n      " + key, out)
        ip, user, *_ = rules["each"]["key"]
        self.assertEqual((ip["part"], ip["value"], ip["missing"]), ("ip", "192.0.2.9", False))
        self.assertEqual((user["value"], user["instead"]), (None, "ip 192.0.2.9"))
        self.assertIn("- skipped: query.q is missing (on_missing: skip)", out)
        self.assertFalse(rules["skipped"]["asked"])
        out, _, _ = self.told("/x?q=a%20b", "--ip", "2001:db8::1")
        self.assertIn("key  ip=2001:db8::/64 user=(missing, ip 2001:db8::/64)", out)
        self.assertIn("key  query.q=a b\n", out)

    def test_costs_tiers_amounts_and_overrides(self):
        who = ("-H", "x-api-key: acme", "-H", "x-cost: 3")
        forwarded = ("-H", "x-forwarded-for: 192.0.2.1", "-H", "x-max: 7")
        out, _, rules = self.told("/x", *who, *forwarded)
        by = "by override user=acme (multiplier 2)"
        self.assertIn(f"cost 3\n      10/1h token_bucket, here 20 {by}: 17 of 20 left", out)
        self.assertIn(f"tier paid\n      50/1h token_bucket, here 100 {by}: 99 of 100 left", out)
        self.assertIn("from x-max up to 9, here 7 by x-max: 6 of 7 left", out)
        self.assertEqual(rules["each"]["cost"], 3)
        self.assertEqual(rules["each"]["override"], {"subject": "user=acme", "multiplier": 2})
        self.assertEqual(rules["plans"]["tier"], "paid")
        for name, told in (("plans", (100, False, True)), ("given", (7, True, False))):
            [limit] = rules[name]["limits"]
            self.assertEqual((limit["amount"], limit["by_from"], limit["by_override"]), told)
        self.assertIsNone(rules["given"]["override"])

    def test_an_override_of_what_a_request_brings_along(self):
        file = self.file(
            "sluice.yaml",
            "clients: {trusted_proxies: [127.0.0.1]}\n"
            "overrides: [{subject: ip=192.0.2.1, multiplier: 3}]\n"
            "rules: [{name: a, per: ip, limit: {rate: 2/1h, from: {header: x-max, max: 9}}}]\n",
        )
        who = ("-c", file, "-H", "x-forwarded-for: 192.0.2.1")
        by = "by override ip=192.0.2.1 (multiplier 3)"
        self.assertIn(f", here 6 {by}: 5 of 6", self.ok("explain", "/", *who).out)
        both = self.ok("explain", "/", *who, "-H", "x-max: 4").out
        self.assertIn(f", here 12 by x-max {by}: 11 of 12", both)

    def test_lists_and_what_was_not_asked(self):
        out, answer, rules = self.told("/x", "--ip", "203.0.113.7", code=1)
        self.assertIn("rejected with 403: deny_listed by ip=203.0.113.0/24\n", out)
        self.assertIn("- each: matches, but is not evaluated: deny_listed", out)
        self.assertNotIn("+ each", out)
        self.assertEqual((answer["allowed"], answer["decision"]), (False, None))
        self.assertEqual(answer["listed"]["subject"], "ip=203.0.113.0/24")
        self.assertFalse(rules["each"]["asked"])
        out, answer, _ = self.told("/x", "-H", "x-api-key: root")
        self.assertIn("allowed: allow_listed by user=root (the operator)", out)
        self.assertEqual((answer["allowed"], answer["decision"]), (True, None))

    def test_what_is_refused_by_no_limit_has_no_decision(self):
        for rules, status, reason in (
            (
                "rules: [{name: a, per: user, on_missing: reject, limit: 1/1h}]",
                403,
                "missing_value",
            ),
            (
                "rules: [{name: a, match: {path: /a}, limit: 1/1h}]\nunmatched: reject",
                *(503, "no_rule"),
            ),
            ("rules: [{name: a, limit: 1/1h}]", 400, "bad_target"),
        ):
            target = "/%zz" if status == 400 else "/"
            file = self.file("sluice.yaml", rules + "\n")
            answer = json.loads(sluice("explain", target, "-c", file, "--json").out)
            self.assertEqual((answer["status"], answer["reason"]), (status, reason))
            self.assertEqual((answer["allowed"], answer["decision"]), (False, None))
        out = sluice("explain", "/", "-c", self.file("sluice.yaml", rules + "\n"), "--repeat", "2")
        self.assertIn("rejected with 429", out.out)

    # The value that is there twice is named, not the first one that is missing.
    def test_which_value_is_ambiguous(self):
        twice = ("-H", "x-team: blue", "-H", "x-team: red")
        out, answer, rules = self.told("/x", *twice, code=1)
        self.assertIn("rejected with 400: ambiguous_value, which each counts by\n", out)
        self.assertIn("- each: header.x-team is sent twice, differently\n", out)
        self.assertEqual(answer["reason"], "ambiguous_value")
        _, user, _, team = rules["each"]["key"]
        self.assertEqual((user["missing"], user["ambiguous"]), (True, False))
        self.assertEqual((team["value"], team["missing"], team["ambiguous"]), (None, False, True))

    # What the rules let pass and the gateway does not.
    def test_two_readings_of_a_path_with_different_routes(self):
        file = self.file(
            "sluice.yaml",
            "listen: {gateway: '127.0.0.1:0'}\n"
            "upstreams: {a: {servers: [':1']}, b: {servers: [':2']}}\n"
            "routes: [{path: '/v1/{one}', upstream: a}, {path: /v1/x/y, upstream: b}]\n"
            "rules: [{name: r, per: ip, limit: 5/1h}]\n",
        )
        done = sluice("explain", "/v1/x%2Fy", "-c", file)
        self.assertEqual(done.code, 1, done.out)
        self.assertIn("decision  rejected with 400: ambiguous_route, after the rules", done.out)
        self.assertIn("route     none: with and without the escaped slash", done.out)
        self.assertIn("4 of 5 left", done.out)
        self.assertIn("\npath      /v1/x%2Fy\n      or  /v1/x/y\n", done.out)
        answer = json.loads(sluice("explain", "/v1/x%2Fy", "-c", file, "--json").out)
        told = [answer[key] for key in ("allowed", "action", "reason", "status", "route")]
        self.assertEqual(told, [False, "reject", "ambiguous_route", 400, None])
        self.assertEqual(answer["request"]["decoded_path"], "/v1/x/y")
        self.assertIn("to upstream b", self.ok("explain", "/v1/x/y", "-c", file).out)

    def test_why_a_proof_failed(self):
        _, answer, _ = self.told("/x", "-H", "x-api-key: guessed")
        self.assertEqual(answer["client"]["proof"], "unknown key")
        self.assertEqual(answer["client"]["why"], "the API key is unknown")

    def test_descriptors_of_our_own_rules(self):
        out, _, rules = self.told("/x", "--descriptor", "plan=gold", "who=ada")
        self.assertIn("+ gold per descriptor.who\n      key  descriptor.who=ada\n", out)
        self.assertEqual(rules["gold"]["limits"][0]["decision"]["remaining"], 2)
        _, _, rules = self.told("/x")
        self.assertEqual(rules["gold"]["mismatch"], "descriptor")
        twice = ("--descriptor", "a=b", "--descriptor", "c=d")
        file = self.file("rules.yaml", self.RULES)
        self.refuses(2, r"one descriptor", "explain", "/", "-c", file, *twice)

    def test_targets_that_are_no_paths(self):
        rules = "rules: [{name: a, match: {host: b.example, path: /x}, limit: 1/1h}]\n"
        file = self.file("sluice.yaml", rules)
        done = self.ok("explain", "GET http://B.example:80/x?q=1", "-c", file)
        self.assertIn("path      /x\nhost      b.example\n", done.out)
        self.assertIn("+ a per everybody", done.out)
        done = self.ok("explain", "OPTIONS *", "-c", file)
        self.assertIn("path      *\n", done.out)

    def test_preflights(self):
        preflight = ("OPTIONS /login", "-H", "Origin: https://a.example")
        preflight += ("-H", "Access-Control-Request-Method: POST", "--repeat", "9")
        for clients, code, told in (
            ("", 1, "rejected with 429: blocked by login-failures"),
            ("clients: {require_auth: true}", 1, "rejected with 429: blocked by login-failures"),
            ("clients: {require_auth: true, cors_preflight: exempt}", 0, "allowed: preflight"),
        ):
            with self.subTest(clients):
                file = self.file("sluice.yaml", CONFIGURATION + clients + "\n")
                done = sluice("explain", *preflight, "-c", file)
                self.assertEqual(done.code, code, done.out)
                self.assertIn("decision  " + told, done.out)
        done = sluice("explain", *preflight[:3], "-c", file)
        self.assertIn("rejected with 401", done.out)

    def test_no_rule_is_asked_about_a_path_that_is_none(self):
        done = sluice(*self.explain("/%zz"))
        self.assertEqual(done.code, 1, done.err)
        self.assertRegex(done.out, r"\npath +cannot be normalised: .*\n")
        self.assertIn("\nrules     none evaluated\ndecision ", done.out)

    def test_what_cannot_be_understood(self):
        self.refuses(2, r"'login' is no request; write a method and a path", *self.explain("login"))
        blank = r"there is a blank in '/x y'; write %20 for it"
        self.refuses(2, blank, *self.explain("get /x y"))
        self.refuses(2, r"'x' is no header", *self.explain("/", "-H", "x"))
        self.refuses(2, r"'1.2.3' is no address", *self.explain("/", "--ip", "1.2.3"))
        self.refuses(3, r"nowhere.yaml", "explain", "/", "-c", "nowhere.yaml")


TREES = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "envoy", "sluice.yaml")


class Envoy(ScenarioTest):
    """Trees of envoyproxy/ratelimit, which a configuration names by their folder."""

    def explain(self, *arguments):
        return ("explain", "-c", TREES, "--domain", "edge", *arguments)

    def test_check_counts_domains_and_limits(self):
        done = sluice("check", TREES)
        self.assertEqual(done.code, 0)
        self.assertIn("warning: no listener asks the trees", done.err)
        self.assertIn("4 limits in 1 domain, valid, 1 warning", done.out)
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
        self.assertIn("mistakes in what it names", done.err)
        self.assertEqual(sluice("check", "--offline", bad).code, 0)
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
