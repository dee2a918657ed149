"""How every level is annealed: how often, how hot, and at what prices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ....kernels.arithmetic import log, power
from ..levels import Level

# Elements of a group. Larger groups have fewer blocks at their rims, which stay as they are for a
# phase; smaller ones fit a cache. Their number is even, for machines with few cores. A short search
# groups a level once: in space half of its blocks would be at a rim, so its groups are larger.
GROUP_ELEMENTS, SHORT_SPACE_GROUP = 120_000, 250_000


@dataclass(frozen=True)
class Phase:
    """How one level is annealed: sweeps, in how many groupings; first and last values.

    As of :class:`groups.AnnealingSchedule`; ``over`` counts the points that an element loads.
    ``rate`` is in points an element; of more sweeps, each counts less. Blocks that begin well, of
    unequal sizes, have no pressure to be equal. A ``group`` has about so many elements.
    """

    sweeps: float
    groupings: int
    settled: float
    temperature: tuple[float, float]
    facet: float
    excess: tuple[float, float]
    pull: tuple[float, float]
    over: tuple[float, float]
    rate: float = 0.0
    group: int = GROUP_ELEMENTS

    def hotter(self, times: float) -> Phase:
        """The same at other temperatures."""
        first, last = self.temperature
        return replace(self, temperature=(times * first, times * last))

    def longer(self, times: float) -> Phase:
        """The same in more sweeps."""
        return replace(self, sweeps=times * self.sweeps)

    def end(self, share: float) -> Phase:
        """The last share of it, with the values that it has come to by then."""

        def end(values: tuple[float, float]) -> tuple[float, float]:
            first, last = values
            return last + share * (first - last), last

        return replace(
            self.longer(share), groupings=1, temperature=end(self.temperature),
            excess=end(self.excess), pull=end(self.pull), over=end(self.over),
        )  # fmt: skip


# What pressure rises by in a sweep of the default effort where a block is over the mean by its cap.
RATE = 0.4
# Single elements, then ever larger clusters; all levels above these are annealed as the largest.
ELEMENTS = Phase(44, 2, 0.9, (0.55, 0.08), 0.36, (0.03, 0.0), (0.3, 0.0), (0.6, 3.0), RATE)
CLUSTERS = (
    Phase(20, 2, 1.0, (3.0, 1.1), 0.25, (0.2, 0.1), (5.0, 1.0), (0.6, 0.6), RATE),
    Phase(22, 2, 1.0, (2.4, 0.5), 0.25, (0.1, 0.08), (4.0, 0.5), (0.6, 0.7), RATE),
    Phase(20, 2, 1.0, (0.95, 0.33), 0.25, (0.04, 0.01), (1.0, 0.5), (1.0, 2.0), RATE),
)
# In a plane few elements are at a border: sweeps cost less, and there are more of them.
PLANE_ELEMENTS = replace(ELEMENTS, sweeps=80, temperature=(0.45, 0.12), facet=0.3, pull=(0.45, 0.0))
PLANE_CLUSTERS = (CLUSTERS[0], replace(CLUSTERS[1], sweeps=40), CLUSTERS[2])
# An edge between cells of two blocks may be in either for nothing: while hot, most moves are such.
# It has at most so many neighbours, those between nodes more.
EDGE_NEIGHBOURS = 6
PLANE_EDGES = replace(PLANE_ELEMENTS, sweeps=56, temperature=(0.33, 0.12))
# Of more blocks than these a plane gets more sweeps, by this power, up to so many times as many.
MANY_BLOCKS, BLOCKS_POWER, MOST_TIMES = 400, 0.3, 2.0
# A long search goes on gaining in space, and less so in a plane: its sweeps grow with these powers
# of the effort, the second ones for all but elements and the smallest clusters. The first one is
# higher where there are many blocks in space, by so much for each e times as many, up to a bound;
# all are lower where a sweep takes longer, by so much for each e times as many points as four. In a
# plane and in space they are lower for blocks larger than USUAL, which METIS cuts in less time.
PLANE_POWER, SPACE_POWERS, HIGHER, HIGHEST = 0.85, (1.27, 0.9), 0.067, 1.4
LOWER, LOWEST, USUAL, LOWER_IF_LARGE = 0.48, 0.5, 256, (0.1, 0.2)
# Blocks so small that there are fewer levels have smaller clusters: how much cooler, a level.
COOLER = 0.75
# Elements with corners have these shares of their sweeps with the corners alone and at the end.
WITH_CORNERS, WITH_ALL = 0.6, 0.3
# From blocks of another partitioner.
OTHER = Phase(8, 2, 0.9, (0.25, 0.0), 0.3, (0.02, 0.0), (0.0, 0.0), (0.6, 3.0))
# From blocks that were brought under the cap by moves that nobody weighed against others.
MENDED = Phase(12, 2, 0.9, (0.35, 0.05), 0.3, (0.02, 0.0), (0.0, 0.0), (0.6, 3.0), RATE)
# From blocks that follow the lines of a grid already, of a plane or of space.
GRIDS = (
    Phase(9, 1, 0.9, (0.15, 0.0), 0.15, (0.03, 0.0), (0.4, 0.0), (0.6, 3.0)),
    Phase(60, 2, 0.9, (0.4, 0.04), 0.15, (0.03, 0.0), (0.4, 0.0), (0.6, 3.0)),
)


def phases(
    levels: Sequence[Level], d: int, effort: float, n_blocks: int
) -> list[tuple[Level, Phase]]:
    """How each level is annealed, from the largest clusters to elements.

    A move of larger clusters changes more of a border, which grows with the power (d - 1) / d of
    their size: the temperature rises with it.
    """
    elements, more = ELEMENTS, 1.0
    clusters: tuple[Phase, ...] = CLUSTERS
    many = max(1.0, n_blocks / MANY_BLOCKS)
    if d == 2:
        elements, clusters = PLANE_ELEMENTS, PLANE_CLUSTERS
        if _between_cells(levels[0]):
            elements = PLANE_EDGES
        more = min(MOST_TIMES, power(many, BLOCKS_POWER))
    elif effort < 1.0:
        elements = replace(elements, group=SHORT_SPACE_GROUP)
        clusters = tuple(replace(phase, group=SHORT_SPACE_GROUP) for phase in clusters)
    powers = _powers(levels[0], d, n_blocks)
    times = [more * power(max(1.0, effort), by - 1.0) for by in powers]
    top = min(len(levels) - 1, len(clusters))
    usual, fewer = levels[top].weight.size, math.prod([COOLER] * (len(clusters) - top))
    found = [(levels[0], elements.longer(times[0]))]
    for k, level in enumerate(levels[1:], start=1):
        growth = fewer * power(max(1.0, usual / level.weight.size), (d - 1) / d)
        found.append((level, clusters[max(0, top - k)].hotter(growth).longer(times[k > 1])))
    return found[::-1]


def in_two(corners: Level, phase: Phase, elements: Level) -> list[tuple[Level, Phase]]:
    """The phase of elements, first with their corners alone, and in the end with all points."""
    return [(corners, phase.longer(WITH_CORNERS)), (elements, phase.end(WITH_ALL))]


def _powers(elements: Level, d: int, n_blocks: int) -> tuple[float, float]:
    """By which the sweeps of small and of larger clusters grow with a long effort."""
    n = max(1, elements.weight.size)
    lower = LOWER_IF_LARGE[d > 2] * log(max(1.0, n / n_blocks / USUAL))
    powers = PLANE_POWER, PLANE_POWER
    if d != 2:
        lower += LOWER * log(max(1.0, elements.points.size / n / 4.0))
        higher = HIGHER * log(max(1.0, n_blocks / MANY_BLOCKS))
        powers = min(HIGHEST, SPACE_POWERS[0] + higher), SPACE_POWERS[1]
    return max(LOWEST, powers[0] - lower), max(LOWEST, powers[1] - lower)


def _between_cells(elements: Level) -> bool:
    """Whether elements are edges between two cells of a plane, rather than between nodes."""
    n = elements.weight.size
    return elements.points.size <= 2 * n and elements.neighbours.size <= EDGE_NEIGHBOURS * n
