"""What was found to run a loop fastest, and the machine it holds for [G12 section 6]."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .records import LEFT_OUT, Record

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


CPU, GPU = "cpu", "gpu"


@dataclass(frozen=True)
class Machine(Record):
    """What a choice holds for."""

    kind: str  # {"cpu", "gpu"}
    name: str  # of the processor or the device, as the system tells it
    threads: int = 0  # threads of a CPU; 0 for a GPU

    def __str__(self) -> str:
        if self.kind == GPU:
            return self.name
        return f"{self.name}, {self.threads} thread{'s' if self.threads != 1 else ''}"


@dataclass(frozen=True)
class Trial(Record):
    """One way to run a loop, and how long a call takes."""

    strategy: str
    variant: str  # the blocks; empty where the strategy has none
    soa: tuple[str, ...]  # dats stored component after component; all others element after element
    seconds: float  # a call: the fastest run, or what the traffic model says
    median: float  # of all runs
    spread: float  # the slowest run over the fastest, less 1
    runs: int  # 0 where nothing was measured; fewer than the others had where it was given up early
    # On a GPU, how blocks add to points that others share: ``"colours"`` or ``"atomics"``.
    commit: str = "colours"
    # Of a thread block on a GPU; None for as many as the blocks have elements.
    threads: int | None = field(default=None, metadata=LEFT_OUT)
    # Of the code on a CPU, where several are tried: ``"rows"``, ``"local"`` or ``"chunk"``.
    form: str = field(default="", metadata=LEFT_OUT)

    @property
    def timing(self) -> Timing:
        """Of its runs, of which there must be some."""
        return Timing(self.seconds, self.median, self.seconds * (1 + self.spread), self.runs)

    @property
    def layout(self) -> dict[str, str]:
        """The layout as a ParLoop takes it."""
        return dict.fromkeys(self.soa, "soa")


@dataclass(frozen=True)
class Tuned(Record):
    """All that was tried for one loop on one machine, the fastest first."""

    machine: Machine
    kernel: str  # the name of the kernel that ran; empty where the traffic model ranked
    measured: bool  # False where the traffic model ranked without running anything
    trials: tuple[Trial, ...]  # at least one
    created: str = field(default="", compare=False)  # the time in UTC

    def check(self) -> None:
        if not self.trials:
            raise ValueError("trials is empty")

    @property
    def best(self) -> Trial:
        return self.trials[0]

    @property
    def equals(self) -> tuple[Trial, ...]:
        """Those that are as fast as :attr:`best` within the noise, the fastest first.

        Their fastest run took no longer than the slowest of the best. None where the traffic model
        ranked, and none that was given up early.
        """
        best = self.best
        enough = (t for t in self.trials[1:] if self.measured and 2 * t.runs >= best.runs)
        return tuple(t for t in enough if best.timing.times_as_fast(t.timing) is None)

    def best_for(self, soa: Iterable[str]) -> Trial | None:
        """The fastest that has just these dats component after component."""
        wanted = set(soa)
        return next((t for t in self.trials if set(t.soa) == wanted), None)
