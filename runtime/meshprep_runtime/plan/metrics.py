"""The figures of a plan: of orders, of loops before and after, and seconds of each stage.

``plan.metrics.loops["edges->cells"].variants["s256"].after.reuse`` is a reuse factor.
Solvers do not need them. :mod:`meshprep.metrics` computes the figures; ``docs/reports.md``
says which are good. "Older plans" below are files of version 1 that were written before a
figure was added.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import name_entries
from .records import IN_PLACE, LEFT_OUT, Record


@dataclass(frozen=True)
class Spread(Record):
    """The smallest, mean and largest value over the blocks; None without blocks."""

    min: int | None = None
    mean: float | None = None
    max: int | None = None


@dataclass(frozen=True)
class StagedBytes(Record):
    """Bytes that a block stages, of all indirect dats; None without blocks."""

    mean: float | None = None
    max: int | None = None


@dataclass(frozen=True)
class ThreadColourMetrics(Record):
    """Thread colours of a block: mean, largest, and mean of a lower bound.

    The bound is the largest number of elements of the block that write one point. None
    without blocks.
    """

    mean: float | None
    max: int | None = None
    bound_mean: float | None = None


@dataclass(frozen=True)
class UnitCount(Record):
    """Lines or sectors: the mean of a block, and the total."""

    mean: float | None = None
    total: int | None = None


@dataclass(frozen=True)
class MemoryUnits(Record):
    """Lines of 128 bytes, and sectors of 32, that hold the staged values of a block.

    The dats are assumed to start on a line.
    """

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
    """The reuse of the points that blocks load, of one to-set or of all [S19]."""

    # Entries of the loop's maps.
    accesses: int
    # Distinct points of a block, summed over the blocks.
    loads: int
    # ``accesses / loads``, 1 at worst; None where nothing is indirect.
    reuse: float | None
    # The share of loads whose point no other block touches, from 0 to 1, 1 at best.
    exclusive_share: float | None = None


@dataclass(frozen=True)
class WarpEfficiency(Record):
    """The share of a warp's 32 lanes that work, 1 at best; None for an empty set [S19]."""

    # While computing: only the last warp of a block has idle lanes.
    computing: float | None = None
    # While writing: a warp writes once for every thread colour among its elements, and only
    # the lanes of that colour work. Equal to ``computing`` where each warp has one colour.
    increments: float | None = None


@dataclass(frozen=True)
class Histogram(Record):
    """Numbers of blocks by the value of a figure.

    ``blocks[i]`` blocks have values from ``width * bins[i]`` to less than ``width *
    (bins[i] + 1)``. Bins ascend, and empty ones are left out; whole numbers have width 1.
    """

    width: float
    bins: tuple[int, ...]
    blocks: tuple[int, ...]

    def check(self) -> None:
        if not self.width:
            raise ValueError("width is 0")
        if len(self.bins) != len(self.blocks) or tuple(sorted({*self.bins})) != self.bins:
            raise ValueError("bins do not ascend, or are not as many as the blocks")


@dataclass(frozen=True)
class Histograms(Record):
    """Blocks by reuse factor, by staged points of all sets, and by thread colours.

    ``reuse`` is None where nothing is indirect; in older plans all three are None.
    """

    reuse: Histogram | None = field(default=None, metadata=LEFT_OUT)
    staged_points: Histogram | None = field(default=None, metadata=LEFT_OUT)
    thread_colours: Histogram | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True)
class PartitionMetrics(Record):
    """The figures of cutting the blocks; ``other`` holds notes of the partitioner."""

    # Blocks in several pieces; None where the partitioner does not count them.
    scattered: int | None = field(default=None, metadata=LEFT_OUT)
    # Including the grouping of points; None for blocks cut from those of another variant.
    seconds: float | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class VariantMetrics(Record):
    """The figures of a loop cut into blocks."""

    # The most elements of a block.
    block_size: int
    # "gpu" or "cpu".
    target: str = "gpu"
    partitioner: str
    # True where the elements of a block are in the order of their thread colours.
    sorted_by_colour: bool = False
    # True where blocks list their elements; None where they are ranges of the numbering.
    listed: bool | None = field(default=None, metadata=LEFT_OUT)
    # Of all sets together, as in :class:`SetReuse`.
    accesses: int
    loads: int
    reuse: float | None
    exclusive_share: float | None = None
    # By to-set name.
    sets: Mapping[str, SetReuse] = field(default_factory=dict)
    blocks: int
    # Elements divided by the block size, rounded up.
    least_blocks: int | None = None
    # ``blocks / least_blocks``, 1 at best; None for a set without elements.
    blocks_over_least: float | None = None
    block_elements: Spread = field(default_factory=Spread)
    staged_bytes: StagedBytes = field(default_factory=StagedBytes)
    thread_colours: ThreadColourMetrics
    # Launches of one call.
    block_colours: int
    # Blocks of a colour.
    block_colour_blocks: Spread = field(default_factory=Spread)
    # Blocks of each colour; empty in older plans.
    block_colour_sizes: tuple[int, ...] = ()
    warp_efficiency: WarpEfficiency = field(default_factory=WarpEfficiency)
    histograms: Histograms = field(default_factory=Histograms)
    # Of a call: all values that the loop reaches of every dat, those that are read and
    # written twice [S19]; None in older plans.
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
    """The figures of a variant, and of the input order cut into runs of its block size."""

    # None where the points of the runs are too many to be staged.
    before: VariantMetrics | None
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
    """The figures of one numbering of the points; elements follow their points."""

    # The largest difference of the numbers of two neighbours: 0 without neighbours, 1 for a
    # chain in order, n - 1 at worst.
    bandwidth: int
    # The sum over the points of the difference to the smallest number of a neighbour, 0
    # where that is larger: 0 without neighbours, n - 1 for a chain in order, n (n - 1) / 2
    # at worst.
    profile: int
    # The root of the mean square, over the points i, of the number of points that have
    # number i or more and a neighbour (or themselves) of number i or less: 1 without
    # neighbours, at most 2 for a chain in order, n at worst.
    rms_wavefront: float
    # The 128-byte lines that runs of ``block_size`` consecutive elements touch, summed over
    # the runs: the loads of blocks that are cut from this order. At best the lines of all
    # points, at worst one for every entry of the map.
    lines: int

    @property
    def cost(self) -> int:
        """Bandwidth times profile: small for an order that a loop streams through."""
        return self.bandwidth * self.profile


@dataclass(frozen=True)
class TriedOrder(Record):
    """A method that was tried: its seconds and figures, or a ``note`` why it has none."""

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

    # The set of the points.
    set: str
    # "gpu" or "cpu".
    target: str
    # The method of the options, and the one that was chosen.
    asked: str
    method: str
    # False where the order of the input was kept.
    applied: bool
    # One sentence with the figures.
    reason: str
    # Of the numbering of the input, and of the method, also where it is not applied.
    before: OrderFigures
    after: OrderFigures
    # The best first.
    candidates: tuple[TriedOrder, ...]
    # Of the numbering in the plan, after points were grouped by blocks; None where they
    # were not.
    final: OrderFigures | None = field(default=None, metadata=LEFT_OUT)
    # The orders of sets that no chain of maps joins to these points; None in their own.
    more: "tuple[OrderMetrics, ...] | None" = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True)
@name_entries(loops="loop", seconds="stage")
class Metrics(Record):
    """All figures of a plan."""

    # Of the first leading loop; None where every set kept its order.
    locality: OrderMetrics | None = None
    # By loop name.
    loops: Mapping[str, LoopMetrics] = field(default_factory=dict)
    # Seconds of each stage, such as ``"topology"`` or ``"proof"``, without reading and
    # writing files.
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def orders(self) -> tuple[OrderMetrics, ...]:
        """Every order of points, the first one first."""
        if self.locality:
            return (self.locality, *(self.locality.more or ()))
        return ()

    def sides(self) -> tuple[BeforeAfter, ...]:
        """Every variant of every loop."""
        sides: list[BeforeAfter] = []
        for loop in self.loops.values():
            sides += loop.variants.values()
        return tuple(sides)
