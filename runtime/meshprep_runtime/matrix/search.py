"""The search for the threads of a product on a GPU, while a solver runs [R14 4.5.2].

The search has no clock: it proposes threads, and is told what they took. So it can be
replayed against tables of times.
"""

from collections.abc import Generator
from dataclasses import replace

from ..cuda.strategies import WARP
from .cuda_text import CsrThreads, fixed_rule, largest_repeat

# A search ends after at most so many trials: the rule, and six numbers of threads a row, of
# which one is that of the rule.
MOST_TRIALS = 7
# Proposes threads, and is sent the seconds that they took.
Trials = Generator[CsrThreads, float, None]


class ThreadSearch:
    """The search for the threads of one product; each trial is a call of a solver.

    First the fixed rule, then as many thread blocks as there can be, then twice as many
    threads a row while that gains, or else half as many. At most
    ``MOST_TRIALS`` trials.

    Attributes
    ----------
    proposed : CsrThreads
        The threads of the next call; the fastest ones when the search has ended.
    seconds : float
        What the fastest threads took.
    settled : bool
        True when the search has ended.
    """

    def __init__(self, rows: int, nonzeros: int) -> None:
        self._trials = _trials(rows, fixed_rule(rows, nonzeros))
        self.proposed = next(self._trials)
        self.seconds = float("inf")
        self.settled = False
        self._fastest = self.proposed

    def tell(self, seconds: float) -> None:
        """Take what the proposed threads took."""
        if seconds < self.seconds:
            self.seconds = seconds
            self._fastest = self.proposed
        try:
            self.proposed = self._trials.send(seconds)
        except StopIteration:
            self.proposed = self._fastest
            self.settled = True


def _trials(rows: int, rule: CsrThreads) -> Trials:
    fastest = rule
    least = yield rule
    # The rule leaves 1,500 thread blocks; GPUs that run more at a time may want more.
    if rule.repeat > 1:
        trial = replace(rule, repeat=1)
        seconds = yield trial
        if seconds < least:
            fastest = trial
            least = seconds
    repeats = fastest.repeat > 1
    # Climb: twice as many threads a row while that gains, else half as many.
    start = fastest.coop
    for upwards in (True, False):
        coop = start * 2 if upwards else start // 2
        while 1 <= coop <= WARP:
            repeat = largest_repeat(rows, coop) if repeats else 1
            seconds = yield replace(rule, coop=coop, repeat=repeat)
            if seconds >= least:
                break
            least = seconds
            fastest = replace(rule, coop=coop, repeat=repeat)
            coop = coop * 2 if upwards else coop // 2
        if fastest.coop != start:
            return
