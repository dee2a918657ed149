"""Blocks filled up to their cap of bytes: elements move where points are saved and fit.

The search evens the numbers of elements, but a cap of bytes counts points, and the fullest
block decides. Blocks of equal size differ by several per cent in their points; in meshlets
of 64 points that room is a tenth of all blocks. Here blocks that stage too much pay for it,
and those with room take elements until all stage nearly the same: annealing as in the
search, with the bytes of a block in the place of its size.
"""

from typing import NamedTuple

import numpy as np

from ....kernels import Float32s, Float64s, Int32s, Int64s, inlined, kernel
from ....kernels.arithmetic import random_frame
from ....kernels.parallel import each
from ....mesh.incidence import Csr, transpose
from ...blocks_of import staged_bytes
from ..coarsening.grouping import Grouping
from ..coarsening.levels import in_space
from ..initial.bisection import bisect_places
from ..initial.geometry import Geometry
from ..refinement.centroids import mean_places
from ..refinement.groups import unit_of
from ..refinement.sweep import HOLDS, LEAST_GAIN, acceptance_thresholds, position_in_sweep

# Sweeps at the default effort, in as many groupings of the blocks; the last ones of each
# grouping make only moves that gain.
SWEEPS = 200
GROUPINGS = 4
COLD_SWEEPS = 2
# Elements of a group, which one thread fills.
GROUP_SIZE = 60_000
# Blocks of a group, at least.
GROUP_BLOCKS = 64
# Temperature of the first and of the last sweep, in points that an element loads.
TEMPERATURE = (0.5, 0.2)
# An element of many points heats in proportion to those that its block loads for it.
HEAT = 1.2
# Price of a point over the cap, in the first and in the last sweep.
OVER = (1.0, 3.0)
# Price of a cut facet, in points: it keeps blocks in one piece.
FACET = 0.3
# Points that a move from a block at the cap to an empty one gains.
EVEN = 2.0
# Blocks beside an element that are weighed, at most.
MOST_BESIDE = 16
# Score of an element that must be weighed anew.
UNKNOWN = np.float32(np.inf)


class Surroundings(NamedTuple):
    """The points of each element, the elements at each point, and the neighbours."""

    table: Int32s
    weight: Int32s
    touching_offset: Int64s
    touching: Int32s
    neighbour_offset: Int64s
    neighbours: Int32s


class Filling(NamedTuple):
    """The block of each element, the elements and bytes of each block, and both caps.

    ``score`` (n,) is that of an element's best move when it was last weighed.
    """

    block: Int32s
    size: Int64s
    staged: Int64s
    group_of_block: Int32s
    score: Float32s
    cap: int
    limit: int


class Cooling(NamedTuple):
    """Sweeps ``begin`` to ``end`` of ``total``; prices are in points of typical weight."""

    begin: int
    end: int
    total: int
    heat: float
    per_unit: float
    seed: int
    quantile: Float64s


def fill_blocks(
    geometry: Geometry,
    graph: Csr,
    block: Int32s,
    n_blocks: int,
    cap: int,
    limit: int,
    effort: float,
    seed: int,
) -> Int32s:
    """Blocks that stage at most ``limit`` bytes where a search of some sweeps finds a way.

    They come back as they are where none stages more. No block has more than ``cap``
    elements that had not before, and none becomes empty; some may still stage too much.
    O(sweeps * elements at borders * arity * elements at a point); the same result for a
    seed whatever the number of threads.
    """
    weight = geometry.weight
    staged = staged_bytes(
        table=geometry.table, weight=weight, block=block, n_blocks=n_blocks
    )
    if staged.max() <= limit:
        return block
    # Prepare what moves are weighed by.
    block = block.copy()
    at_point = transpose(geometry.table, weight.size)
    around = Surroundings(
        table=geometry.table,
        weight=weight,
        touching_offset=at_point.offset,
        touching=at_point.index,
        neighbour_offset=graph.offset,
        neighbours=graph.index,
    )
    size = np.bincount(block, minlength=n_blocks)
    # Prices are in typical points, temperatures in those that an element loads.
    unit = unit_of(weight)
    loads_per_element = float(staged.sum()) / unit / block.size
    total = max(GROUPINGS, round(SWEEPS * effort))
    for k in range(GROUPINGS):
        # Group the blocks anew each time; threads share the groups.
        group_of_block = _groups(
            geometry=geometry, block=block, n_blocks=n_blocks, number=k
        )
        grouping = Grouping.of(block, group_of_block)
        filling = Filling(
            block=block,
            size=size,
            staged=staged,
            group_of_block=group_of_block,
            score=np.full(block.size, UNKNOWN, np.float32),
            cap=cap,
            limit=limit,
        )
        cooling = Cooling(
            begin=total * k // GROUPINGS,
            end=total * (k + 1) // GROUPINGS,
            total=total,
            heat=max(1.0, HEAT * loads_per_element),
            per_unit=1.0 / unit,
            seed=(seed + 1_000_003 * k) % 2**31,
            quantile=acceptance_thresholds(),
        )
        tasks = [
            (around, filling, grouping.cluster_offset, grouping.clusters, share, cooling)
            for share in grouping.shares()
        ]
        each(_fill_groups, tasks)
    return block


def _groups(geometry: Geometry, block: Int32s, n_blocks: int, number: int) -> Int32s:
    """The group of each block, bisected in a frame that is drawn for ``number``."""
    count = min(block.size // GROUP_SIZE, n_blocks // GROUP_BLOCKS)
    if count < 2:
        return np.zeros(n_blocks, np.int32)
    middles = mean_places(
        place=in_space(geometry.coordinates),
        weight=np.ones(block.size, np.int32),
        block=block,
        n_blocks=n_blocks,
    )
    return bisect_places(middles, count, directions=random_frame(number, 3))


@kernel
def _fill_groups(
    around: Surroundings,
    filling: Filling,
    offset: Int64s,
    elements: Int32s,
    groups: Int64s,
    cooling: Cooling,
) -> int:
    """Move the elements of some groups of blocks, between blocks of the same group.

    ``elements[offset[g]:offset[g + 1]]`` are those of group ``g``. Blocks of other groups,
    which other threads change, neither give nor take. Returns the number of moves.
    """
    moved = 0
    beside = np.empty(MOST_BESIDE, np.int32)
    facets = np.empty(MOST_BESIDE, np.int32)
    for g in groups:
        members = elements[offset[g] : offset[g + 1]]
        # The state of the random numbers is never 0, which xorshift would keep.
        random = np.uint64(cooling.seed + g) * np.uint64(2654435761) + np.uint64(
            88172645463325252
        )
        for k in range(cooling.begin, cooling.end):
            # Cool linearly, and let the price of the cap rise.
            share = k / cooling.total
            temperature = TEMPERATURE[0] + share * (TEMPERATURE[1] - TEMPERATURE[0])
            temperature *= cooling.heat
            if k >= cooling.end - COLD_SWEEPS:
                temperature = 0.0
            over = OVER[0] + share * (OVER[1] - OVER[0])
            for place in range(members.size):
                i = members[position_in_sweep(members.size, place, k)]
                random ^= random << np.uint64(13)
                random ^= random >> np.uint64(7)
                random ^= random << np.uint64(17)
                drawn = (random >> np.uint64(20)) & np.uint64(cooling.quantile.size - 1)
                allowed = temperature * cooling.quantile[drawn]
                # Pass over those whose last score says that no move is worth it.
                turn = (i + k) % HOLDS == 0
                if filling.score[i] + allowed <= LEAST_GAIN and not turn:
                    continue
                target, score = _best_move(
                    around=around,
                    filling=filling,
                    element=i,
                    over=over,
                    per_unit=cooling.per_unit,
                    beside=beside,
                    facets=facets,
                )
                filling.score[i] = score
                if score + allowed > LEAST_GAIN:
                    _move(around=around, filling=filling, element=i, target=target)
                    moved += 1
    return moved


@inlined
def _best_move(
    around: Surroundings,
    filling: Filling,
    element: int,
    over: float,
    per_unit: float,
    beside: Int32s,
    facets: Int32s,
) -> tuple[int, float]:
    """The block to which a move of an element scores most, and its score.

    The score is -inf where no block is possible.
    """
    source = filling.block[element]
    target = source
    score = -np.inf
    # Find the blocks of its neighbours; inside its block there are none.
    count, inner = _blocks_beside(
        around=around, filling=filling, element=element, beside=beside, facets=facets
    )
    # The last element of a block does not leave.
    if count == 0 or filling.size[source] == 1:
        return target, score
    limit = filling.limit
    freed = missing_weight(around, filling.block, element, source)
    staged = filling.staged[source]
    relieved = max(0, staged - limit) - max(0, staged - freed - limit)
    for c in range(count):
        b = beside[c]
        if filling.size[b] >= filling.cap:
            continue
        # Points saved, facets joined, points over the cap, and the room of both blocks.
        added = missing_weight(around, filling.block, element, b)
        before = filling.staged[b]
        burdened = max(0, before + added - limit) - max(0, before - limit)
        new = per_unit * (freed - added + over * (relieved - burdened))
        new += FACET * (facets[c] - inner) + EVEN * (staged - before) / limit
        if new > score:
            target = b
            score = new
    return target, score


@inlined
def _blocks_beside(
    around: Surroundings, filling: Filling, element: int, beside: Int32s, facets: Int32s
) -> tuple[int, int]:
    """Fill in the blocks of the group beside an element, and its facets with each.

    Returns their number, and the facets with its own block.
    """
    source = filling.block[element]
    group = filling.group_of_block[source]
    count = 0
    inner = 0
    for s in range(around.neighbour_offset[element], around.neighbour_offset[element + 1]):
        b = filling.block[around.neighbours[s]]
        if b == source:
            inner += 1
            continue
        if filling.group_of_block[b] != group:
            continue
        # Count the facet with its block, or open an entry for a block that is met first.
        c = 0
        while c < count and beside[c] != b:
            c += 1
        if c == MOST_BESIDE:
            continue
        if c == count:
            beside[c] = b
            facets[c] = 0
            count += 1
        facets[c] += 1
    return count, inner


@inlined
def missing_weight(around: Surroundings, block: Int32s, element: int, of_block: int) -> int:
    """The weight of an element's points that no other element of a block touches."""
    missing = 0
    for j in range(around.table.shape[1]):
        point = around.table[element, j]
        if point < 0:
            continue
        touched = False
        for s in range(around.touching_offset[point], around.touching_offset[point + 1]):
            other = around.touching[s]
            if other != element and block[other] == of_block:
                touched = True
                break
        if not touched:
            missing += around.weight[point]
    return missing


@inlined
def _move(around: Surroundings, filling: Filling, element: int, target: int) -> None:
    """Move an element, and have its neighbours of the group weighed anew."""
    source = filling.block[element]
    filling.staged[source] -= missing_weight(around, filling.block, element, source)
    filling.staged[target] += missing_weight(around, filling.block, element, target)
    filling.size[source] -= 1
    filling.size[target] += 1
    filling.block[element] = target
    filling.score[element] = UNKNOWN
    group = filling.group_of_block[target]
    for s in range(around.neighbour_offset[element], around.neighbour_offset[element + 1]):
        other = around.neighbours[s]
        if filling.group_of_block[filling.block[other]] == group:
            filling.score[other] = UNKNOWN
