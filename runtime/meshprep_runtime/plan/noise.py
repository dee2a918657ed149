"""What repeated timings can tell: the one rule for every factor that is printed."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

# How often noise alone may give a factor, at most.
CHANCE = 0.01


@dataclass(frozen=True)
class Timing:
    """Seconds of the fastest, the median and the slowest of several runs."""

    least: float
    median: float
    most: float
    runs: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Timing":
        """Of the seconds of each run, at least one."""
        return cls(min(seconds), statistics.median(seconds), max(seconds), len(seconds))

    def times_as_fast(self, other: "Timing") -> float | None:
        """How many times as fast this is as another, by medians; below 1 where it is slower.

        None where noise could have made the factor: a run of the faster one took as long as one of
        the slower, or there are so few runs that those of two equal ways lie apart in more than 1 %
        of all cases (five of each are enough). Runs should have taken turns, so that a slow spell
        of the machine hits both.
        """
        overlap = self.least <= other.most and other.least <= self.most
        if overlap or 2 / math.comb(self.runs + other.runs, self.runs) > CHANCE:
            return None
        return other.median / self.median
