"""What a plan costs and when it pays: seconds of preparation against time saved a call."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from meshprep_runtime.cuda.strategies import MOST_THREADS
from meshprep_runtime.errors import MeshprepError, check_choice
from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.metrics import VariantMetrics

from .occupancy import DEVICES, REGISTERS_PER_THREAD, Occupancy, occupancy


@dataclass(frozen=True)
class Assumptions:
    """What figures of time and occupancy rest on.

    Raises MeshprepError for an unknown device, and numbers out of range.
    """

    device: str = "H200"  # a name in ``occupancy.DEVICES``
    registers: int = 64  # registers of a thread; what the compiler gives a kernel
    # By loop: milliseconds of a call in the input order and in the plan's.
    measured: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_choice("device", self.device, DEVICES)
        if not 1 <= self.registers <= REGISTERS_PER_THREAD:
            raise MeshprepError(
                f"registers is {self.registers}, must be 1 to {REGISTERS_PER_THREAD}"
            )
        for loop, times in self.measured.items():
            if not all(0 < t < float("inf") for t in times):
                raise MeshprepError(f"loop '{loop}': milliseconds of a call must be more than 0")


@dataclass(frozen=True)
class Cost:
    """What a plan cost, and what a call of every one of its loops saves."""

    seconds: float  # of preparation, files apart
    saved: float | None  # milliseconds; None where not all was measured
    loops: int

    @property
    def calls(self) -> int | None:
        """Calls after which the preparation is repaid; None where it never is."""
        if self.saved is None or self.saved <= 0:
            return None
        return -(-int(self.seconds * 1e9) // max(1, int(self.saved * 1e6)))


def occupancy_share(
    found: VariantMetrics, assumptions: Assumptions, block_size: int | None = None
) -> float | None:
    """Warps over the most that the device holds, when a block stages everything.

    ``block_size`` threads where it is another than the block size of the figures; then every block
    stages in proportion. None where blocks have more elements than a block may have threads.
    """
    held = _occupancy(found, assumptions, block_size)
    return None if held is None else held.share


def _occupancy(
    found: VariantMetrics, assumptions: Assumptions, block_size: int | None = None
) -> Occupancy | None:
    staged, threads = found.staged_bytes.max, block_size or found.block_size
    if staged is None or found.target == "cpu" or threads > MOST_THREADS:
        return None
    shared = -(-staged * threads // found.block_size)
    return occupancy(assumptions.device, threads, assumptions.registers, shared)


def cost_of(plan: Plan, assumptions: Assumptions) -> Cost:
    """What this plan cost, and what it saves where a call of each of its loops was measured."""
    seconds, loops = sum(plan.metrics.seconds.values()), plan.metrics.loops
    times = [assumptions.measured[name] for name in loops if name in assumptions.measured]
    known = bool(loops) and len(times) == len(loops)
    saved = sum(before - after for before, after in times) if known else None
    return Cost(seconds, saved, len(loops))
