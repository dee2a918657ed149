"""What a plan costs and when it pays, and how many of its blocks a multiprocessor holds at once."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from meshprep_runtime.cuda.strategies import MOST_THREADS, WARP
from meshprep_runtime.errors import MeshprepError, check_choice
from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.metrics import VariantMetrics
from meshprep_runtime.plan.tuned import Timing

# Limits: "Compute Capabilities" in NVIDIA's *CUDA C++ Programming Guide*; how registers and shared
# memory are handed out: the *CUDA Occupancy Calculator*.
WARPS = 64
BLOCKS = 32
REGISTERS = 65536
REGISTERS_PER_THREAD = 255
REGISTER_UNIT = 256
KIB = 1024


@dataclass(frozen=True)
class DeviceLimits:
    """What differs between devices; all of them have 64 warps, 32 blocks and 65,536 registers."""

    multiprocessors: int
    shared: int  # bytes of shared memory of a multiprocessor, at the largest share of its cache
    shared_per_block: int  # the most bytes that one block may ask for
    shared_unit: int  # bytes are handed out in multiples of this
    shared_reserved: int  # bytes that the system takes for each block
    # Parts of a multiprocessor; each hands out its share of the registers to its warps.
    partitions: int


# The A100 of 80 GB; A100, H100 and H200 on SXM boards.
DEVICES = {
    "P100": DeviceLimits(56, 64 * KIB, 48 * KIB, 256, 0, 2),
    "V100": DeviceLimits(80, 96 * KIB, 96 * KIB, 256, 0, 4),
    "A100": DeviceLimits(108, 164 * KIB, 163 * KIB, 128, KIB, 4),
    "H100": DeviceLimits(132, 228 * KIB, 227 * KIB, 128, KIB, 4),
    "H200": DeviceLimits(132, 228 * KIB, 227 * KIB, 128, KIB, 4),
}


@dataclass(frozen=True)
class Occupancy:
    """What a multiprocessor holds at once."""

    # 0 where not even one block fits.
    blocks: int
    warps: int
    share: float  # warps over the most that the device holds, from 0 to 1
    # Those of ``threads``, ``blocks``, ``registers`` and ``shared memory`` that allow no more.
    limited_by: tuple[str, ...]


def occupancy(
    device: str | DeviceLimits, block_size: int, registers: int = 32, shared_bytes: int = 0
) -> Occupancy:
    """The blocks of a kernel that one multiprocessor runs at once.

    ``block_size`` are the threads of a block, 1 to 1,024, ``registers`` those of a thread, as the
    compiler tells them, 1 to 255, and ``shared_bytes`` the shared memory of a block, static and
    dynamic. Raises MeshprepError for an unknown device and numbers out of range. A block that needs
    more shared memory or registers than there are is no error: 0 blocks fit.
    """
    of = limits_of(device)
    _check("block size", block_size, 1, MOST_THREADS)
    _check("registers", registers, 1, REGISTERS_PER_THREAD)
    _check("shared bytes", shared_bytes, 0, None)
    warps = -(-block_size // WARP)
    limits = {
        "threads": WARPS // warps,
        "blocks": BLOCKS,
        "registers": _by_registers(of, warps, registers),
        "shared memory": _by_shared(of, shared_bytes),
    }
    blocks = min(limits.values())
    limiting = tuple(name for name, limit in limits.items() if limit == blocks)
    return Occupancy(blocks, blocks * warps, blocks * warps / WARPS, limiting)


def limits_of(device: str | DeviceLimits) -> DeviceLimits:
    """A device of ``DEVICES`` by its name; raises MeshprepError for others."""
    if isinstance(device, DeviceLimits):
        return device
    check_choice("device", device, DEVICES)
    return DEVICES[device]


def _by_registers(device: DeviceLimits, warps: int, registers: int) -> int:
    per_warp = _round_up(registers * WARP, REGISTER_UNIT)
    # a launch is refused unless the block's warps fit when spread over all partitions alike
    if per_warp * _round_up(warps, device.partitions) > REGISTERS:
        return 0
    return REGISTERS // device.partitions // per_warp * device.partitions // warps


def _by_shared(device: DeviceLimits, shared_bytes: int) -> int:
    if shared_bytes > device.shared_per_block:
        return 0
    taken = _round_up(shared_bytes + device.shared_reserved, device.shared_unit)
    return device.shared // max(taken, 1)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _check(what: str, value: int, low: int, high: int | None) -> None:
    if value < low or (high is not None and value > high):
        bounds = f"{low} to {high}" if high is not None else f"at least {low}"
        raise MeshprepError(f"{what} is {value}, must be {bounds}")


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


def occupancy_share(found: VariantMetrics, assumptions: Assumptions) -> float | None:
    """Warps over the most that the device holds, when a block stages everything.

    None where blocks have more elements than a block may have threads, and for a CPU.
    """
    staged, size = found.staged_bytes.max, found.block_size
    if staged is None or found.target == "cpu" or size > MOST_THREADS:
        return None
    return occupancy(assumptions.device, size, assumptions.registers, staged).share


def cost_of(plan: Plan, times: Mapping[str, Measured]) -> Cost:
    """What this plan cost, and what it saves in calls of those of its loops that were timed."""
    seconds, loops = sum(plan.metrics.seconds.values()), plan.metrics.loops
    timed = [times[name] for name in loops if name in times]
    before, saved = sum(m.before.median for m in timed), sum(m.saved for m in timed)
    return Cost(seconds, before, saved, len(timed), len(loops))
