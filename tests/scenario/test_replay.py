"""What `sluice replay` reads, prints and refuses."""

import os
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

from support import BINARY, ScenarioTest, sluice

ALGORITHMS = [
    "token_bucket",
    "leaky_bucket",
    "gcra",
    "fixed_window",
    "sliding_log",
    "sliding_counter",
    "sliding_buckets",
    "concurrency",
]


class Input(ScenarioTest):
    def test_times_keys_costs_comments_and_blank_lines(self):
        trace = "\ufeff# a comment\n\n0\n0,alice\n0, alice ,2\n  0,alice,1\n"
        trace += "1970-01-01T01:00:00+01:00,alice\n"
        self.assertEqual(
            self.verdicts("-l", "3/1h", stdin=trace), "true true true false false".split()
        )

    def test_each_key_has_its_own_counter(self):
        trace = "0,a\n0,b\n0,a\n0,\n0\n"
        self.assertEqual(
            self.verdicts("-l", "1/1h", stdin=trace), "true true false true false".split()
        )

    def test_cost_zero_only_looks(self):
        answers = self.ok(
            "replay", "-l", "1/1h", "--json", stdin="0,a,0\n0,a,1\n0,a,0\n"
        ).json_lines()
        self.assertEqual([a["allowed"] for a in answers], [True, True, True])
        self.assertEqual([a["remaining"] for a in answers], [1, 0, 0])

    def test_times_in_seconds_or_milliseconds_are_noted(self):
        for time, unit in (("1704067200", "seconds"), ("1704067200123", "milliseconds")):
            done = sluice("replay", "-l", "1/1s", stdin=time + "\n")
            self.assertEqual((done.code, done.out), (0, "true\n"))
            self.assertRegex(done.err, rf"whole numbers are nanoseconds.*if these are {unit}")

    def test_an_empty_trace_is_no_mistake(self):
        self.assertEqual(self.ok("replay", "-l", "1/1s", stdin="").out, "")

    def test_a_long_gap_and_a_high_rate(self):
        year = 366 * 86400 * 10**9
        trace = "".join(f"{n * year},a,999999999\n" for n in range(1, 270))
        self.assertEqual(set(self.verdicts("-l", "999999999/1s", stdin=trace)), {"true"})

    def test_time_that_goes_back_is_noted_and_grants_nothing(self):
        done = sluice("replay", "-l", "1/1s", stdin="5000000000\n4000000000\n5000000000\n")
        self.assertEqual((done.code, done.out), (0, "true\nfalse\nfalse\n"))
        self.assertRegex(done.err, r"note: 1 request lies before an earlier line \(by up to 1s\)")

    def test_a_clock_that_was_set_back_is_named(self):
        done = sluice("replay", "-l", "1/1m", stdin="200000000000\n139000000000\n199000000000\n")
        self.assertEqual((done.code, done.out), (0, "true\nfalse\ntrue\n"))
        self.assertRegex(
            done.err, r"by up to 1m1s\); .*bounds hold before and after it, not across"
        )

    def test_a_request_in_flight_for_months_does_not_take_months(self):
        trace = "0,a,1,300d\n25919999999999999,a,1,1\n25920000000000000,a,1,1\n"
        verdicts = self.verdicts("-l", 1, "-a", "concurrency", "--slot-ttl", "1ms", stdin=trace)
        self.assertEqual(verdicts, ["true", "false", "true"])

    def test_the_exercise_takes_another_algorithm_or_limit_when_told(self):
        trace = "3 1\n2022-01-20T00:59:59Z\n2022-01-20T01:00:00Z\n2022-01-20T01:00:01Z\n"
        self.assertEqual(
            self.verdicts("-a", "fixed_window", stdin=trace), "true true false".split()
        )
        self.assertEqual(self.verdicts("-l", "2/1h", stdin=trace), "true true false".split())


class Json(ScenarioTest):
    def test_the_fields_and_when_retry_is_null(self):
        trace = "0,a,3\n0,a,1\n0,a,4\n"
        answers = self.ok("replay", "-l", "3/3s", "--json", stdin=trace).json_lines()
        fields = ["allowed", "limit", "remaining", "reset_after_ns", "retry_after_ns", "delay_ns"]
        for answer in answers:
            self.assertEqual(list(answer), fields)
        allowed, refused, never = answers
        self.assertIsNone(allowed["retry_after_ns"])
        self.assertEqual(refused["retry_after_ns"], 10**9)
        self.assertEqual((never["allowed"], never["retry_after_ns"]), (False, None))

    def test_a_queue_tells_the_delay(self):
        trace = "0\n0\n0\n0\n"
        answers = self.ok(
            "replay", "-l", "1/1s", "-a", "leaky_bucket", "--max-delay", "2s", "--json", stdin=trace
        )
        got = [(a["allowed"], a["delay_ns"]) for a in answers.json_lines()]
        self.assertEqual(got, [(True, 0), (True, 10**9), (True, 2 * 10**9), (False, 0)])

    def test_count_rejected_keeps_a_hammering_client_out(self):
        trace = "".join(f"{n * 500_000_000}\n" for n in range(10))
        polite = self.verdicts("-l", "1/1s", "-a", "sliding_log", stdin=trace)
        options = ("-l", "1/1s", "-a", "sliding_log", "--count-rejected")
        hammering = self.verdicts(*options, stdin=trace)
        self.assertEqual(polite, ["true", "false"] * 5)
        self.assertEqual(hammering, ["true"] + ["false"] * 9)

    def test_calendar_months_in_a_time_zone(self):
        trace = "2024-03-31T21:59:59Z\n2024-03-31T21:59:59.999999999Z\n2024-03-31T22:00:00Z\n"
        verdicts = self.verdicts("-l", "1/month", "--timezone", "Europe/Berlin", stdin=trace)
        self.assertEqual(verdicts, "true false true".split())
        self.assertEqual(self.verdicts("-l", "1/month", stdin=trace), "true false false".split())


class Comparison(ScenarioTest):
    trace = "".join(f"{n * 100_000_000},k,1,50ms\n" for n in range(60))

    def test_the_table_has_a_column_and_a_row_for_every_algorithm(self):
        out = self.ok("replay", "-l", "5/1s", "--compare", stdin=self.trace).out
        for name in ALGORITHMS + ["token_bucket interval", "fixed_window first_request"]:
            self.assertRegex(out, rf"(?m)^ *\d+  {name}  ")
        self.assertRegex(out, r"(?m)^time +key +cost +1 +2 +3 +4 +5 +6 +7 +8 +9 +10$")
        self.assertIn("... and 20 more requests (--rows 0 shows all)", out)
        everything = self.ok("replay", "-l", "5/1s", "--compare", "--rows", 0, stdin=self.trace).out
        self.assertEqual(everything.count("1970-01-01T"), 60)

    def test_columns_agree_with_single_runs_and_no_one_breaks_its_promise(self):
        compared = self.ok(
            "replay", "-l", "5/1s", "--compare", "--json", stdin=self.trace
        ).json_lines()
        decisions = [row["allowed"] for row in compared if "allowed" in row]
        summaries = [row for row in compared if "algorithm" in row]
        self.assertEqual((len(decisions), len(summaries)), (60, 10))
        for algorithm in ALGORITHMS:
            limit = 5 if algorithm == "concurrency" else "5/1s"
            alone = self.verdicts("-l", limit, "-a", algorithm, stdin=self.trace)
            self.assertEqual(["true" if d[algorithm] else "false" for d in decisions], alone)
        for summary in summaries:
            self.assertEqual(summary["admitted"] + summary["rejected"], 60)
            if summary["algorithm"] != "concurrency":
                self.assertLessEqual(summary["most_in_one_period"], summary["never_more_than"])

    # Days of a zone with two hours of daylight saving have 22 hours; the bound is for those.
    def test_calendar_bounds_are_those_of_the_shortest_window(self):
        trace = "2024-03-30T23:59:59.9Z\n2024-03-31T00:00:00Z\n2024-03-31T22:00:00Z\n"
        options = ("-l", "1/day", "--timezone", "Antarctica/Troll", "--compare", "--json")
        lane = [
            r for r in self.ok("replay", *options, stdin=trace).json_lines() if "algorithm" in r
        ]
        self.assertEqual((lane[0]["admitted"], lane[0]["most_in_one_period"]), (3, 2))

    def test_what_cannot_be_compared_says_why(self):
        out = self.ok("replay", "-l", "5000/1s", "--compare", stdin="0\n").out
        self.assertRegex(out, r"left out: sliding_log: .*at most 4096")
        self.assertRegex(out, r"left out: concurrency: no request of the trace carries a duration")
        calendar = self.ok("replay", "-l", "5/month", "--compare", stdin="0\n").out
        self.assertIn("left out: all others: only fixed_window counts per calendar month", calendar)

    def test_the_picture_is_well_formed_and_shows_every_lane_and_request(self):
        path = os.path.join(self.folder, "picture.svg")
        trace = "".join(f'{n},<k&">\n' for n in range(3)) + '5000000000,<k&">\n'
        self.ok("replay", "-l", "2/1s", "--compare", "--svg", path, stdin=trace)
        root = ElementTree.parse(path).getroot()
        self.assertTrue(root.tag.endswith("svg"))
        texts = [element.text for element in root.iter() if element.tag.endswith("text")]
        for name in ("token_bucket", "fixed_window first_request", "sliding_buckets"):
            self.assertIn(name, texts)
        self.assertIn("3 of 4 admitted", texts)
        classes = [element.get("class") for element in root.iter()]
        self.assertIn("admitted", classes)
        self.assertIn("rejected", classes)

    def test_one_algorithm_can_be_drawn_too_and_still_prints_its_decisions(self):
        path = os.path.join(self.folder, "picture.svg")
        self.assertEqual(
            self.verdicts("-l", "1/1s", "--svg", path, stdin="0\n0\n"), ["true", "false"]
        )
        with open(path, encoding="utf-8") as picture:
            self.assertIn("token_bucket", picture.read())


class BadInput(ScenarioTest):
    def test_malformed_lines_name_file_line_and_column_and_what_was_expected(self):
        cases = [
            ("0,a\nyesterday,a\n", r":2:1: 'yesterday' is not a time; write an RFC 3339 time"),
            ("0,a\n  2022-13-01T00:00:00Z\n", r":2:3: .* names a day that does not exist"),
            ("2022-02-29T00:00:00Z\n", r":1:1: .* names a day that does not exist"),
            ("2022-01-20T00:13:05\n", r":1:1: .* lacks its offset from UTC"),
            ("2022-01-20T00:13:05.0000000001Z\n", r":1:1: .* finer than a nanosecond"),
            ("1969-12-31T23:59:59Z\n", r":1:1: .* outside 1970 to 2249"),
            ("-5\n", r":1:1: the time '-5' lies before 1970"),
            ("8835955200000000000\n", r":1:1: .* beyond the year 2249"),
            ("99999999999999999999\n", r":1:1: .* beyond the year 2249"),
            ("2250-01-01T00:00:00Z\n", r":1:1: .* outside 1970 to 2249"),
            ("0,a,one\n", r":1:5: the cost 'one' is not a whole number"),
            ("0,a,-1\n", r":1:5: the cost '-1' is not a whole number"),
            ("0,a,4294967296\n", r":1:5: the cost '4294967296' is too large"),
            ("0,a,1,3x\n", r":1:7: unknown unit 'x' in '3x'"),
            ("0,a,1,3s,more\n", r":1:10: there is more after the duration"),
            ('{"time":0}\n', r":1:1: this looks like JSON"),
            ("time,key\n0,a\n", r":1:1: 'time' is not a time.*header line, begin it with #"),
            ('"2022-01-20T00:13:05Z"\n', r":1:1: .* quotes are not understood"),
            ("2022-01-20T00:13:05Z;a\n", r":1:1: .* separate fields by commas"),
            ("0\n\x00\n", r":2:1: '\\x00' is not a time"),
        ]
        for trace, pattern in cases:
            with self.subTest(trace=trace):
                path = self.file("trace.csv", trace)
                self.refuses(3, r"^sluice replay: " + path + pattern, "replay", path, "-l", "1/1s")
                self.refuses(
                    3,
                    r"^sluice replay: standard input" + pattern,
                    "replay",
                    "-l",
                    "1/1s",
                    stdin=trace,
                )

    def test_decisions_before_the_malformed_line_are_not_lost(self):
        done = self.refuses(3, r":3:1: ", "replay", "-l", "1/1s", stdin="0\n0\nnonsense\n0\n")
        self.assertEqual(done.out, "true\nfalse\n")

    def test_the_exercise_must_have_as_many_times_as_it_promises(self):
        self.refuses(3, r"promises 2 requests, but only 1 follows", "replay", stdin="2 3\n0\n")
        self.refuses(3, r":3:1: there is more than the 1 request", "replay", stdin="1 3\n0\n0\n")
        self.refuses(
            2, r"limit 0/1h: an amount of 0 would reject everything", "replay", stdin="1 0\n0\n"
        )

    def test_an_unknown_algorithm_lists_the_known_ones(self):
        done = self.refuses(
            2,
            r"unknown algorithm 'tocken_bucket'; did you mean token_bucket\?",
            "replay",
            "-l",
            "1/1s",
            "-a",
            "tocken_bucket",
            stdin="0\n",
        )
        for name in ALGORITHMS:
            self.assertIn(name, done.err)

    def test_limits_that_are_none(self):
        cases = [
            ("0/1s", "an amount of 0 would reject everything"),
            ("-1/1s", "the amount in '-1/1s' is negative"),
            ("5/0s", "the period 0s is too short; use at least 1ms"),
            ("5", "'5' lacks a period; write amount/period"),
            ("5/1x", "unknown unit 'x' in '1x'"),
            ("5/s", "the period in '5/s' lacks a number; write 5/1s"),
            ("5/min", "write 5/1m"),
            ("5 / 1s", "there is a blank in '5 / 1s'"),
            ("5/1.5s", "'1.5s' has a fraction; use a smaller unit"),
            ("/1s", "the amount in '/1s' is not a whole number"),
            ("1.5/1s", "the amount in '1.5/1s' is not a whole number"),
            ("99999999999999999999/1s", "too large; use at most 1000000000"),
            ("1000000001/1s", "the amount 1000000001 is too large"),
            ("5/99999999999999999999s", "is too long a time"),
            ("5/367d", "the period 367d is too long; use at most 366d"),
            ("1000001/1ms", "more than 1000000000 per second; use at most 1000000 per 1ms"),
            ("5/fortnight", "is not a length of time"),
        ]
        messages = set()
        for limit, pattern in cases:
            with self.subTest(limit=limit):
                done = self.refuses(2, r"limit", "replay", f"--limit={limit}", stdin="0\n")
                self.assertIn(pattern, done.err)
                self.assertEqual(done.out, "")
                messages.add(done.err)
        self.assertEqual(len(messages), len(cases))

    def test_options_that_do_not_fit(self):
        cases = [
            (
                ["-l", "1000000/1h", "-a", "sliding_log"],
                r"1000000 are too many; use at most 4096, or sliding_buckets",
            ),
            (
                ["-l", "5/1s", "-a", "sliding_log", "--burst", "3"],
                r"sliding_log has no use for 'burst'",
            ),
            (["-l", "5/1s", "--burst", "0"], r"a burst of 0 is out of range"),
            (["-l", "5/1s", "--burst", "x"], r"--burst: 'x' is not a whole number"),
            (
                ["-l", "1/365d", "--burst", "3"],
                r"more than two years to refill; use a burst of at most 2",
            ),
            (
                ["-l", "5/1s", "--refill", "daily"],
                r"--refill: unknown refill 'daily'; known are continuous and interval",
            ),
            (["-l", "5/1s", "--align", "epoch"], r"token_bucket has no use for 'align'"),
            (["-l", "5/month", "-a", "gcra"], r"gcra cannot count per calendar month"),
            (["-l", "5/month", "--timezone", "Mars/Base"], r"unknown time zone 'Mars/Base'"),
            (["-l", "5/1s", "--timezone", "UTC"], r"'timezone' only matters to calendar windows"),
            (
                ["-l", "5/1s", "-a", "sliding_buckets", "--bucket-width", "1us"],
                r"more than 4096 slices; use at least",
            ),
            (
                ["-l", "5/1s", "-a", "sliding_buckets", "--bucket-width", "2s"],
                r"does not fit into a period of 1s",
            ),
            (["-l", "5/1s", "--max-delay", "1s"], r"token_bucket has no use for 'max_delay'"),
            (
                ["-l", "5", "-a", "concurrency", "--slot-ttl", "0s"],
                r"slot_ttl of 0s is out of range",
            ),
            (["-l", "5/1s", "-a", "concurrency"], r"has no period; give the amount alone"),
            (["-l", "5", "-a", "concurrency", "--count-rejected"], r"no use for 'count_rejected'"),
            (["-l", "5/1s", "--compare", "-a", "gcra"], r"--compare runs all algorithms"),
            (["-l", "5/1s", "--compare", "--refill", "interval"], r"--compare runs all algorithms"),
            (["-l", "5/1s", "--rows", "3"], r"--rows is for the table of --compare"),
            (["-l", "5/1s", "--compare", "--rows", "-1"], r"--rows"),
            (["-l", "5/1s", "--compare", "--timezone", "UTC"], r"--timezone only matters to"),
            (["--nonsense"], r"unknown option '--nonsense'"),
            (["--limits", "5/1s"], r"unknown option '--limits'; did you mean --limit\?"),
            ([], r"there is no limit to apply; give one with --limit"),
        ]
        for options, pattern in cases:
            with self.subTest(options=options):
                self.refuses(2, pattern, "replay", *options, stdin="0\n")

    def test_unreadable_files(self):
        self.refuses(
            3,
            r"cannot read '.*/nowhere': No such file or directory; check the path",
            "replay",
            "-l",
            "1/1s",
            self.folder + "/nowhere",
        )
        trace = self.file("trace.csv", "0\n")
        self.refuses(2, r"overwrite the trace", "replay", trace, "-l", "1/1s", "--svg", trace)
        folder = r"cannot read '.*': Is a directory; a file is needed"
        self.refuses(3, folder, "replay", "-l", "1/1s", self.folder)
        self.refuses(
            3,
            r"longer than 65536 bytes; is this a text file\?",
            "replay",
            "-l",
            "1/1s",
            stdin="x" * 70000,
        )
        self.refuses(
            3,
            r"cannot write .*/no/such.svg: No such file or directory",
            "replay",
            "-l",
            "1/1s",
            "--svg",
            self.folder + "/no/such.svg",
            stdin="0\n",
        )

    def test_a_reader_that_goes_away_is_a_message_and_not_a_crash(self):
        path = self.file("long.csv", "0\n" * 200_000)
        process = subprocess.Popen(
            [BINARY, "replay", "-l", "1/1s", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.assertEqual(process.stdout.readline(), b"true\n")
        process.stdout.close()
        message = process.stderr.read().decode()
        process.stderr.close()
        self.assertEqual(process.wait(timeout=30), 3)
        self.assertRegex(message, r"closed the output early \(broken pipe\)")

    def test_a_full_disk_is_a_message(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [BINARY, "replay", "-l", "1/1s"],
                input=b"0\n",
                stdout=full,
                stderr=subprocess.PIPE,
                check=False,
            )
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr.decode(), r"cannot write the output: No space left on device")


if __name__ == "__main__":
    unittest.main()
