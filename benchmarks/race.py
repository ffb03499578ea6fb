"""Timing side by side.

In: a call for each contestant. Out: the best seconds of each. They run in turn, in an order that
changes with every round, so that whatever else the machine does meets them all.
"""

import gc
import math
import random
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter

from benchmarks.ours import forget

MIN_ROUNDS = 5
MIN_ROUNDS_IF_SLOW = 3
MAX_ROUNDS = 200
TRIES = 2
HOPELESS = 5.0  # times as long as the fastest: far from the best peer

Timer = Callable[[], float]


def race(
    timers: Mapping[str, Timer], budget: float, hopeless: float = math.inf
) -> dict[str, float]:
    """The best of several rounds for each: until its `budget` of seconds is used up.

    Who takes more than `hopeless` times as long as the fastest has but `TRIES` rounds.
    """
    times: dict[str, list[float]] = {name: [] for name in timers}
    order = random.Random(0)
    running = list(timers)
    gc.collect()
    gc.disable()
    try:
        while running:
            order.shuffle(running)
            for name in running:
                times[name].append(timers[name]())
            leader = min(min(of_one) for of_one in times.values())
            running = [
                name
                for name in running
                if not _enough(times[name], budget)
                and not (len(times[name]) >= TRIES and min(times[name]) > hopeless * leader)
            ]
    finally:
        gc.enable()
    return {name: min(of_one) for name, of_one in times.items()}


def _enough(times: Sequence[float], budget: float) -> bool:
    rounds, spent = len(times), sum(times)
    return (
        rounds >= MAX_ROUNDS
        or (rounds >= MIN_ROUNDS and spent >= budget)
        or (rounds >= MIN_ROUNDS_IF_SLOW and spent >= 2 * budget)
    )


def timer(call: Callable[[], object], forget: Callable[[], None] = forget) -> Timer:
    """Times a call, for which nothing is kept from the one before."""

    def timed() -> float:
        forget()
        start = perf_counter()
        result = call()
        seconds = perf_counter() - start
        del result  # freeing it is nobody's work
        return seconds

    return timed
