"""What a plan tells of itself: the figures of orders, of loops before and after, and seconds.

``plan.metrics.loops["edges->cells"].variants["s256"].after.reuse`` is a reuse factor. Solvers need
none of it. :mod:`meshprep.metrics` computes the figures, ``docs/reports.md`` says which are good.
"Older plans" below are files of version 1 from before a figure was known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import name_entries
from .records import IN_PLACE, LEFT_OUT, Record


@dataclass(frozen=True)
class Spread(Record):
    """Smallest, mean and largest of something over the blocks; None where there are no blocks."""

    min: int | None = None
    mean: float | None = None
    max: int | None = None


@dataclass(frozen=True)
class StagedBytes(Record):
    """Bytes that a block stages: every indirect dat of every staged point; None without blocks."""

    mean: float | None = None
    max: int | None = None


@dataclass(frozen=True)
class ThreadColourMetrics(Record):
    """Thread colours of a block, mean and largest; None where there are no blocks."""

    mean: float | None
    max: int | None = None
    # Mean of a lower bound: the largest number of the block's elements that write one point.
    bound_mean: float | None = None


@dataclass(frozen=True)
class UnitCount(Record):
    """Lines or sectors, mean a block and in total."""

    mean: float | None = None
    total: int | None = None


@dataclass(frozen=True)
class MemoryUnits(Record):
    """What the staged values of a block lie on, with dats that start on a line."""

    # Of 128 and of 32 bytes.
    lines: UnitCount = field(default_factory=UnitCount)
    sectors: UnitCount = field(default_factory=UnitCount)


@dataclass(frozen=True)
class SectorCounts(Record):
    """Sectors of 32 bytes that a call is predicted to move."""

    read: int
    written: int

    @property
    def total(self) -> int:
        """Read and written."""
        return self.read + self.written


@dataclass(frozen=True)
class SetReuse(Record):
    """How often what blocks load is used: over one to-set, or over all."""

    accesses: int  # entries of the loop's maps
    loads: int  # distinct points a block, summed over blocks
    reuse: float | None  # ``accesses / loads``, 1 at worst; None where nothing is indirect [S19]
    # Share of the loads whose point no other block touches, 0 to 1, 1 at best.
    exclusive_share: float | None = None


@dataclass(frozen=True)
class WarpEfficiency(Record):
    """The share of a warp's 32 lanes that work, 1 at best; None for an empty set [S19]."""

    # With an element a lane, only the last warp of a block has idle lanes.
    computing: float | None = None
    # A warp writes once for every thread colour among its elements, and only the lanes of that
    # colour work; as good as ``computing`` where no elements of a warp differ in colour.
    increments: float | None = None


@dataclass(frozen=True)
class Histogram(Record):
    """``blocks[i]`` blocks lie from ``width * bins[i]`` to less than ``width * (bins[i] + 1)``."""

    width: float  # 1 where numbers are whole
    bins: tuple[int, ...]  # ascending; empty bins are left out
    blocks: tuple[int, ...]

    def check(self) -> None:
        if not self.width:
            raise ValueError("width is 0")
        if len(self.bins) != len(self.blocks) or tuple(sorted({*self.bins})) != self.bins:
            raise ValueError("bins do not ascend, or are not as many as the blocks")


@dataclass(frozen=True)
class Histograms(Record):
    """Blocks by reuse factor, by staged points of all sets, and by thread colours.

    ``reuse`` is None where nothing is indirect; all are in older plans.
    """

    reuse: Histogram | None = field(default=None, metadata=LEFT_OUT)
    staged_points: Histogram | None = field(default=None, metadata=LEFT_OUT)
    thread_colours: Histogram | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True)
class PartitionMetrics(Record):
    """What cutting the blocks took; ``other`` holds notes of the partitioner's own."""

    # Blocks in several pieces; None where the partitioner does not tell.
    scattered: int | None = field(default=None, metadata=LEFT_OUT)
    # With the grouping of points; None where blocks were cut from those of another variant.
    seconds: float | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class VariantMetrics(Record):
    """The figures of a loop cut into blocks."""

    block_size: int  # the most elements of a block
    target: str = "gpu"  # {"gpu", "cpu"}
    partitioner: str
    # Whether the elements of a block stand in the order of their thread colours.
    sorted_by_colour: bool = False
    # True where blocks list their elements; None where they are ranges of the numbering.
    listed: bool | None = field(default=None, metadata=LEFT_OUT)
    # Of all sets together, as in :class:`SetReuse`.
    accesses: int
    loads: int
    reuse: float | None
    exclusive_share: float | None = None
    sets: Mapping[str, SetReuse] = field(default_factory=dict)  # by to-set name
    blocks: int
    least_blocks: int | None = None  # elements over block size, rounded up
    # Their quotient, 1 at best; None for a set without elements.
    blocks_over_least: float | None = None
    block_elements: Spread = field(default_factory=Spread)
    staged_bytes: StagedBytes = field(default_factory=StagedBytes)
    thread_colours: ThreadColourMetrics
    block_colours: int  # launches of a call
    block_colour_blocks: Spread = field(default_factory=Spread)  # blocks of a colour
    block_colour_sizes: tuple[int, ...] = ()  # blocks of each colour; empty in older plans
    warp_efficiency: WarpEfficiency = field(default_factory=WarpEfficiency)
    histograms: Histograms = field(default_factory=Histograms)
    # Of a call: all values that the loop reaches of every dat, those that are read and written
    # twice [S19]; None in older plans.
    useful_bytes: int | None = None
    # With the components of an element together, and with an array for each component.
    aos: MemoryUnits = field(default_factory=MemoryUnits)
    soa: MemoryUnits = field(default_factory=MemoryUnits)
    # By {"aos", "soa"}: of a call whose blocks stage everything, see
    # :func:`meshprep.metrics.traffic.traffic`; empty in older plans.
    traffic: Mapping[str, SectorCounts] = field(default_factory=dict)
    # None for the input order.
    partition: PartitionMetrics | None = field(default=None, metadata=LEFT_OUT)

    def check(self) -> None:
        divisors: dict[str, float | None] = {"block_size": self.block_size}
        if self.reuse is not None:
            divisors |= {"reuse": self.reuse, "loads": self.loads}
            divisors |= {"thread_colours/mean": self.thread_colours.mean}
            for layout, sectors in self.traffic.items():
                divisors[f"traffic/{layout}"] = sectors.total
        for name, value in divisors.items():
            if not value:
                raise ValueError(f"{name} is {value}")


@dataclass(frozen=True)
class BeforeAfter(Record):
    """A variant, and the input order cut into runs of its block size."""

    before: VariantMetrics | None  # None where the runs are too scattered to be staged
    after: VariantMetrics

    def check(self) -> None:
        if self.before and (self.before.reuse is None) != (self.after.reuse is None):
            raise ValueError("before, after: a reuse factor on one side only")


@dataclass(frozen=True)
@name_entries(variants="variant")
class LoopMetrics(Record):
    """The figures of a loop."""

    # By variant name.
    variants: Mapping[str, BeforeAfter] = field(default_factory=dict, metadata=IN_PLACE)


@dataclass(frozen=True)
class OrderFigures(Record):
    """The figures of one numbering of the points, elements following."""

    # Largest difference of two neighbours' numbers: 0 without neighbours, 1 for a chain in order,
    # n - 1 at worst.
    bandwidth: int
    # Sum over the points of the distance back to the smallest neighbour's number, 0 where that is
    # larger: 0 without neighbours, n - 1 for a chain in order, n (n - 1) / 2 at worst.
    profile: int
    # Root of the mean square, over the points i, of the number of points that have number i or more
    # and a neighbour (or themselves) of number i or less: 1 without neighbours, 2 at most for a
    # chain in order, n at worst.
    rms_wavefront: float
    # The 128-byte lines that each run of ``block_size`` consecutive elements touches, summed: what
    # blocks load that are cut from this order as it stands. At best the lines that all points take,
    # at worst one for every entry of the map.
    lines: int

    @property
    def cost(self) -> int:
        """Bandwidth times profile: small for an order that a loop streams through."""
        return self.bandwidth * self.profile


@dataclass(frozen=True)
class TriedOrder(Record):
    """A method that was looked at: its seconds and figures, or a ``note`` why it has none."""

    method: str
    seconds: float
    bandwidth: int | None = field(default=None, metadata=LEFT_OUT)
    profile: int | None = field(default=None, metadata=LEFT_OUT)
    rms_wavefront: float | None = field(default=None, metadata=LEFT_OUT)
    lines: int | None = field(default=None, metadata=LEFT_OUT)
    note: str | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True)
class OrderMetrics(Record):
    """The locality order of the points that a loop leads."""

    set: str  # the points
    target: str  # {"gpu", "cpu"}
    # What was asked for, and what was chosen.
    asked: str
    method: str
    applied: bool  # False where the order of the input was kept
    reason: str  # one sentence with the figures
    # Of the input's numbering and of the method's, applied or not.
    before: OrderFigures
    after: OrderFigures
    candidates: tuple[TriedOrder, ...]  # the best first
    # Of the numbering in the plan: after points were grouped by blocks; None without one.
    final: OrderFigures | None = field(default=None, metadata=LEFT_OUT)
    # Orders of parts that no chain of maps ties to these points; None in one of these.
    more: "tuple[OrderMetrics, ...] | None" = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True)
@name_entries(loops="loop", seconds="stage")
class Metrics(Record):
    """All figures of a plan."""

    # Of the first loop that leads; None where every set kept its order.
    locality: OrderMetrics | None = None
    loops: Mapping[str, LoopMetrics] = field(default_factory=dict)  # by loop name
    # By stage: what preparing took, files apart: ``"topology"``, ``"proof"`` and so on.
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def orders(self) -> tuple[OrderMetrics, ...]:
        """Every order of points, the first one first."""
        return (self.locality, *(self.locality.more or ())) if self.locality else ()

    def sides(self) -> tuple[BeforeAfter, ...]:
        """Every variant of every loop."""
        return tuple(s for loop in self.loops.values() for s in loop.variants.values())
