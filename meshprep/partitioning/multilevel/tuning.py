"""Parameters of the multilevel search, and the presets fast, default and strong.

Scratch sizes of kernels, and thresholds that recognise a kind of mesh, are constants of the
modules that use them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

# Elements of a group of blocks that is annealed on its own: a group of this size fits a
# cache.
GROUP_SIZE = 120_000


@dataclass(frozen=True)
class Phase:
    """How a level is annealed.

    Prices and temperatures are in points of typical weight; pairs are the values of the
    first and of the last sweep.
    """

    # Number of sweeps at the default effort.
    sweeps: float
    # Number of times that blocks are grouped anew, at the default effort.
    groupings: int
    # Share of the sweeps after which the last temperature and pull hold.
    settled: float
    temperature: tuple[float, float]
    # Price of a facet between two blocks.
    facet: float
    # Share of its cap by which a block may be over it.
    excess: tuple[float, float]
    # Price of the squared distance from a block's centroid, whose mean is 1.
    pull: tuple[float, float]
    # Price of an element over the cap, in points that an element loads.
    over: tuple[float, float]
    # Rise of the pressure on a block in a sweep, for each cap by which it is fuller than
    # the mean.
    rate: float = 0.0
    # Elements of a group.
    group: int = GROUP_SIZE

    def hotter(self, factor: float) -> Phase:
        """The phase with its temperatures multiplied by a factor."""
        first, last = self.temperature
        return replace(self, temperature=(factor * first, factor * last))

    def longer(self, factor: float) -> Phase:
        """The phase with its sweeps multiplied by a factor."""
        return replace(self, sweeps=factor * self.sweeps)

    def end(self, share: float) -> Phase:
        """The last share of the phase; it begins with the values that hold at that time."""

        def end(values: tuple[float, float]) -> tuple[float, float]:
            first, last = values
            return last + share * (first - last), last

        return replace(
            self.longer(share),
            groupings=1,
            temperature=end(self.temperature),
            excess=end(self.excess),
            pull=end(self.pull),
            over=end(self.over),
        )


# Rise of the pressure in all phases that even the sizes of blocks.
_RATE = 0.4
# Single elements in space.
_ELEMENTS = Phase(
    sweeps=44,
    groupings=2,
    settled=0.9,
    temperature=(0.55, 0.08),
    facet=0.36,
    excess=(0.03, 0.0),
    pull=(0.3, 0.0),
    over=(0.6, 3.0),
    rate=_RATE,
)
# Clusters in space, from the largest to the smallest.
_CLUSTERS = (
    Phase(
        sweeps=20,
        groupings=2,
        settled=1.0,
        temperature=(3.0, 1.1),
        facet=0.25,
        excess=(0.2, 0.1),
        pull=(5.0, 1.0),
        over=(0.6, 0.6),
        rate=_RATE,
    ),
    Phase(
        sweeps=22,
        groupings=2,
        settled=1.0,
        temperature=(2.4, 0.5),
        facet=0.25,
        excess=(0.1, 0.08),
        pull=(4.0, 0.5),
        over=(0.6, 0.7),
        rate=_RATE,
    ),
    Phase(
        sweeps=20,
        groupings=2,
        settled=1.0,
        temperature=(0.95, 0.33),
        facet=0.25,
        excess=(0.04, 0.01),
        pull=(1.0, 0.5),
        over=(1.0, 2.0),
        rate=_RATE,
    ),
)
# Single elements in a plane.
_PLANE_ELEMENTS = replace(
    _ELEMENTS, sweeps=80, temperature=(0.45, 0.12), facet=0.3, pull=(0.45, 0.0)
)
# Edges between the cells of a plane.
_PLANE_EDGES = replace(_PLANE_ELEMENTS, sweeps=56, temperature=(0.33, 0.12))


@dataclass(frozen=True)
class SearchTuning:
    """Parameters of a search; the defaults of the fields are the preset ``default``."""

    # Multiplies the sweeps; groupings, and the price of the cap up to twice, grow with its
    # square root, and the rate of pressure falls with it.
    effort: float = 1.0

    # Phases
    # Single elements in space, and the three levels of clusters above them, smallest last;
    # levels above these are annealed as the largest.
    elements: Phase = _ELEMENTS
    clusters: tuple[Phase, Phase, Phase] = _CLUSTERS
    # The same in a plane. Sweeps cost less there, since few elements are at a border.
    plane_elements: Phase = _PLANE_ELEMENTS
    plane_clusters: tuple[Phase, Phase, Phase] = (
        _CLUSTERS[0],
        replace(_CLUSTERS[1], sweeps=40),
        _CLUSTERS[2],
    )
    # Edges between the cells of a plane. An edge whose cells lie in different blocks costs
    # the same in either; at high temperature most accepted moves are of this kind.
    plane_edges: Phase = _PLANE_EDGES
    # Refinement of the blocks of another partitioner.
    from_others: Phase = Phase(
        sweeps=8,
        groupings=2,
        settled=0.9,
        temperature=(0.25, 0.0),
        facet=0.3,
        excess=(0.02, 0.0),
        pull=(0.0, 0.0),
        over=(0.6, 3.0),
    )
    # Refinement after forced moves have brought blocks under the cap.
    mended: Phase = Phase(
        sweeps=12,
        groupings=2,
        settled=0.9,
        temperature=(0.35, 0.05),
        facet=0.3,
        excess=(0.02, 0.0),
        pull=(0.0, 0.0),
        over=(0.6, 3.0),
        rate=_RATE,
    )
    # Blocks that follow the lines of a grid: in a plane, and in space.
    along_lines: tuple[Phase, Phase] = (
        Phase(
            sweeps=9,
            groupings=1,
            settled=0.9,
            temperature=(0.15, 0.0),
            facet=0.15,
            excess=(0.03, 0.0),
            pull=(0.4, 0.0),
            over=(0.6, 3.0),
        ),
        Phase(
            sweeps=60,
            groupings=2,
            settled=0.9,
            temperature=(0.4, 0.04),
            facet=0.15,
            excess=(0.03, 0.0),
            pull=(0.4, 0.0),
            over=(0.6, 3.0),
        ),
    )

    # Levels
    # Size of a block over that of the largest clusters.
    block_to_cluster: float = 6.4
    # Size of clusters over that of the clusters one level below.
    level_ratio: float = 3.3
    # Elements of the smallest clusters, at least.
    least_cluster: float = 2.8
    # Factor of the temperature for each level that small blocks lack.
    cooler: float = 0.75

    # Sweeps
    # Edges with at most this many neighbours on average are edges between cells; with more,
    # edges between nodes.
    edge_neighbours: int = 6
    # A plane with more blocks than this gets more sweeps, by the power below of the ratio,
    many_blocks: int = 400
    many_blocks_power: float = 0.3
    # and at most this factor.
    most_times: float = 2.0
    # Powers of an effort above 1 by which sweeps grow: in a plane,
    plane_power: float = 0.85
    # and in space: of elements and the smallest clusters, and of larger clusters.
    space_powers: tuple[float, float] = (1.27, 0.9)
    # In space, the first of these grows by this times ln(blocks / many_blocks),
    power_by_blocks: float = 0.067
    # up to this bound.
    highest_power: float = 1.4
    # In space, both are reduced by this times ln(points per element / 4).
    power_by_points: float = 0.48
    # All powers are reduced by this times ln(elements per block / usual_block): in a plane,
    # and in space,
    power_by_size: tuple[float, float] = (0.1, 0.2)
    usual_block: int = 256
    # down to this bound.
    lowest_power: float = 0.5
    # Sweeps at the end that accept only gains.
    cold_sweeps: int = 4
    # A phase of elements with at least this many sweeps anneals their corners first.
    worth_corners: int = 16
    # Shares of the sweeps with corners alone, and with all points at the end.
    with_corners: float = 0.6
    with_all: float = 0.3

    # Groups
    # Elements of a group in space. A short search groups a level once, so its groups are
    # larger: in smaller ones half of the blocks would be at a rim.
    space_group: int = GROUP_SIZE
    # Meshes of at most this many elements are one group,
    lone_group: int = 40_000
    # and of this many where there are blocks for two groups. A long search lowers it, so
    # that two threads take half of the time.
    lone_group_of_many: int = 40_000
    # Blocks of a group, at least: of fewer, most would be at its rim.
    group_blocks: int = 16
    # Factor of the groupings where a mesh of at most `lone_group` elements has several
    # groups.
    more_groupings: int = 2
    # Sweeps over a lone group between two reports of progress.
    report_sweeps: int = 100

    # Prices
    # The unit of temperatures is a point, or this times the points that an element loads
    # where that is more.
    heat: float = 1.2
    # Most that an element over the cap costs, in units of the temperature.
    most_over: float = 0.5
    # Points that a move from the fullest block to an empty one gains. Less lets graded
    # meshes fill some regions to the cap, and more costs reuse elsewhere.
    even: float = 0.7
    # Factor of the pull where graph distances stand in for coordinates: these are right on
    # the whole, but not nearby.
    pull_guessed: float = 0.4
    # Pressure at which the pull is half: a few times the pressure that chance adds up to.
    halved: float = 0.3
    # Clusters of a block that are sampled for its centroid and the width of its elements.
    sampled: int = 24

    # Starts
    # Several starts are annealed on levels of at most this many clusters.
    start_clusters: int = 3000
    # Graph distances are tried as coordinates if at least this share of the blocks of a
    # start is in pieces,
    torn: float = 0.2
    # and taken if their blocks load less than this share of the points.
    worth_guessing: float = 0.99
    # Factor of the sweeps of a plane after that, since finding distances took time.
    after_distances: float = 0.75
    # The trial without pull: blocks of a group,
    trial_blocks: int = 32
    # sweeps at most,
    trial_sweeps: int = 20
    # positions of its two groups among all,
    trial_groups: tuple[float, float] = (0.25, 0.75)
    # and the ratio of gains up to which a difference is chance.
    trial_chance: float = 1.1

    # Candidates and balancing
    # Share of the loads by which bricks or bisection must be ahead for the other to be left
    # out: annealing gains at most this much.
    far_ahead: float = 0.015
    # Blocks up to which plain bisection is a candidate.
    few_blocks: int = 32
    # Whether blocks along the lines of a grid are also annealed with the default effort: a
    # long search at the same temperature can dissolve them.
    also_short: bool = False
    # Rounds of reconnecting.
    reunions: int = 3
    # One block of this many may stay in pieces.
    blocks_per_fragmented: int = 200
    # Factor of the loads that reconnecting may cost before blocks are annealed again, or
    # stay in pieces.
    worth_healing: float = 1.003

    @classmethod
    def of(cls, effort: float) -> SearchTuning:
        """The preset of the range that an effort is in, with this effort."""
        if effort >= LONG_SEARCH:
            preset = "strong"
        elif effort < 1.0:
            preset = "fast"
        else:
            preset = "default"
        return replace(PRESETS[preset], effort=effort)


# Efforts from this on have the parameters of the preset ``strong``.
LONG_SEARCH = 4.0
PRESETS = {
    "fast": SearchTuning(effort=0.3, space_group=250_000),
    "default": SearchTuning(),
    "strong": SearchTuning(effort=8.0, lone_group_of_many=8_000, also_short=True),
}
