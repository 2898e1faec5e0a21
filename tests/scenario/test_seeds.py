"""The examples that the project began with, through the real binary."""

import unittest

from support import ScenarioTest

SECOND = 1_000_000_000


class SeedExercise004(ScenarioTest):
    trace = "10 3\n" + "".join(
        f"2022-01-20T{clock}Z\n"
        for clock in (
            "00:13:05 00:27:31 00:45:27 01:00:49 01:15:45 "
            "01:20:01 01:50:09 01:52:15 01:54:00 02:00:00"
        ).split()
    )
    expected = "true true true false true false true true false false".split()

    def test_three_an_hour(self):
        self.assertEqual(self.verdicts(stdin=self.trace), self.expected)
        self.assertEqual(self.verdicts(self.file("trace.txt", self.trace)), self.expected)

    def test_windows_line_ends_and_a_missing_last_one(self):
        self.assertEqual(
            self.verdicts(stdin=self.trace.replace("\n", "\r\n").rstrip()), self.expected
        )

    def test_its_second_solution_is_a_leaky_bucket_with_a_burst(self):
        # At most three at once, one more every twenty minutes.
        verdicts = self.verdicts("-a", "leaky_bucket", "--burst", 3, stdin=self.trace)
        self.assertEqual(verdicts, "true true true true true true true false true false".split())

    def test_its_first_solution_is_slices_of_a_second(self):
        verdicts = self.verdicts("-a", "sliding_buckets", "--bucket-width", "1s", stdin=self.trace)
        self.assertEqual(verdicts, self.expected)


class SeedList001(ScenarioTest):
    def test_three_a_minute(self):
        times = ["03:00:00", "03:01:05", "03:01:20", "03:01:45", "03:01:50", "03:02:10"]
        trace = "".join(f"2021-03-01T{clock}-05:00,X\n" for clock in times)
        verdicts = self.verdicts("-l", "3/1m", "-a", "sliding_log", stdin=trace)
        self.assertEqual(verdicts, "true true true true false true".split())


class SeedBucket003(ScenarioTest):
    def test_ten_tokens_of_which_six_and_five_are_taken(self):
        ms = 1_000_000
        trace = (
            f"{300 * ms},a,6\n{500 * ms},a,5\n{1500 * ms},a,0\n{1500 * ms},a,10\n{1500 * ms},a,1\n"
        )
        answers = self.ok("replay", "-l", "10/1s", "--json", stdin=trace).json_lines()
        self.assertEqual([a["allowed"] for a in answers], [True, True, True, True, False])
        self.assertEqual([a["remaining"] for a in answers], [4, 1, 10, 0, 0])


class SeedWeighting000(ScenarioTest):
    # A quarter into the window, three quarters of the previous one count.
    def test_a_quarter_in_three_quarters_of_the_previous_window_count(self):
        minute = 60 * SECOND
        full = "".join(f"{minute - 1},a\n" for _ in range(100))
        quarter = "".join(f"{minute + minute // 4},a\n" for _ in range(30))
        answers = self.ok(
            "replay", "-l", "100/1m", "-a", "sliding_counter", "--json", stdin=full + quarter
        )
        allowed = [a["allowed"] for a in answers.json_lines()]
        self.assertEqual(allowed, [True] * 100 + [True] * 25 + [False] * 5)


class SeedHarness000(ScenarioTest):
    # Achieved = min(offered, limit): the first batches get what they offer, the last get the limit,
    # plus the burst they found.
    def test_achieved_is_the_lower_of_offered_and_limit(self):
        batches = [
            (10, 1),
            (20, 2),
            (50, 5),
            (100, 10),
            (200, 20),
            (250, 25),
            (500, 50),
            (1000, 100),
        ]
        for algorithm in (
            "token_bucket",
            "gcra",
            "leaky_bucket",
            "fixed_window",
            "sliding_log",
            "sliding_counter",
        ):
            with self.subTest(algorithm=algorithm):
                results = self.ok(
                    "load", "-l", "20/1s", "-a", algorithm, "--virtual", "--json"
                ).json_lines()
                self.assertEqual(
                    [(r["requests"], r["offered_per_second"]) for r in results], batches
                )
                for r in results:
                    seconds, achieved = r["seconds"], r["achieved_per_second"]
                    self.assertEqual(r["admitted"], r["requests"])
                    self.assertAlmostEqual(achieved, r["requests"] / seconds, places=3)
                    offered = r["offered_per_second"]
                    burst = 0 if algorithm == "leaky_bucket" else 20
                    self.assertLessEqual(r["requests"], min(offered, 20) * seconds + burst + 1)
                    # The pause of 10 ms before a retry can cost a little of each interval of 50 ms.
                    self.assertGreaterEqual(achieved, min(offered, 20) * 0.9)
                    if offered < 20:
                        self.assertAlmostEqual(achieved, offered, places=6)
                        self.assertEqual(r["wait_ns"]["max"], 0)

    def test_the_table_names_requests_seconds_and_rate(self):
        done = self.ok("load", "-l", "20/1s", "--virtual")
        self.assertRegex(done.out, r"requests +offered/s +seconds +achieved/s")
        self.assertRegex(done.out, r"\n +10 +1 +10\.00 +1\.00 ")
        self.assertRegex(done.out, r"\n +1000 +100 +50\.00 +20\.00 ")


if __name__ == "__main__":
    unittest.main()
