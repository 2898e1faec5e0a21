"""Measurements that take turns: what they compare was measured within seconds of each other.

A machine is never as fast in one minute as in the next, so the best of several turns compares the
luckiest moment of one subject with that of another. Here each round measures every subject once,
every other round in reverse order, and what counts is the median of the rounds' ratios.
"""

import statistics
import sys
from collections.abc import Callable


def rounds(count: int, subjects: dict[str, Callable], label: str = "", every: dict | None = None):
    """One dict for each round: what each subject returned. `every`: subjects measured for
    information only, one round in so many; other rounds lack them."""
    every = every or {}
    done = []
    for number in range(count):
        order = [name for name in subjects if number % every.get(name, 1) == 0]
        if number % 2 == 1:
            order.reverse()
        done.append({name: subjects[name]() for name in order})
        print(f"{label} {number + 1}/{count}: {done[-1]}", file=sys.stderr)
    return done


def ratios(measured: list, ours: str, theirs: str, value: Callable = float) -> list:
    """Of each round, sorted."""
    return sorted(value(one[ours]) / value(one[theirs]) for one in measured)


def median_ratio(measured: list, ours: str, theirs: str, value: Callable = float) -> float:
    return statistics.median(ratios(measured, ours, theirs, value))


def median_of(measured: list, subject: str, value: Callable = float) -> float:
    return statistics.median(value(one[subject]) for one in measured if subject in one)
