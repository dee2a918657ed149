"""Every parameter of the search that a preset may vary, and the presets fast, default, strong.

Scratch sizes of kernels and thresholds that tell what a mesh is stay beside the code that has them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

# Elements of a group of blocks that is annealed on its own, as it fits a cache.
GROUP_SIZE = 120_000


@dataclass(frozen=True)
class Phase:
    """How a level is annealed: values of the first and last sweep, in points of typical weight."""

    sweeps: float  # at the default effort
    groupings: int  # how often blocks are grouped anew, at the default effort
    settled: float  # share of the sweeps after which the last temperature and pull hold
    temperature: tuple[float, float]
    facet: float  # price of a facet between two blocks
    excess: tuple[float, float]  # share of its cap by which a block may be over it
    pull: tuple[float, float]  # price of the squared distance from a block's centroid, mean 1
    over: tuple[float, float]  # price of an element over the cap, times the points it loads
    rate: float = 0.0  # rise of the pressure on a block in a sweep, for each cap over the mean
    group: int = GROUP_SIZE  # elements

    def hotter(self, times: float) -> Phase:
        """The phase with its temperatures multiplied."""
        first, last = self.temperature
        return replace(self, temperature=(times * first, times * last))

    def longer(self, times: float) -> Phase:
        """The phase with its sweeps multiplied."""
        return replace(self, sweeps=times * self.sweeps)

    def end(self, share: float) -> Phase:
        """The last share of the phase, which begins with the values reached by then."""

        def end(values: tuple[float, float]) -> tuple[float, float]:
            first, last = values
            return last + share * (first - last), last

        return replace(
            self.longer(share), groupings=1, temperature=end(self.temperature),
            excess=end(self.excess), pull=end(self.pull), over=end(self.over),
        )  # fmt: skip


_RATE = 0.4
_ELEMENTS = Phase(44, 2, 0.9, (0.55, 0.08), 0.36, (0.03, 0.0), (0.3, 0.0), (0.6, 3.0), _RATE)
_CLUSTERS = (
    Phase(20, 2, 1.0, (3.0, 1.1), 0.25, (0.2, 0.1), (5.0, 1.0), (0.6, 0.6), _RATE),
    Phase(22, 2, 1.0, (2.4, 0.5), 0.25, (0.1, 0.08), (4.0, 0.5), (0.6, 0.7), _RATE),
    Phase(20, 2, 1.0, (0.95, 0.33), 0.25, (0.04, 0.01), (1.0, 0.5), (1.0, 2.0), _RATE),
)
_PLANE_ELEMENTS = replace(
    _ELEMENTS, sweeps=80, temperature=(0.45, 0.12), facet=0.3, pull=(0.45, 0.0)
)
_PLANE_EDGES = replace(_PLANE_ELEMENTS, sweeps=56, temperature=(0.33, 0.12))


@dataclass(frozen=True)
class SearchTuning:
    """Parameters of a search; field defaults make the preset ``default``."""

    # Multiplies the sweeps; groupings, and the price of the cap up to twice, grow with its square
    # root, and the rate of pressure falls with it.
    effort: float = 1.0

    # Phases.
    # Single elements in space, and the three levels of clusters above them, smallest last; levels
    # above these are annealed as the largest.
    elements: Phase = _ELEMENTS
    clusters: tuple[Phase, Phase, Phase] = _CLUSTERS
    # The same in a plane, where few elements are at a border: sweeps cost less.
    plane_elements: Phase = _PLANE_ELEMENTS
    plane_clusters: tuple[Phase, Phase, Phase] = (
        _CLUSTERS[0], replace(_CLUSTERS[1], sweeps=40), _CLUSTERS[2],
    )  # fmt: skip
    # Edges between the cells of a plane. An edge whose cells lie in different blocks costs the same
    # in either; at high temperature most accepted moves are of this kind.
    plane_edges: Phase = _PLANE_EDGES
    # Blocks of another partitioner.
    from_others: Phase = Phase(8, 2, 0.9, (0.25, 0.0), 0.3, (0.02, 0.0), (0.0, 0.0), (0.6, 3.0))
    # Blocks that moves have brought under the cap, whatever they cost.
    mended: Phase = Phase(12, 2, 0.9, (0.35, 0.05), 0.3, (0.02, 0.0), (0.0, 0.0), (0.6, 3.0), _RATE)
    # Blocks that follow the lines of a grid, of a plane and of space.
    along_lines: tuple[Phase, Phase] = (
        Phase(9, 1, 0.9, (0.15, 0.0), 0.15, (0.03, 0.0), (0.4, 0.0), (0.6, 3.0)),
        Phase(60, 2, 0.9, (0.4, 0.04), 0.15, (0.03, 0.0), (0.4, 0.0), (0.6, 3.0)),
    )

    # Levels.
    # Size ratio of block to largest cluster, and of level to level.
    block_to_cluster: float = 6.4
    level_ratio: float = 3.3
    # Elements of the smallest clusters, at least.
    least_cluster: float = 2.8
    # Times the temperature for each level that small blocks lack.
    cooler: float = 0.75

    # Sweeps.
    # More neighbours of an edge than these, on average, tell edges between nodes from those
    # between cells.
    edge_neighbours: int = 6
    # From so many blocks on a plane gets more sweeps: the ratio to this power, up to so many times.
    many_blocks: int = 400
    many_blocks_power: float = 0.3
    most_times: float = 2.0
    # Powers of an effort above 1 by which sweeps grow: in a plane; in space of elements and the
    # smallest clusters, and of larger clusters.
    plane_power: float = 0.85
    space_powers: tuple[float, float] = (1.27, 0.9)
    # What the first power gains in space for each e times as many blocks, and its bound.
    power_by_blocks: float = 0.067
    highest_power: float = 1.4
    # What powers lose in space for each e times as many points of an element as four; and for each
    # e times as many elements of a block as `usual_block`, in a plane and in space; and the bound.
    power_by_points: float = 0.48
    power_by_size: tuple[float, float] = (0.1, 0.2)
    usual_block: int = 256
    lowest_power: float = 0.5
    # Sweeps at the end that accept gains alone.
    cold_sweeps: int = 4
    # Sweeps of elements from which on their corners are annealed first, and the shares of the
    # sweeps with corners alone and, at the end, with all points.
    worth_corners: int = 16
    with_corners: float = 0.6
    with_all: float = 0.3

    # Groups.
    # Elements of a group in space. A short search groups a level once, so its groups are larger:
    # half of the blocks would be at a rim.
    space_group: int = GROUP_SIZE
    # Elements that are one group; and where there are blocks for two groups. In a long search
    # fewer are, so that two threads take half of the time.
    lone_group: int = 40_000
    lone_group_of_many: int = 40_000
    # Blocks of a group, at least: of fewer, most would be at its rim.
    group_blocks: int = 16
    # Times the groupings of meshes of at most `lone_group` elements that are several groups.
    more_groupings: int = 2
    # Sweeps over a lone group between two reports of progress.
    report_sweeps: int = 100

    # Prices.
    # Temperatures are in points, or in this times the points that an element loads if more.
    heat: float = 1.2
    # Most that an element over the cap costs, in temperatures.
    most_over: float = 0.5
    # Points that a move from the fullest block to an empty one gains. Less lets graded meshes fill
    # some regions to the cap, and more costs reuse elsewhere.
    even: float = 0.7
    # Times the pull where places stand in for real ones: they are right on the whole alone.
    pull_guessed: float = 0.4
    # Pressure at which the pull is half: a few times what chance adds up to.
    halved: float = 0.3
    # Clusters of a block that are sampled for its centroid and the width of its elements.
    sampled: int = 24

    # Starts.
    # Clusters of the levels on which several starts are annealed.
    start_clusters: int = 3000
    # Share of the blocks of a start in pieces from which on graph distances are tried as places;
    # they are taken if they load less than this share.
    torn: float = 0.2
    worth_guessing: float = 0.99
    # Times the sweeps of a plane after that, since finding distances took time.
    after_distances: float = 0.75
    # The trial without pull: blocks of a group, most sweeps, positions of its two groups, and the
    # ratio of gains that is chance.
    trial_blocks: int = 32
    trial_sweeps: int = 20
    trial_groups: tuple[float, float] = (0.25, 0.75)
    trial_chance: float = 1.1

    # Candidates and mending.
    # Share of the loads by which bricks or bisection must be ahead for the other to be left out:
    # annealing gains so much at most.
    far_ahead: float = 0.015
    # Blocks up to which plain bisection is a candidate.
    few_blocks: int = 32
    # Whether blocks along the lines of a grid are also annealed as by default: a long search at the
    # same temperature can dissolve them.
    also_short: bool = False
    # Rounds of reconnecting; one block of so many may stay in pieces.
    reunions: int = 3
    blocks_per_fragmented: int = 200
    # Times the loads that mending may cost before blocks are annealed again, or stay in pieces.
    worth_healing: float = 1.003

    @classmethod
    def of(cls, effort: float) -> SearchTuning:
        """The preset of the range that this effort is in, with this effort."""
        preset = "strong" if effort >= LONG_SEARCH else "fast" if effort < 1.0 else "default"
        return replace(PRESETS[preset], effort=effort)


# From this effort on a search is long.
LONG_SEARCH = 4.0
PRESETS = {
    "fast": SearchTuning(effort=0.3, space_group=250_000),
    "default": SearchTuning(),
    "strong": SearchTuning(effort=8.0, lone_group_of_many=8_000, also_short=True),
}
