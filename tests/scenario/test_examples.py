"""The configurations under examples/rules, each with a recorded trace and what must come of it."""

import gzip
import json
import os
import unittest
from collections import Counter, defaultdict, deque
from datetime import datetime

from support import ScenarioTest, sluice

RULES = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "rules")


def configuration(name):
    return os.path.join(RULES, f"{name}.yaml")


def trace(name):
    return os.path.join(RULES, "traces", f"{name}.jsonl")


def requests(name):
    with open(trace(name), encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def seconds(request):
    return datetime.fromisoformat(request["time"].replace("Z", "+00:00")).timestamp()


class SlidingLog:
    """At most so many in any window, by key: the obvious way."""

    def __init__(self, amount, window):
        self.amount, self.window, self.logs = amount, window, defaultdict(deque)

    def fits(self, key, now):
        log = self.logs[key]
        while log and log[0] <= now - self.window:
            log.popleft()
        return len(log) < self.amount

    def add(self, key, now):
        self.logs[key].append(now)


class Examples(ScenarioTest):
    def verdicts(self, name):
        done = self.ok("replay", trace(name), "--rules", configuration(name), "--json")
        return [(line["allowed"], line["rule"]) for line in done.json_lines()]

    def test_every_example_is_good(self):
        for file in sorted(os.listdir(RULES)):
            if file.endswith(".yaml"):
                self.ok("check", os.path.join(RULES, file))

    def test_1200_an_hour_for_each_client(self):
        log = SlidingLog(1200, 3600)
        expected = []
        for request in requests("per-client"):
            fits = log.fits(request["user"], seconds(request))
            if fits:
                log.add(request["user"], seconds(request))
            expected.append(fits)
        self.assertEqual([allowed for allowed, _ in self.verdicts("per-client")], expected)
        self.assertEqual(expected.count(False), 100)

    def test_paid_and_free_clients(self):
        refused = Counter()
        for request, (allowed, _) in zip(requests("plans"), self.verdicts("plans")):
            refused[request.get("tier", "none")] += 0 if allowed else 1
        # Ten at once, and two more have trickled in by the fifteenth second.
        self.assertEqual(refused, {"free": 3, "paid": 0, "none": 3})

    def test_three_failed_transactions_an_hour(self):
        passed = Counter()
        for request, (allowed, _) in zip(
            requests("failed-transactions"), self.verdicts("failed-transactions")
        ):
            passed[request["user"]] += 1 if allowed else 0
        # Six guesses at once: three pass; and one an hour later. Whoever succeeds is never refused.
        self.assertEqual(passed, {"mallory": 4, "alice": 6})

    def test_a_url_shortener(self):
        hourly, on_shard, delete = SlidingLog(100, 3600), SlidingLog(3, 60), SlidingLog(10, 60)
        expected = []
        for request in requests("shortener"):
            now, user = seconds(request), request["user"]
            logs = [(delete, user)]
            if request["target"] == "/createURL":
                logs = [(hourly, user), (on_shard, (user, request["headers"]["x-shard"]))]
            fits = all(log.fits(key, now) for log, key in logs)
            for log, key in logs if fits else []:
                log.add(key, now)
            expected.append(fits)
        verdicts = self.verdicts("shortener")
        self.assertEqual([allowed for allowed, _ in verdicts], expected)
        # Each of the three rules has its part, and none of them would do without the others.
        refused = Counter(rule for allowed, rule in verdicts if not allowed)
        self.assertEqual(refused, {"create-per-user": 20, "create-per-shard": 5, "delete": 2})

    # Three on one shard, and three on another: the shards count for themselves.
    def test_a_user_has_three_a_minute_on_each_shard(self):
        passed = Counter()
        for request, (allowed, _) in zip(requests("shortener"), self.verdicts("shortener")):
            if request["target"] == "/createURL" and request["time"] < "2026-01-01T00:01":
                passed[request["user"], request["headers"]["x-shard"]] += 1 if allowed else 0
        self.assertEqual(passed, {("ada", "s1"): 3, ("ada", "s2"): 3, ("bob", "s1"): 3})

    def test_what_no_rule_matches_is_rejected(self):
        verdicts = self.verdicts("closed")
        self.assertEqual([allowed for allowed, _ in verdicts], [True, False] * 3)
        done = sluice("explain", "/admin", "-c", configuration("closed"))
        self.assertIn("rejected with 503: no_rule", done.out)


class Replay(ScenarioTest):
    LOG = (
        '192.0.2.1 - - [01/Jan/2026:00:00:00 +0000] "GET /search HTTP/1.1" 200 5 "-" "curl/8"\n'
        '192.0.2.1 - bob [01/Jan/2026:01:00:00 +0100] "GET /s\\"x HTTP/1.1" 200 5\n'
    )

    def test_a_combined_log(self):
        log = self.file("access.log", self.LOG * 4)
        done = self.ok("replay", log, "--rules", configuration("closed"))
        self.assertIn("8 requests, 4 allowed, 4 rejected", done.out)
        self.assertRegex(done.out, r"search +4 +0 +0 +0")

    def test_what_another_configuration_would_change(self):
        log = self.file("access.log", self.LOG * 4)
        stricter = self.file(
            "stricter.yaml", "rules: [{name: search, match: {path: /search}, limit: 1/1h}]\n"
        )
        done = sluice("replay", log, "--rules", configuration("closed"), "--diff", stricter)
        self.assertEqual(done.code, 1)
        self.assertIn("7 requests change their answer", done.out)
        self.assertIn("GET /search: allowed -> 429 limited by search", done.out)
        self.assertIn('GET /s"x: 503 no_rule by no rule -> allowed', done.out)
        same = self.ok("replay", log, "--rules", stricter, "--diff", stricter)
        self.assertIn("0 requests change their answer", same.out)
        one = self.diff("", ", action: drop", lines=2).out
        self.assertIn("1 request changes its answer", one)

    def diff(self, before, after, *arguments, lines=4, code=1):
        line = '{"time":"2026-01-01T00:00:%02dZ","ip":"192.0.2.1","method":"GET","target":"/x"}\n'
        done = sluice(
            *("replay", self.file("log", "".join(line % i for i in range(lines)))),
            *("--rules", self.file("a.yaml", f"rules: [{{name: a, limit: 1/1h{before}}}]\n")),
            *("--diff", self.file("b.yaml", f"rules: [{{name: a, limit: 1/1h{after}}}]\n")),
            *arguments,
        )
        self.assertEqual((done.code, done.err), (code, ""), done.out)
        return done

    # Not only whether a request passes, but how it is refused, why and by whom.
    def test_every_other_answer_is_a_change(self):
        for after, told in (
            (", action: {reject: {status: 503}}", "429 limited by a -> 503 limited by a"),
            (", action: drop", "429 limited by a -> dropped limited by a"),
            (", block: {duration: 1h}", "429 limited by a -> 429 blocked by a"),
            ("}, {name: b, limit: 1/2h", "429 limited by a -> 429 limited by b"),
            (", action: shadow", "429 limited by a -> allowed"),
        ):
            with self.subTest(after):
                self.assertIn("GET /x: " + told, self.diff("", after).out)
        # Of those that pass, it does not matter which rule was the tightest.
        self.diff("", "}, {name: b, limit: 1/1s", code=0)

    def test_changes_in_json(self):
        *changes, last = self.diff("", ", action: {reject: {status: 503}}", "--json").json_lines()
        self.assertEqual([one["time"][-3:] for one in changes], ["01Z", "02Z", "03Z"])
        before, after = changes[0]["before"], changes[0]["after"]
        self.assertEqual((before["action"], before["status"]), ("reject", 429))
        self.assertEqual((after["action"], after["status"]), ("reject", 503))
        self.assertEqual((after["reason"], after["rule"], after["remaining"]), ("limited", "a", 0))
        self.assertEqual((changes[0]["target"], changes[0]["ip"]), ("/x", "192.0.2.1"))
        summary = last["summary"]
        self.assertEqual((summary["requests"], summary["changed"]), (4, 3))
        self.assertEqual(summary["before"], {"allowed": 1, "rejected": 3})
        self.assertEqual(summary["undecided_after"], [])
        [last] = self.diff("", "", "--json", code=0).json_lines()
        self.assertEqual(last["summary"]["changed"], 0)
        last = self.diff("", ", per: [user]", "--json", code=0).json_lines()[-1]
        gap = {"rule": "a", "field": "user", "hidden": False}
        self.assertEqual(last["summary"]["undecided_after"], [gap])

    def test_as_many_changes_as_wanted(self):
        for arguments, count in (((), 20), (("--changes", "3"), 3), (("--changes", "0"), 49)):
            done = self.diff("", ", action: drop", *arguments, lines=50)
            self.assertIn("49 requests change their answer", done.out)
            self.assertEqual(done.out.count("GET /x: "), count)
            self.assertEqual(f"and {49 - count} more; --changes 0 lists" in done.out, count < 49)
        self.refuses(2, r"--changes requires --diff", "replay", "--rules", "x", "--changes", "3")
        for arguments, count in (((), 49), (("--changes", "3"), 3), (("--changes", "0"), 49)):
            *changes, last = self.diff(
                "", ", action: drop", "--json", *arguments, lines=50
            ).json_lines()
            self.assertEqual((len(changes), last["summary"]["changed"]), (count, 49))

    # They would be without effect, and nobody would notice.
    def test_options_of_a_limit_do_not_go_with_rules(self):
        rules = configuration("closed")
        for option, *value in (
            ("--limit", "1/1s"),
            ("--algorithm", "gcra"),
            ("--burst", "3"),
            ("--timezone", "UTC"),
            ("--count-rejected",),
            ("--compare",),
            ("--rows", "3"),
            ("--svg", os.path.join(self.folder, "picture.svg")),
        ):
            with self.subTest(option):
                wrong = f"{option} is for one limit, .*; leave it out, or --rules"
                self.refuses(2, wrong, "replay", "--rules", rules, option, *value)
        both = ("-l", "1/1s", "--compare")
        wrong = "--limit and --compare are for one limit, .*; leave them out, or --rules"
        self.refuses(2, wrong, "replay", "--rules", rules, *both)

    # A rule with several limits that are full has one objection to a request.
    def test_a_rule_counts_a_request_once(self):
        rules = self.file("r.yaml", "rules: [{name: two, limit: [1/1h, 1/2h]}]\n")
        log = self.file("access.log", self.LOG * 5)
        done = self.ok("replay", log, "--rules", rules)
        self.assertRegex(done.out, r"two +10 +9 +9 +0")

    # The log of a gateway that runs: its last line is being written.
    def test_a_last_line_that_is_cut_off_is_left_out(self):
        log = self.file("access.log", self.LOG + self.LOG[:40])
        done = sluice("replay", log, "--rules", configuration("closed"))
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("2 requests, 1 allowed, 1 rejected", done.out)
        self.assertIn("access.log:3: the last line is not whole, and is left out", done.err)
        whole = self.file("access.log", self.LOG.rstrip("\n"))
        done = self.ok("replay", whole, "--rules", configuration("closed"))
        self.assertIn("2 requests, ", done.out)

    def test_lines_out_of_order_are_noted(self):
        first, _ = self.LOG.splitlines(keepends=True)
        log = self.file("access.log", first.replace("00:00:00", "00:00:02") + first)
        for more in ((), ("--json",), ("--diff", configuration("closed"))):
            done = sluice("replay", log, "--rules", configuration("closed"), *more)
            self.assertEqual(done.code, 0, done.err)
            self.assertIn(
                "note: 1 request lies before an earlier line (by up to 2s); decided at", done.err
            )

    def test_lines_that_cannot_be_read(self):
        rules = configuration("closed")
        for line, message in (
            ("junk", r"access.log:1: the line cannot be read; a line looks like"),
            ('{"ip": "1.2.3.4"}', r"access.log:1: there is no 'time'"),
            ('{"time": "2026-01-01T00:00:00Z", "ip": "x"}', r"'ip' is 'x', which is no address"),
            (self.LOG.split("\n", maxsplit=1)[0].replace("Jan", "Jam"), r"the time '01/Jam/2026"),
        ):
            log = self.file("access.log", line + "\n")
            self.refuses(3, message, "replay", log, "--rules", rules)
        self.refuses(2, r"--strict requires --rules", "replay", "--limit", "1/1s", "--strict")
        alone = self.file("access.log", "junk")
        self.refuses(3, r"access.log:1: the line cannot be read", "replay", alone, "--rules", rules)
        self.refuses(2, r"--diff requires --rules", "replay", "--limit", "1/1s", "--diff", rules)

    # At the front, where the form of the log is not known yet, and in the middle of it.
    def test_lines_that_cannot_be_read_are_left_out_and_counted(self):
        rules = ("--rules", configuration("closed"))
        json_line = '{"time":"2026-01-01T00:00:09Z","ip":"192.0.2.1","target":"/"}\n'
        for log, requests in (
            (self.LOG + "junk\n\x00{\n" + self.LOG, 4),
            ("junk\n" + json_line + "junk\n", 1),
        ):
            file = self.file("access.log", log)
            done = sluice("replay", file, *rules)
            self.assertEqual(done.code, 0, done.err)
            self.assertIn(f"{requests} request", done.out)
            self.assertIn("note: 2 lines could not be read and are left out", done.err)
            number = log.split("\n").index("junk") + 1
            self.assertIn(f"the first: {file}:{number}: the line cannot be read", done.err)
            self.refuses(3, f"access.log:{number}: the line", "replay", file, *rules, "--strict")
            last = sluice("replay", file, *rules, "--diff", rules[1], "--json").json_lines()[-1]
            self.assertEqual(last["summary"]["skipped"], 2)

    def test_a_log_compressed_by_gzip(self):
        rules = ("--rules", configuration("closed"))
        packed = gzip.compress(self.LOG.encode()) + gzip.compress(self.LOG.encode())
        file = os.path.join(self.folder, "access.log.1.gz")
        for content, code in ((packed, 0), (packed[:-3], 3)):
            with open(file, "wb") as stream:
                stream.write(content)
            done = sluice("replay", file, *rules)
            self.assertEqual(done.code, code, done.err)
            where = done.out if code == 0 else done.err
            self.assertIn("4 requests" if code == 0 else "access.log.1.gz is cut off", where)


if __name__ == "__main__":
    unittest.main()
