"""`sluice load`: traffic on a schedule, on virtual and on real time."""

import json
import os
import pty
import re
import signal
import subprocess
import time
import unittest

from gateway_support import has_signal, wait_until
from support import BINARY, ScenarioTest


class ConstantRate(ScenarioTest):
    def one(self, *arguments):
        return self.ok("load", *arguments, "--json").json_lines()[0]

    # Open loop: 250 per second against 100 per second for ten seconds.
    def test_admitted_is_burst_plus_rate_times_time(self):
        result = self.one("-l", "100/1s", "--rate", 250, "--duration", "10s", "--virtual")
        self.assertEqual(result["requests"], 2500)
        # The last request starts 4 ms before the end; by then 999 tokens have come.
        self.assertEqual(result["admitted"], 100 + 999)
        self.assertEqual(result["rejected"], 2500 - 1099)
        self.assertEqual(sum(result["admitted_in_second"]), 1099)
        self.assertEqual(result["seconds"], 10.0)

    def test_below_the_limit_nothing_is_refused(self):
        for algorithm in (
            "token_bucket",
            "leaky_bucket",
            "fixed_window",
            "sliding_counter",
            "sliding_log",
        ):
            result = self.one(
                "-l", "100/1s", "-a", algorithm, "--rate", 98, "--duration", "20s", "--virtual"
            )
            self.assertEqual((result["admitted"], result["rejected"]), (1960, 0), algorithm)

    def test_each_key_has_its_own_limit_and_a_seed_repeats_the_run(self):
        arguments = ("-l", "10/1s", "--rate", 1000, "--duration", "5s", "--keys", 5, "--virtual")
        first = self.one(*arguments, "--seed", 3)
        self.assertEqual(first, self.one(*arguments, "--seed", 3))
        self.assertNotEqual(first["admitted_in_second"], [])
        # Five keys: a burst of ten each, then ten a second each, to within the last token of each.
        self.assertLessEqual(first["admitted"], 5 * (10 + 50))
        self.assertGreaterEqual(first["admitted"], 5 * (10 + 49 - 1))

    def test_a_queue_spreads_a_burst_and_the_wait_shows_it(self):
        result = self.ok(
            "load",
            "-l",
            "10/1s",
            "-a",
            "leaky_bucket",
            "--max-delay",
            "5s",
            "--batches",
            "20@1000",
            "--virtual",
            "--json",
        ).json_lines()[0]
        self.assertEqual((result["admitted"], result["attempts"]), (20, 20))
        self.assertAlmostEqual(result["seconds"], 1.9, places=6)
        self.assertAlmostEqual(result["wait_ns"]["max"], 1.9e9 - 19e6, delta=1)

    def test_concurrency_admits_slots_over_hold_time(self):
        result = self.one(
            "-l",
            20,
            "-a",
            "concurrency",
            "--hold",
            "100ms",
            "--rate",
            500,
            "--duration",
            "4s",
            "--virtual",
        )
        self.assertEqual(result["admitted"], 20 * 40)

    # A batch that the limit lets through far too slowly ends with a message, not never.
    def test_virtual_time_does_not_run_for_ever(self):
        options = ("-l", "1/366d", "--batches", "3@1", "--retry", "1ns", "--virtual")
        done = self.refuses(3, r"gave up after 10000000 rejections", "load", *options)
        self.assertIn("10000001", done.out)

    def test_real_time_takes_the_time_it_says(self):
        begin = time.monotonic()
        result = self.one("-l", "50/1s", "--rate", 200, "--duration", "1s")
        self.assertGreaterEqual(time.monotonic() - begin, 0.99)
        self.assertEqual(result["requests"], 200)
        self.assertLessEqual(result["admitted"], 50 + 50 * result["seconds"])
        self.assertGreaterEqual(result["admitted"], 50 + 49)

    # A person sees how far it is; who pipes it, and what is measured, sees nothing of that.
    def test_a_terminal_is_shown_the_progress(self):
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [BINARY, "load", "-l", "50/1s", "--rate", "100", "--duration", "1s", "--json"],
            stdout=subprocess.PIPE,
            stderr=theirs,
        )
        os.close(theirs)
        shown = b""
        try:
            while more := os.read(ours, 4096):
                shown += more
        except OSError:
            pass  # a terminal ends so when nobody writes to it any more
        os.close(ours)
        out, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)
        shares = [int(share) for share in re.findall(r"(\d+)%", shown.decode())]
        self.assertGreater(len(set(shares)), 5, shown)
        self.assertEqual(shares, sorted(shares))
        self.assertLessEqual(shares[-1], 100)
        self.assertRegex(shown.decode(), "\r100@100 █*░* ")
        self.assertTrue(shown.endswith(b"\r\x1b[K"), "and it is gone at the end")
        self.assertEqual(json.loads(out)["requests"], 100)

    def test_an_interrupt_ends_the_run_and_shows_what_was_measured(self):
        process = subprocess.Popen(
            [BINARY, "load", "-l", "5/1s", "--rate", "100", "--duration", "1h", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        wait_until(lambda: has_signal(process.pid, "SigCgt", signal.SIGINT), "it is heeded")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)
        self.assertIn(b'"interrupted":true', out)
        self.assertIn(b"stopped early", err)


class BadOptions(ScenarioTest):
    def test_each_has_its_message(self):
        cases = [
            ([], r"there is no limit to apply"),
            (
                ["-l", "5/1s", "--batches", "10"],
                r"--batches: '10' is not a batch; write requests@rate",
            ),
            (["-l", "5/1s", "--batches", "10@0"], r"--batches: '0' is not a whole number from 1"),
            (["-l", "5/1s", "--batches", "10@1,"], r"--batches: '' is not a batch"),
            (["-l", "5/1s", "--rate", "x"], r"--rate: 'x' is not a whole number from 1"),
            (
                ["-l", "5/1s", "--rate", "10", "--retry", "1s"],
                r"--batches and --retry belong to the other mode",
            ),
            (["-l", "5/1s", "--duration", "1s"], r"--duration needs a rate"),
            (
                ["-l", "5/1s", "--rate", "1", "--duration", "1ms"],
                r"is not between 1 and 1000000000 requests",
            ),
            (["-l", "5/1s", "--retry", "0s"], r"--retry: must be more than 0"),
            (["-l", "5/1s", "--keys", "0"], r"--keys: '0' is not a whole number from 1"),
            (["-l", "5/1s", "--hold", "1s"], r"--hold is how long a request occupies its slot"),
            (
                ["-l", "5", "-a", "concurrency", "--hold", "2m"],
                r"--hold is longer than a lease lives",
            ),
            (["-l", "0/1s"], r"an amount of 0 would reject everything"),
            (["-l", "1/1s", "--count-rejected"], r"--count-rejected rejects a client that retries"),
            (["-l", "1/1s", "--seed", "x"], r"--seed: 'x' is not a whole number"),
        ]
        for options, pattern in cases:
            with self.subTest(options=options):
                self.refuses(2, pattern, "load", *options)


if __name__ == "__main__":
    unittest.main()
