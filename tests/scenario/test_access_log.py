"""The access log: what it hides, what it tells, and that `replay` reads it back."""

import base64
import hashlib
import hmac
import json
import os
import signal
import unittest

from gateway_support import GatewayTest, wait_until
from support import sluice

GEO = os.path.join(os.path.dirname(__file__), "..", "corpus", "geo")


def key_file(**keys):
    """A file of API keys: name=key."""
    records = [
        {"name": name, "hash": "sha256:" + hashlib.sha256(key.encode()).hexdigest(), "user": name}
        for name, key in keys.items()
    ]
    return json.dumps({"keys": records})


def token(secret, **claims):
    """Signed with HS256."""

    def part(value):
        return base64.urlsafe_b64encode(value).rstrip(b"=")

    signed = part(b'{"alg":"HS256"}') + b"." + part(json.dumps(claims).encode())
    return (signed + b"." + part(hmac.digest(secret, signed, "sha256"))).decode()


class Logs(GatewayTest):
    def logged(self, count):
        wait_until(lambda: self.log().count("\n") >= count, f"there are {count} lines")
        return self.log()


class Secrets(Logs):
    KEY = "topsecretkey"

    def front(self, form, where, rules=GatewayTest.NO_RULES):
        self.file("keys.json", key_file(acme=self.KEY))
        return self.gateway(
            self.upstream(),
            rules=rules,
            more=f"clients: {{api_keys: {{{where}, file: keys.json}}}}\n"
            f"access_log: {{file: access.log, format: {form}}}",
        )

    def assertKnownAndHidden(self, log, form):
        self.assertNotIn(self.KEY, log)
        if form == "json":
            self.assertEqual(json.loads(log.splitlines()[0])["api_key"], "acme")

    # The server behind might take the other one; nothing is passed on.
    def test_ambiguous_credentials_are_rejected_and_logged(self):
        rules = "[{name: keys, per: api_key, limit: 1/1h}]"
        front = self.front("json", "header: x-api-key, query: key", rules)
        key = f"X-Api-Key: {self.KEY}"
        self.assertEqual(front.get("/", key).status, 200)
        for path, headers in (
            ("/", ("X-Api-Key: bogus", key)),
            ("/", (key, "X-Api-Key: bogus")),
            ("/", (f"X-Api-Key: bogus, {self.KEY}",)),
            ("/?%6bey=bogus", (key,)),
        ):
            answer = front.get(path, *headers)
            self.assertEqual(answer.status, 400, headers)
            self.assertEqual(json.loads(answer.body)["reason"], "ambiguous_credentials")
        self.assertEqual(front.get("/", "X-Api-Key:", key).status, 429)
        reasons = [json.loads(line)["reason"] for line in self.logged(6).splitlines()]
        self.assertEqual(
            sorted(reasons), ["allowed"] + 4 * ["ambiguous_credentials"] + ["limited"]
        )
        self.assertNotIn(self.KEY, self.log())

    def test_a_key_in_the_query_is_hidden(self):
        for form in ("json", "text"):
            with self.subTest(form):
                front = self.front(form, "query: mykey")
                url = f"http://a/?MyKey={self.KEY}"
                front.get(f"/x?mykey={self.KEY}&a=1", f"Referer: {url}")
                log = self.logged(1)
                self.assertKnownAndHidden(log, form)
                self.assertIn("/x?mykey=***&a=1", log)
                os.remove(os.path.join(self.folder, "access.log"))

    # Not even by a rule that counts by the header or looks at the cookie.
    def test_a_key_in_a_header_or_a_cookie_is_hidden(self):
        rules = (
            "[{name: by-key, per: header.x-mine, limit: 100/1s}, "
            f"{{name: by-cookie, match: {{cookie: {{mine: {self.KEY}}}}}, limit: 100/1s}}]"
        )
        for where, header in (("header: X-Mine", "X-Mine: "), ("cookie: mine", "Cookie: mine=")):
            for form in ("json", "text"):
                with self.subTest(where=where, form=form):
                    front = self.front(form, where, rules)
                    front.get("/x", header + self.KEY)
                    self.assertKnownAndHidden(self.logged(1), form)
                    os.remove(os.path.join(self.folder, "access.log"))

    def test_where_keys_are_may_change_with_a_reload(self):
        front = self.front("json", "query: mykey")
        with open(front.file, encoding="utf-8") as stream:
            text = stream.read()
        self.file("sluice.yaml", text.replace("query: mykey", "query: newkey"))
        front.signal(signal.SIGHUP)
        front.says("configuration reloaded")
        front.get(f"/x?newkey={self.KEY}")
        log = self.logged(1)
        self.assertKnownAndHidden(log, "json")
        self.assertIn("/x?newkey=***", log)


class Replayed(Logs):
    """Live traffic, and then its log through the same rules."""

    SECRET = b"0123456789abcdef0123456789abcdef"
    CLIENTS = (
        "clients:\n"
        "  trusted_proxies: [127.0.0.1]\n"
        "  api_keys: {header: x-api-key, file: keys.json}\n"
        "  jwt: {secret_file: secret, algorithms: [HS256]}\n"
        f"  geo: {{country_file: '{GEO}/country.mmdb'}}\n"
        "access_log: {file: access.log, format: json, max_rejected_per_second: 1000}"
    )

    def serve_all(self, rules, requests):
        self.file("keys.json", key_file(acme="key-of-acme", zoo="key-of-zoo"))
        self.file("secret", self.SECRET.decode())
        front = self.gateway(self.upstream(), rules=rules, more=self.CLIENTS, workers=1)
        answers = []
        with front.connect() as client:
            for path, *headers in requests:
                answers.append(client.get(path, *headers).status)
        self.logged(len(requests))
        self.assertEqual(front.stop(), 0)
        return front.file, answers

    def assertReplaysAlike(self, rules, requests):
        file, answers = self.serve_all(rules, requests)
        self.assertEqual(set(answers), {200, 429}, "a test of nothing")
        log = os.path.join(self.folder, "access.log")
        done = self.ok("replay", log, "--rules", file, "--json")
        allowed = [200 if line["allowed"] else 429 for line in done.json_lines()]
        self.assertEqual(allowed, answers)
        with open(log, encoding="utf-8") as stream:
            live = [json.loads(line) for line in stream]
        told = [(line["reason"], line["rule"]) for line in done.json_lines()]
        self.assertEqual(told, [(line["reason"], line.get("rule")) for line in live])
        os.remove(log)

    def test_rules_by_header(self):
        requests = [("/", f"X-Client: {who}") for who in "abacabaab"] + [("/",)] * 4
        for rules in (
            "[{name: each, per: header.x-client, limit: 2/1h}]",
            "[{name: some, match: {header: {x-client: a}}, limit: 2/1h}]",
            "[{name: any, match: {header: {x-client: {present: true}}}, limit: 2/1h}]",
        ):
            with self.subTest(rules):
                self.assertReplaysAlike(rules, requests)

    def test_rules_by_cookie(self):
        plans = [("/", f"Cookie: theme=dark; plan={plan}") for plan in ("free", "paid") * 4]
        for match in ("plan: free", "plan: {prefix: fr}", "plan: {present: true}"):
            with self.subTest(match):
                rules = f"[{{name: some, match: {{cookie: {{{match}}}}}, limit: 2/1h}}]"
                self.assertReplaysAlike(rules, plans + [("/",)] * 3)

    def test_rules_by_query(self):
        requests = [(f"/s?page={i}&q=%{ord(who):x}",) for i, who in enumerate("abaabbab")]
        self.assertReplaysAlike("[{name: each, per: query.q, limit: 2/1h}]", requests)

    def test_rules_by_cost_and_amount_of_a_header(self):
        requests = [("/", f"X-Cost: {cost}", "X-Forwarded-For: 192.0.2.1") for cost in (3, 2, 9, 1)]
        rules = "[{name: dear, per: ip, limit: 5/1h, cost: {header: x-cost, max: 5}}]"
        self.assertReplaysAlike(rules, requests)
        requests = [("/", "X-Max: 3", "X-Forwarded-For: 192.0.2.1")] * 5
        rules = "[{name: given, per: ip, limit: {rate: 1/1h, from: {header: x-max, max: 9}}}]"
        self.assertReplaysAlike(rules, requests)

    def test_rules_by_user_and_key(self):
        by_key = [("/", f"X-Api-Key: key-of-{who}") for who in ("acme", "zoo", "acme", "acme")]
        bearer = [("/", f"Authorization: Bearer {token(self.SECRET, sub='ann')}")] * 3
        for per in ("user", "api_key"):
            with self.subTest(per):
                rules = f"[{{name: each, per: {per}, limit: 2/1h}}]"
                self.assertReplaysAlike(rules, by_key + bearer + [("/",)] * 3)

    def test_rules_by_country(self):
        addresses = ("192.0.2.1", "198.51.100.1") * 3
        requests = [("/", f"X-Forwarded-For: {ip}") for ip in addresses]
        rules = "[{name: each, per: country, limit: 2/1h}]"
        self.assertReplaysAlike(rules, requests)

    def test_only_what_rules_ask_for_is_logged(self):
        rules = (
            "[{name: a, per: header.x-a, match: {header: {x-there: {present: true}}}, "
            "limit: 9/1s}, "
            "{name: b, match: {cookie: {plan: free, session: {present: true}}}, limit: 9/1s}]"
        )
        request = ("/", "X-A: one", "X-There: hush", "X-B: two", "Cookie: plan=free; session=hush")
        self.serve_all(rules, [request])
        line = json.loads(self.log())
        self.assertEqual(line["headers"], {"x-a": "one", "x-there": "***"})
        self.assertEqual(line["cookies"], {"plan": "free", "session": "***"})
        self.assertNotIn("hush", self.log())

    # What was hidden cannot be told apart any more, and then nobody shall believe that it was.
    def test_hidden_values_are_told_of(self):
        rules = "[{name: each, per: header.x-api-key, limit: 2/1h}]"
        file, _ = self.serve_all(rules, [("/", "X-Api-Key: key-of-acme")])
        done = self.ok("replay", os.path.join(self.folder, "access.log"), "--rules", file)
        self.assertIn("header.x-api-key is hidden, and each needs its value", done.out)


class Gaps(Logs):
    """Rules that need what a log does not have."""

    LINE = '{"time":"2026-01-01T00:00:0%dZ","ip":"192.0.2.1","target":"/","status":200%s}\n'

    def replay(self, rules, more="", code=0, *arguments):
        log = self.file("log", "".join(self.LINE % (i, more) for i in range(3)))
        done = sluice("replay", log, "--rules", self.file("r.yaml", rules), *arguments)
        self.assertEqual(done.code, code, done.err)
        return done

    def test_what_no_line_has_is_named(self):
        for rule, field in (
            ("domain: edge", "domain"),
            ("match: {descriptor: {kind: a}}", "descriptor.kind"),
            ("per: [claim.plan]", "claims.plan"),
            ("count: {grpc_status: [8]}", "grpc_status"),
            ("count: {header: {x-cost: '1'}}", "response_headers.x-cost"),
            ("per: [header.x-a]", "header.x-a"),
            ("match: {cookie: {plan: free}}", "cookies.plan"),
            ("match: {host: a.example}", "host"),
            ("per: [user]", "user"),
        ):
            with self.subTest(field):
                done = self.replay(f"rules: [{{name: r, limit: 1/1h, {rule}}}]\n")
                self.assertIn(f"no line has {field}, which r asks for", done.out)
                self.assertRegex(done.out, r"lacks what these rules of \S*r.yaml need; they were")
        limit = "rules: [{name: r, limit: {max_concurrent: 1}}]\n"
        self.assertIn("no line has duration_ns, which r asks for", self.replay(limit).out)
        done = self.replay("rules: [{name: r, limit: 1/1h, per: [user]}]\n", "", 0, "--json")
        self.assertIn("no line has user, which r asks for", done.err)
        done = self.replay("rules: [{name: r, limit: 1/1h}]\n")
        self.assertNotIn("The log lacks", done.out)

    def test_what_a_line_has_is_used(self):
        for rule, more in (
            ("domain: edge", '"domain":"edge"'),
            ("match: {descriptor: {kind: a}}", '"descriptor":{"kind":"a"}'),
            ("on_missing: skip, per: [claim.plan.name]", '"claims":{"plan":{"name":"free"}}'),
            ("count: {grpc_status: [8]}", '"grpc_status":8'),
            ("count: {header: {x-cost: '1'}}", '"response_headers":{"x-cost":"1"}'),
            ("match: {cookie: {plan: free}}", '"cookies":{"plan":"free"}'),
        ):
            with self.subTest(rule):
                rules = f"rules: [{{name: r, limit: 1/1h, {rule}}}]\n"
                done = self.replay(rules, "," + more)
                self.assertIn("3 requests, 1 allowed, 2 rejected", done.out)
                self.assertNotIn("no line has", done.out)
        for rule in ("count: {grpc_status: [8]}", "count: {header: {x-cost: '2'}}"):
            rules = f"rules: [{{name: r, limit: 1/1h, {rule}}}]\n"
            more = ',"grpc_status":0,"response_headers":{"x-cost":"1"}'
            self.assertIn("3 requests, 3 allowed", self.replay(rules, more).out)


if __name__ == "__main__":
    unittest.main()
