"""The seconds that a plan costs, and the calls after which they are repaid."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.tuned import Timing

# Two orders between which a call differs by less than this factor take as long.
ALIKE = 1.1


class TimingOutcome(Enum):
    """What the times of calls in two orders say."""

    FASTER = "faster"
    SLOWER = "slower"
    ALIKE = "alike"
    NOISY = "noisy"


@dataclass(frozen=True)
class Measured:
    """Seconds of a call in the order of the input, and in the plan's."""

    before: Timing
    after: Timing
    # The least factor that counts as a difference.
    alike: float = ALIKE

    @classmethod
    def given(cls, before: float, after: float) -> "Measured":
        """Times that a user measured, in milliseconds: exact, as if without noise."""
        # Five equal runs have no spread.
        n_runs = 5
        runs_before = [before / 1e3] * n_runs
        runs_after = [after / 1e3] * n_runs
        return cls(Timing.of(runs_before), Timing.of(runs_after), alike=1.0)

    @classmethod
    def together(cls, several: Sequence["Measured"]) -> "Measured":
        """The times of one call of each of several loops, at least one."""
        return cls(
            before=_sum_of([m.before for m in several]),
            after=_sum_of([m.after for m in several]),
            alike=max(m.alike for m in several),
        )

    @property
    def factor(self) -> float:
        """How many times as fast the plan's order is, by the fastest runs.

        Other work on the machine only ever adds time.
        """
        return self.before.least / self.after.least

    @property
    def bounds(self) -> tuple[float, float]:
        """The factors between which noise leaves the true one, the lower one first."""
        low = self.before.least / self.after.median
        high = self.before.median / self.after.least
        return low, high

    @property
    def outcome(self) -> TimingOutcome:
        """Whether the plan's order is faster, slower, alike; or noise does not tell."""
        low, high = self.bounds
        if self.after.is_less(self.before) and self.factor > self.alike:
            return TimingOutcome.FASTER
        if self.before.is_less(self.after) and self.factor < 1 / self.alike:
            return TimingOutcome.SLOWER
        if low >= 1 / self.alike and high <= self.alike:
            return TimingOutcome.ALIKE
        return TimingOutcome.NOISY

    @property
    def milliseconds(self) -> tuple[float, float]:
        """The fastest runs of both orders, equal where they differ by noise alone."""
        return 1e3 * self.before.least, 1e3 * (self.before.least - self.saved)

    @property
    def saved(self) -> float:
        """Seconds that a call saves, 0 where noise could have made the difference."""
        if self.outcome in (TimingOutcome.FASTER, TimingOutcome.SLOWER):
            return self.before.least - self.after.least
        return 0.0


def _sum_of(timings: Sequence[Timing]) -> Timing:
    """The timing of calls that follow each other; runs as of the one with the fewest."""
    return Timing(
        least=sum(t.least for t in timings),
        median=sum(t.median for t in timings),
        most=sum(t.most for t in timings),
        runs=min(t.runs for t in timings),
    )


@dataclass(frozen=True)
class Cost:
    """The cost of a plan, and what a call of each of its timed loops saves."""

    # Of preparation, without reading and writing files.
    seconds: float
    # One call of each timed loop; None where none was timed.
    measured: Measured | None
    # Loops that were timed.
    timed: int
    # All loops.
    loops: int

    @property
    def calls(self) -> int | None:
        """Calls after which the preparation is repaid; None where it never is."""
        if self.measured is None or self.measured.saved <= 0:
            return None
        # In whole nanoseconds, and rounded up.
        ns_to_repay = int(self.seconds * 1e9)
        ns_saved = max(1, int(self.measured.saved * 1e9))
        return -(-ns_to_repay // ns_saved)


def cost_of(plan: Plan, times: Mapping[str, Measured]) -> Cost:
    """The cost of a plan, and what it saves in a call of each of its timed loops."""
    seconds = sum(plan.metrics.seconds.values())
    loops = plan.metrics.loops
    timed = [times[name] for name in loops if name in times]
    measured = None
    if timed:
        measured = Measured.together(timed)
    return Cost(
        seconds=seconds,
        measured=measured,
        timed=len(timed),
        loops=len(loops),
    )
