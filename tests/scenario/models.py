"""Exact reference models in rational arithmetic, one per algorithm.

Slow and obvious on purpose, and written without a look at the program: each follows the words of
the documentation. `decide(now, cost)` answers the object that `sluice replay --json` prints. Times
are whole nanoseconds and never go back; every answer in time rounds up.
"""

from fractions import Fraction
from math import ceil, floor

SECOND = 1_000_000_000


def answer(allowed, limit, remaining, reset, retry, delay=0):
    return {
        "allowed": allowed,
        "limit": limit,
        "remaining": remaining,
        "reset_after_ns": reset,
        "retry_after_ns": None if allowed else retry,
        "delay_ns": delay,
    }


class Bucket:
    """Tokens that arrive continuously; a queue lets the level go below zero and holds requests."""

    def __init__(self, amount, period, burst=None, queue=0):
        self.per_ns = Fraction(amount, period)
        self.burst = amount if burst is None else burst
        self.queue = queue * self.per_ns  # in tokens
        self.tokens = Fraction(self.burst)
        self.last = None

    def advance(self, now):
        if self.last is not None:
            self.tokens = min(Fraction(self.burst), self.tokens + (now - self.last) * self.per_ns)
        self.last = now

    def wait_for(self, tokens):
        return ceil(max(tokens, 0) / self.per_ns)

    def decide(self, now, cost):
        self.advance(now)
        never = cost > self.burst
        allowed = cost == 0 or (not never and self.tokens - cost >= -self.queue)
        delay = 0
        retry = None
        if allowed and cost > 0:
            self.tokens -= cost
            delay = self.wait_for(-self.tokens)
        elif not allowed and not never:
            retry = self.wait_for(cost - self.tokens - self.queue)
        reset = self.wait_for(self.burst - self.tokens)
        return answer(allowed, self.burst, max(floor(self.tokens), 0), reset, retry, delay)


class IntervalBucket:
    """All tokens of a period arrive at its end."""

    def __init__(self, amount, period, burst=None):
        self.amount, self.period = amount, period
        self.burst = amount if burst is None else burst
        self.tokens = self.burst
        self.index = None

    def decide(self, now, cost):
        index = now // self.period
        if self.index is not None:
            self.tokens = min(self.burst, self.tokens + (index - self.index) * self.amount)
        self.index = index
        never = cost > self.burst
        allowed = cost <= self.tokens
        if allowed:
            self.tokens -= cost

        def until(missing):
            if missing <= 0:
                return 0
            return (index + ceil(Fraction(missing, self.amount))) * self.period - now

        retry = None if never else until(cost - self.tokens)
        return answer(allowed, self.burst, self.tokens, until(self.burst - self.tokens), retry)


class FixedWindow:
    def __init__(self, amount, period):
        self.amount, self.period = amount, period
        self.counts = {}

    def decide(self, now, cost):
        index = now // self.period
        used = self.counts.get(index, 0)
        never = cost > self.amount
        allowed = used + cost <= self.amount
        if allowed:
            used = self.counts[index] = used + cost
        end = (index + 1) * self.period - now
        return answer(
            allowed, self.amount, self.amount - used, end if used else 0, None if never else end
        )


class FirstRequestWindow:
    def __init__(self, amount, period):
        self.amount, self.period = amount, period
        self.start, self.used = None, 0

    def decide(self, now, cost):
        if self.start is not None and now >= self.start + self.period:
            self.start, self.used = None, 0
        never = cost > self.amount
        allowed = self.used + cost <= self.amount
        if allowed and cost > 0:
            if self.start is None:
                self.start = now
            self.used += cost
        end = 0 if self.start is None else self.start + self.period - now
        return answer(allowed, self.amount, self.amount - self.used, end, None if never else end)


class SlidingLog:
    """Every admission of the half-open window (now - period, now], one entry per unit of cost."""

    def __init__(self, amount, period):
        self.amount, self.period = amount, period
        self.log = []

    def decide(self, now, cost):
        self.log = [at for at in self.log if at > now - self.period]
        never = cost > self.amount
        allowed = len(self.log) + cost <= self.amount
        retry = None
        if allowed:
            self.log += [now] * cost
        elif not never:
            must_go = len(self.log) + cost - self.amount
            retry = sorted(self.log)[must_go - 1] + self.period - now
        reset = max(self.log) + self.period - now if self.log else 0
        return answer(allowed, self.amount, self.amount - len(self.log), reset, retry)


class SlidingCounter:
    """The previous window counts by the share of it that is still in sight."""

    def __init__(self, amount, period):
        self.amount, self.period = amount, period
        self.counts = {}

    def estimate(self, now):
        index, into = divmod(now, self.period)
        weight = Fraction(self.period - into, self.period)
        return self.counts.get(index - 1, 0) * weight + self.counts.get(index, 0)

    def fits(self, now, cost):
        return self.estimate(now) + cost <= self.amount

    def first_fit(self, now, cost):
        """Room only grows while nobody comes, so the first instant can be found by halving."""
        low, high = 0, 2 * self.period + 1
        while low < high:
            middle = (low + high) // 2
            if self.fits(now + middle, cost):
                high = middle
            else:
                low = middle + 1
        return low

    def decide(self, now, cost):
        never = cost > self.amount
        allowed = cost == 0 or self.fits(now, cost)
        index = now // self.period
        if allowed:
            self.counts[index] = self.counts.get(index, 0) + cost
        remaining = floor(self.amount - self.estimate(now))
        reset = self.first_fit(now, self.amount)
        retry = None if allowed or never else self.first_fit(now, cost)
        return answer(allowed, self.amount, remaining, reset, retry)


class SlidingBuckets:
    """Slices of the window; the one that is partly out of sight counts in full."""

    def __init__(self, amount, period, width=None):
        self.amount = amount
        self.width = ceil(Fraction(period, 8)) if width is None else width
        self.slices = ceil(Fraction(period, self.width))
        self.counts = {}

    def in_sight(self, now):
        newest = now // self.width
        return {
            n: c for n, c in self.counts.items() if newest - self.slices <= n <= newest and c > 0
        }

    def decide(self, now, cost):
        seen = self.in_sight(now)
        used = sum(seen.values())
        never = cost > self.amount
        allowed = used + cost <= self.amount
        retry = None
        if allowed and cost > 0:
            newest = now // self.width
            self.counts[newest] = self.counts.get(newest, 0) + cost
            used += cost
            seen = self.in_sight(now)
        elif not allowed and not never:
            must_go = used + cost - self.amount
            for n in sorted(seen):
                must_go -= seen[n]
                if must_go <= 0:
                    retry = (n + self.slices + 1) * self.width - now
                    break
        reset = (max(seen) + self.slices + 1) * self.width - now if seen else 0
        return answer(allowed, self.amount, self.amount - used, reset, retry)
