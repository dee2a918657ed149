"""What a plan costs and when it pays: seconds of preparation against time saved a call."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from meshprep_runtime.cuda.strategies import MOST_THREADS
from meshprep_runtime.errors import MeshprepError, check_choice
from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.metrics import LoopMetrics, VariantMetrics

from .occupancy import (
    DEVICES,
    LAUNCH_SECONDS,
    REGISTERS_PER_THREAD,
    Occupancy,
    memory_seconds,
    occupancy,
)
from .traffic import SECTOR_BYTES


@dataclass(frozen=True)
class Assumptions:
    """What figures of time and occupancy rest on.

    Raises MeshprepError for an unknown device, and numbers out of range.
    """

    device: str = "H200"  # a name in ``occupancy.DEVICES``
    registers: int = 64  # registers of a thread; what the compiler gives a kernel
    # GB/s of the device's memory; None takes the published one, which no loop reaches, so that the
    # time saved is not overrated.
    bandwidth: float | None = None
    # Microseconds of a launch; a call has one for each block colour.
    launch: float = 1e6 * LAUNCH_SECONDS
    # By loop: milliseconds of a call in the input order and in the plan's, where measured; they
    # replace what is predicted.
    measured: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_choice("device", self.device, DEVICES)
        if not 1 <= self.registers <= REGISTERS_PER_THREAD:
            raise MeshprepError(
                f"registers is {self.registers}, must be 1 to {REGISTERS_PER_THREAD}"
            )
        if self.bandwidth is not None and not 0 < self.bandwidth < float("inf"):
            raise MeshprepError(f"bandwidth is {self.bandwidth} GB/s, must be more than 0")
        if not 0 <= self.launch < float("inf"):
            raise MeshprepError(f"launch is {self.launch} microseconds, must be 0 or more")
        for loop, times in self.measured.items():
            if not all(0 < t < float("inf") for t in times):
                raise MeshprepError(f"loop '{loop}': milliseconds of a call must be more than 0")

    @property
    def gigabytes(self) -> float:
        """GB/s that predictions rest on."""
        return self.bandwidth or float(DEVICES[self.device].bandwidth)


@dataclass(frozen=True)
class Cost:
    """What a plan cost, and what a call of every one of its loops saves."""

    seconds: float  # of preparation, files apart
    saved: float | None  # milliseconds; None where it was neither measured nor can be predicted
    measured: bool  # whether every time was measured; else at least one is predicted
    loops: int

    @property
    def calls(self) -> int | None:
        """Calls after which the preparation is repaid; None where it never is."""
        if self.saved is None or self.saved <= 0:
            return None
        return -(-int(self.seconds * 1e9) // max(1, int(self.saved * 1e6)))


def predicted_ms(found: VariantMetrics | None, assumptions: Assumptions) -> float | None:
    """Milliseconds of a call when memory, waves and launches count, in the better layout.

    Blocks of a colour are one launch; where they fill few of the device's multiprocessors, less of
    its bandwidth is reached. None for plans of older versions, and for the CPU: transactions are
    those of a GPU's blocks.
    """
    if found is None or not found.traffic or found.target == "cpu":
        return None
    nbytes = min(t.total for t in found.traffic.values()) * SECTOR_BYTES
    held, bandwidth = _occupancy(found, assumptions), 1e9 * assumptions.gigabytes
    memory = nbytes / bandwidth
    if held is not None:
        device = DEVICES[assumptions.device]
        memory = memory_seconds(nbytes, found.block_colour_sizes, device, held, bandwidth)
    return 1e3 * memory + found.block_colours * assumptions.launch / 1e3


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
    """What this plan cost and saves, its default variants counted."""
    seconds, loops = sum(plan.metrics.seconds.values()), plan.metrics.loops
    times = [_times(name, plan, loop, assumptions) for name, loop in loops.items()]
    known = [t for t in times if t is not None]
    saved = sum(before - after for before, after in known) if len(known) == len(times) else None
    measured = bool(loops) and set(loops) <= set(assumptions.measured)
    return Cost(seconds, saved if loops else None, measured, len(loops))


def _times(
    name: str, plan: Plan, loop: LoopMetrics, assumptions: Assumptions
) -> tuple[float, float] | None:
    """Milliseconds of a call before and after."""
    if name in assumptions.measured:
        return assumptions.measured[name]
    shown = loop.variants.get(plan[name].default) or next(iter(loop.variants.values()))
    before, after = (predicted_ms(side, assumptions) for side in (shown.before, shown.after))
    return None if before is None or after is None else (before, after)
