"""The seconds that a plan costs, and the calls after which they are repaid."""

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
        """Times that a user measured, in milliseconds: exact, as if without noise."""
        # Five equal runs have no spread.
        n_runs = 5
        runs_before = [before / 1e3] * n_runs
        runs_after = [after / 1e3] * n_runs
        return cls(Timing.of(runs_before), Timing.of(runs_after))

    @property
    def milliseconds(self) -> tuple[float, float]:
        """The medians of both orders, equal where noise could make the difference."""
        return 1e3 * self.before.median, 1e3 * (self.before.median - self.saved)

    @property
    def saved(self) -> float:
        """Seconds that a call saves, 0 where noise could have made the difference."""
        alike = self.after.times_as_fast(self.before) is None
        if alike:
            return 0.0
        return self.before.median - self.after.median


@dataclass(frozen=True)
class Cost:
    """The cost of a plan, and what a call of each of its timed loops saves."""

    seconds: float  # of preparation, without reading and writing files
    before: float  # seconds of a call of each timed loop, in the input order
    saved: float  # seconds less in the plan's order
    timed: int  # loops that were timed
    loops: int  # all loops

    @property
    def calls(self) -> int | None:
        """Calls after which the preparation is repaid; None where it never is."""
        if self.saved <= 0:
            return None
        # In whole nanoseconds, and rounded up.
        ns_to_repay = int(self.seconds * 1e9)
        ns_saved = max(1, int(self.saved * 1e9))
        return -(-ns_to_repay // ns_saved)


def cost_of(plan: Plan, times: Mapping[str, Measured]) -> Cost:
    """The cost of a plan, and what it saves in a call of each of its timed loops."""
    seconds = sum(plan.metrics.seconds.values())
    loops = plan.metrics.loops
    timed = [times[name] for name in loops if name in times]
    before = sum(m.before.median for m in timed)
    saved = sum(m.saved for m in timed)
    return Cost(
        seconds=seconds,
        before=before,
        saved=saved,
        timed=len(timed),
        loops=len(loops),
    )
