"""What a plan costs and when it pays."""

from collections.abc import Mapping
from dataclasses import dataclass

from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.tuned import Timing


@dataclass(frozen=True)
class Measured:
    """Seconds of a call in the order of the input, and in the plan's."""

    before: Timing
    after: Timing

    @classmethod
    def given(cls, before: float, after: float) -> "Measured":
        """Times that a user measured, in milliseconds, which are taken as they are."""
        return cls(*(Timing.of([t / 1e3] * 5) for t in (before, after)))

    @property
    def milliseconds(self) -> tuple[float, float]:
        """The medians; that of the input order twice where noise could have made them differ."""
        return 1e3 * self.before.median, 1e3 * (self.before.median - self.saved)

    @property
    def saved(self) -> float:
        """Seconds that a call saves, 0 where noise could have made the difference."""
        alike = self.after.times_as_fast(self.before) is None
        return 0.0 if alike else self.before.median - self.after.median


@dataclass(frozen=True)
class Cost:
    """What a plan cost, and what a call of each of the loops that were timed saves."""

    seconds: float  # of preparation, files apart
    # Seconds of these calls in the input order, and how many fewer in the plan's.
    before: float
    saved: float
    timed: int
    loops: int

    @property
    def calls(self) -> int | None:
        """Calls after which the preparation is repaid; None where it never is."""
        if self.saved <= 0:
            return None
        return -(-int(self.seconds * 1e9) // max(1, int(self.saved * 1e9)))


def cost_of(plan: Plan, times: Mapping[str, Measured]) -> Cost:
    """What this plan cost, and what it saves in calls of those of its loops that were timed."""
    seconds, loops = sum(plan.metrics.seconds.values()), plan.metrics.loops
    timed = [times[name] for name in loops if name in times]
    before, saved = sum(m.before.median for m in timed), sum(m.saved for m in timed)
    return Cost(seconds, before, saved, len(timed), len(loops))
