"""`sluice replay` against exact arithmetic on random traces."""

import random
import unittest

import models
from models import SECOND
from support import ScenarioTest


# (name, program options, model) for one rate; amount per period in nanoseconds.
def contenders(amount, period):
    rate = f"{amount}/{period}ns"
    small = max(1, amount // 3)
    width = max(period // 5, 1)
    return [
        ("token_bucket", ["-l", rate], models.Bucket(amount, period)),
        (
            "token_bucket burst",
            ["-l", rate, "--burst", small],
            models.Bucket(amount, period, small),
        ),
        (
            "gcra",
            ["-l", rate, "-a", "gcra", "--burst", amount + 2],
            models.Bucket(amount, period, amount + 2),
        ),
        ("leaky_bucket", ["-l", rate, "-a", "leaky_bucket"], models.Bucket(amount, period, 1)),
        (
            "leaky_bucket queue",
            ["-l", rate, "-a", "leaky_bucket", "--burst", 2, "--max-delay", f"{period}ns"],
            models.Bucket(amount, period, 2, period),
        ),
        ("interval", ["-l", rate, "--refill", "interval"], models.IntervalBucket(amount, period)),
        (
            "interval burst",
            ["-l", rate, "--refill", "interval", "--burst", 2 * amount + 1],
            models.IntervalBucket(amount, period, 2 * amount + 1),
        ),
        ("fixed_window", ["-l", rate, "-a", "fixed_window"], models.FixedWindow(amount, period)),
        (
            "first_request",
            ["-l", rate, "-a", "fixed_window", "--align", "first_request"],
            models.FirstRequestWindow(amount, period),
        ),
        ("sliding_log", ["-l", rate, "-a", "sliding_log"], models.SlidingLog(amount, period)),
        (
            "sliding_counter",
            ["-l", rate, "-a", "sliding_counter"],
            models.SlidingCounter(amount, period),
        ),
        (
            "sliding_buckets",
            ["-l", rate, "-a", "sliding_buckets"],
            models.SlidingBuckets(amount, period),
        ),
        (
            "sliding_buckets fine",
            ["-l", rate, "-a", "sliding_buckets", "--bucket-width", f"{width}ns"],
            models.SlidingBuckets(amount, period, width),
        ),
    ]


BUCKETS = {"token_bucket", "token_bucket burst", "gcra", "leaky_bucket", "leaky_bucket queue"}


def random_trace(rng, amount, period, length):
    """Times that meet edges: gaps of 0, 1 ns, whole intervals and periods, and a nanosecond off."""
    interval = max(period // amount, 1)
    now = 1_642_637_585 * SECOND + rng.randrange(period)
    trace = []
    for _ in range(length):
        gap = rng.choice(
            [0, 0, 0, 1, interval, interval - 1, interval + 1, period, period - 1, period + 1]
            + [rng.randrange(2 * interval + 1), rng.randrange(period), rng.randrange(4 * period)]
        )
        now += gap
        cost = rng.choice([1, 1, 1, 1, 0, 2, rng.randrange(2 * amount + 3)])
        trace.append((now, cost))
    return trace


def lines(trace):
    return "".join(f"{at},k,{cost}\n" for at, cost in trace)


class AgreesWithExactArithmetic(ScenarioTest):
    # Where the period divides evenly, and for everything that counts, all fields agree to the
    # nanosecond.
    def test_every_field_on_random_traces(self):
        rng = random.Random(20220120)
        rates = [(1, SECOND), (3, 3600 * SECOND), (10, SECOND), (100, 60 * SECOND), (7, 7_000_000)]
        rates += [
            (rng.choice([1, 2, 3, 5, 12, 500]), rng.choice([10**6, 10**9, 86400 * SECOND]))
            for _ in range(6)
        ]
        for amount, period in rates:
            period -= period % amount
            for name, options, model in contenders(amount, period):
                with self.subTest(name=name, amount=amount, period=period):
                    trace = random_trace(rng, amount, period, 150)
                    printed = self.ok("replay", "--json", *options, stdin=lines(trace)).json_lines()
                    expected = [model.decide(at, cost) for at, cost in trace]
                    self.assertEqual(printed, expected)

    # Counting algorithms are exact whatever the period.
    def test_counting_algorithms_need_no_even_period(self):
        rng = random.Random(7)
        for amount, period in [(7, SECOND), (3, 1_000_003), (11, 86_400 * SECOND + 1)]:
            for name, options, model in contenders(amount, period):
                if name in BUCKETS:
                    continue
                with self.subTest(name=name, amount=amount, period=period):
                    trace = random_trace(rng, amount, period, 150)
                    printed = self.ok("replay", "--json", *options, stdin=lines(trace)).json_lines()
                    self.assertEqual(printed, [model.decide(at, cost) for at, cost in trace])

    # Where it does not divide, a bucket is never above the exact answer.
    def test_uneven_buckets_are_never_above_the_exact_answer(self):
        rng = random.Random(11)
        for amount, period in [
            (7, SECOND),
            (3_000_000, SECOND + 1),
            (999_999_999, SECOND),
            (13, 10**6 + 1),
        ]:
            with self.subTest(amount=amount, period=period):
                trace = random_trace(rng, min(amount, 50), period, 400)
                printed = self.ok(
                    "replay", "--json", "-l", f"{amount}/{period}ns", stdin=lines(trace)
                ).json_lines()
                exact = models.Bucket(amount, period)
                for (at, cost), got in zip(trace, printed):
                    exact.advance(at)
                    if got["allowed"]:
                        self.assertLessEqual(cost, exact.tokens)
                        exact.tokens -= cost
                    self.assertLessEqual(got["remaining"], exact.tokens)

    # ... and below it by at most 0.5 %: a client that comes back at the told time gets its rate.
    def test_uneven_buckets_keep_at_least_99_5_percent_of_the_rate(self):
        for amount, period in [
            (7, SECOND),
            (700_001, SECOND),
            (999_999_999, SECOND),
            (62_500_001, SECOND),
        ]:
            with self.subTest(amount=amount, period=period):
                exact_interval = period / amount
                count = 2000
                # As soon as the exact bucket would admit one more, plus half a percent.
                trace = [(0, amount)]
                trace += [(int((i + 1) * exact_interval * 1.005) + 1, 1) for i in range(count)]
                verdicts = self.verdicts("-l", f"{amount}/{period}ns", stdin=lines(trace))
                self.assertEqual(verdicts, ["true"] * (count + 1))

    # A slot is held for exactly the time in flight, and longer than its lease when renewed.
    def test_concurrency_is_requests_in_flight(self):
        rng = random.Random(5)
        for limit in (1, 3):
            now, in_flight, expected, trace = 10**12, [], [], []
            for _ in range(300):
                now += rng.choice([0, 1, 10**6, rng.randrange(10**9)])
                duration = rng.choice([0, 1, 10**6, rng.randrange(4 * 10**9)])
                in_flight = [end for end in in_flight if end > now]
                allowed = len(in_flight) < limit
                if allowed:
                    in_flight.append(now + duration)
                expected.append("true" if allowed else "false")
                trace.append(f"{now},k,1,{duration}\n")
            verdicts = self.verdicts(
                "-a", "concurrency", "-l", limit, "--slot-ttl", "1s", stdin="".join(trace)
            )
            self.assertEqual(verdicts, expected)


if __name__ == "__main__":
    unittest.main()
