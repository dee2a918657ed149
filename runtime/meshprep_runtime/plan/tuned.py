"""The fastest ways to run a loop, and the machine that they hold for [G12 section 6]."""

import math
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .records import LEFT_OUT, Record

# The largest probability that noise alone makes a factor.
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
        """The timing of several runs, at least one, from the seconds of each."""
        return cls(
            least=min(seconds),
            median=statistics.median(seconds),
            most=max(seconds),
            runs=len(seconds),
        )

    def times_as_fast(self, other: "Timing") -> float | None:
        """The factor by which this is faster than another; below 1 where it is slower.

        By medians. None where noise could have made the factor: see :meth:`is_less`. Runs
        should take turns, so that a slow period of the machine slows both.
        """
        if self.is_less(other) or other.is_less(self):
            return other.median / self.median
        return None

    def is_less(self, other: "Timing") -> bool:
        """Whether this takes less time than another, as noise shows in 1 % of all cases.

        Runs of this that took less than every run of the other are counted: all of them,
        or at least half, so that a run that was disturbed does not decide. Of two equal
        ways that many are the first by chance more rarely, the more runs there are: five
        of each are enough where it is all, fourteen where it is half.
        """
        if self.most < other.least:
            leading = self.runs
        elif self.median < other.least:
            leading = (self.runs + 1) // 2
        else:
            return False
        # Orders of all runs in which these come first; either way may be the faster one.
        orders = math.comb(self.runs + other.runs, other.runs)
        orders_so = math.comb(self.runs + other.runs - leading, other.runs)
        return 2 * orders_so / orders <= CHANCE


# The kinds of machines.
CPU = "cpu"
GPU = "gpu"


@dataclass(frozen=True)
class Machine(Record):
    """The processor or device, and the number of threads, that a choice holds for."""

    # "cpu" or "gpu".
    kind: str
    # The name of the processor or the device, as the system reports it.
    name: str
    # Threads of a CPU; 0 for a GPU.
    threads: int = 0

    def __str__(self) -> str:
        if self.kind == GPU:
            return self.name
        if self.threads == 1:
            return f"{self.name}, 1 thread"
        return f"{self.name}, {self.threads} threads"


@dataclass(frozen=True)
class Trial(Record):
    """One way to run a loop, and the seconds of a call."""

    strategy: str
    # The blocks; empty where the strategy has none.
    variant: str
    # Dats stored component after component; all others are stored element after element.
    soa: tuple[str, ...]
    # Seconds of a call: of the fastest run, or as the traffic model predicts.
    seconds: float
    # Seconds of the median of all runs.
    median: float
    # The seconds of the slowest run divided by those of the fastest, minus 1.
    spread: float
    # 0 where nothing was measured; fewer than of other trials where it was given up early.
    runs: int
    # How blocks on a GPU add to points that others share: ``"colours"`` or ``"atomics"``.
    commit: str = "colours"
    # Threads of a thread block on a GPU; None for one for each element of a block.
    threads: int | None = field(default=None, metadata=LEFT_OUT)
    # The form of the code on a CPU, where several are tried: ``"rows"``, ``"local"`` or
    # ``"chunk"``.
    form: str = field(default="", metadata=LEFT_OUT)

    @property
    def timing(self) -> Timing:
        """The timing of its runs; there must be at least one."""
        return Timing(
            least=self.seconds,
            median=self.median,
            most=self.seconds * (1 + self.spread),
            runs=self.runs,
        )

    @property
    def layout(self) -> dict[str, str]:
        """The layout as a ParLoop takes it."""
        return dict.fromkeys(self.soa, "soa")


@dataclass(frozen=True)
class ProductThreads(Record):
    """The threads with which a GPU multiplies a matrix in compressed rows the fastest."""

    # The name of the device, as the system reports it.
    device: str
    # The type of the values, such as "f8".
    dtype: str
    # Threads of a thread block, threads that share a row, and rows of each such group.
    block_size: int
    coop: int
    repeat: int
    # Seconds of a product.
    seconds: float


@dataclass(frozen=True)
class DeviceProgram(Record):
    """What a program takes of a GPU's multiprocessor."""

    # The architecture that it was compiled for, such as "sm_90".
    arch: str
    # Threads of a thread block, from 1.
    threads: int
    # Shared memory of the largest block.
    shared_bytes: int
    # Registers of a thread, from 1; None where no compiler told.
    registers: int | None = field(default=None, metadata=LEFT_OUT)

    def check(self) -> None:
        if not re.fullmatch(r"sm_\d{2,3}[a-z]?", self.arch):
            raise ValueError(f"arch is '{self.arch}'")
        if self.threads < 1:
            raise ValueError("threads is 0")
        if self.registers == 0:
            raise ValueError("registers is 0")


@dataclass(frozen=True)
class Tuned(Record):
    """All trials of one loop on one machine, the fastest first."""

    machine: Machine
    # The name of the kernel that ran; empty where the traffic model has ranked the trials.
    kernel: str
    # False where the traffic model has ranked the trials, and nothing ran.
    measured: bool
    # At least one.
    trials: tuple[Trial, ...]
    # The time in UTC.
    created: str = field(default="", compare=False)
    # The share of a GPU's warps that the best can have resident; None on a CPU.
    occupancy: float | None = field(default=None, compare=False, metadata=LEFT_OUT)
    # What that share follows from.
    program: DeviceProgram | None = field(default=None, compare=False, metadata=LEFT_OUT)

    def check(self) -> None:
        if not self.trials:
            raise ValueError("trials is empty")

    @property
    def best(self) -> Trial:
        return self.trials[0]

    @property
    def equals(self) -> tuple[Trial, ...]:
        """The trials that are as fast as :attr:`best` within the noise, the fastest first.

        Their fastest run took no longer than the slowest run of the best. Trials that were
        given up early are left out; there are none where the traffic model has ranked.
        """
        if not self.measured:
            return ()
        best = self.best
        has_enough_runs = [t for t in self.trials[1:] if 2 * t.runs >= best.runs]
        return tuple(
            t for t in has_enough_runs if best.timing.times_as_fast(t.timing) is None
        )

    def best_for(self, soa: Iterable[str]) -> Trial | None:
        """The fastest trial with exactly these dats component after component, or None."""
        dats = set(soa)
        for trial in self.trials:
            if set(trial.soa) == dats:
                return trial
        return None
