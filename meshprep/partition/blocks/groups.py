"""Refines blocks in groups: each group of neighbouring blocks is a small problem of its own.

The objective is a sum over blocks, so groups do not interact: they fit a cache, run on any number
of threads and give one result. What lies between groups is reached by grouping another way in the
next phase.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import get_num_threads
from numpy.typing import NDArray

from meshprep_runtime.maps import read_only

from ...kernels import kernel
from ...kernels.arrays import largest
from ...kernels.parallel import each
from ..blocks_of import sort_by
from ..connectivity import connect, weighted_loads
from ..loads import weighted_loads_of
from ..repair import enforce_cap
from .anneal import AnnealingSchedule, anneal
from .centroids import BlockMetrics, Centroids
from .point_degrees import count_degrees
from .reconnect import reconnect

# Each worker numbers the points of its group in an array over all points.
MAX_WORKERS = 8
# Points with more elements in a group than this, and than this many blocks hold, are in nearly
# every block anyway: moves do not look at them.
HIGH_DEGREE = 1024
HIGH_DEGREE_BLOCKS = 8


class PointTable(NamedTuple):
    """The points of each element, what each point weighs, and whether it counts for colours.

    ``table`` (n, arity) int32, with -1 for a point that is named again; ``weight`` (n_points,)
    int32; ``written`` (n_points,) bool.
    """

    table: NDArray[np.int32]
    weight: NDArray[np.int32]
    written: NDArray[np.bool_]


def refine_groups(
    points: PointTable,
    metrics: BlockMetrics,
    block: NDArray[np.int32],
    group_of_block: NDArray[np.int32],
    cap: int,
    schedules: list[AnnealingSchedule],
    seed: int,
) -> NDArray[np.int64]:
    """Anneal every group of blocks on its own; ``block`` is changed in place.

    Parameters
    ----------
    points : PointTable
    metrics : BlockMetrics
    block : (n,) int32
    group_of_block : (n_blocks,) int32
    cap : int
        Largest size of a block.
    schedules : list of AnnealingSchedule
        One for each group, or one for all. Where it ends past its total, no block of a group is
        over the cap afterwards, unless the group has more elements than room.
    seed : int

    Returns
    -------
    (n_groups,) int64
        By how much the weighted loads of each group fell, points of high degree left out.

    Notes
    -----
    O(n * arity) for the grouping and each sweep; 4 bytes a point and worker, at most 8 workers.
    """
    grouping = Grouping.of(block, group_of_block)
    gained = np.zeros(grouping.groups, np.int64)
    numbers = np.array(schedules, dtype=np.float64)
    numbers = np.broadcast_to(numbers, (grouping.groups, numbers.shape[1])).copy()
    table, weight = read_only(points.table), points.weight
    unit = unit_of(weight)
    most = max(HIGH_DEGREE, HIGH_DEGREE_BLOCKS * cap)

    def refine(groups: range) -> None:
        number = np.full(weight.size, -1, np.int32)
        for group in map(grouping.group, groups):
            inside, owned = group.elements, group.blocks
            rows, kept = _extract(table, inside, number, 2, most)
            found, own_weight = group.rank[block[inside]], weight[kept]
            own_metrics = BlockMetrics(metrics.coordinates[inside], metrics.metric[owned])
            # what counts colours is compiled where they have a price
            priced = points.written[kept] if numbers[group.number, 2] > 0.0 else None
            gain, loads, over = _refine(
                rows, own_weight, priced, own_metrics, found, owned.size, cap, unit,
                numbers[group.number], seed + group.number,
            )  # fmt: skip
            if over:
                enforce_cap(rows, own_weight, found, owned.size, cap)
                after = weighted_loads_of(read_only(rows), read_only(own_weight), found, owned.size)
                gain += loads - int(after)
            gained[group.number] = gain
            block[inside] = owned[found]

    each(refine, grouping.shares())
    return gained


def reconnect_groups(
    table: NDArray[np.int32],
    weight: NDArray[np.int32],
    block: NDArray[np.int32],
    group_of_block: NDArray[np.int32],
    cap: int,
    fragmented: NDArray[np.bool_],
) -> None:
    """Give all but the largest component of blocks to neighbours; ``block`` is changed.

    ``fragmented`` (n_blocks,) tells which blocks have several components. Groups that would
    have more of them afterwards stay as they are. O(n * arity) for the groups that have any.
    """
    table, grouping = read_only(table), Grouping.of(block, group_of_block)

    def bring_together(groups: range) -> None:
        number = np.full(weight.size, -1, np.int32)
        for group in map(grouping.group, groups):
            inside, owned = group.elements, group.blocks
            if not fragmented[owned].any():
                continue
            rows, points = _extract(table, inside, number, 2, table.size)
            found = group.rank[block[inside]]
            if reconnect(rows, weight[points], found, owned.size, cap):
                block[inside] = owned[found]

    each(bring_together, grouping.shares())


class Group(NamedTuple):
    """One group: its elements, its blocks, and the place of every block in its own group."""

    number: int
    elements: NDArray[np.int32]
    blocks: NDArray[np.int32]
    rank: NDArray[np.int32]


class Grouping(NamedTuple):
    """Elements and blocks by group, and the place of every block in its group."""

    groups: int
    element_offset: NDArray[np.int64]
    elements: NDArray[np.int32]
    block_offset: NDArray[np.int64]
    blocks: NDArray[np.int32]
    rank: NDArray[np.int32]

    @classmethod
    def of(cls, block: NDArray[np.int32], group_of_block: NDArray[np.int32]) -> Grouping:
        """Group the elements by the group of their block. Linear."""
        count = int(group_of_block.max(initial=-1)) + 1
        block_offset, blocks = sort_by(group_of_block, count)
        rank = np.empty(group_of_block.size, np.int32)
        rank[blocks] = np.arange(blocks.size) - np.repeat(block_offset[:-1], np.diff(block_offset))
        return cls(count, *sort_by(group_of_block[block], count), block_offset, blocks, rank)

    def group(self, g: int) -> Group:
        """One of them."""
        elements = self.elements[self.element_offset[g] : self.element_offset[g + 1]]
        blocks = self.blocks[self.block_offset[g] : self.block_offset[g + 1]]
        return Group(g, elements, blocks, self.rank)

    def shares(self) -> list[tuple[range]]:
        """The groups dealt out to workers, each of which has an array over all points."""
        workers = min(MAX_WORKERS, get_num_threads(), self.groups) if self.elements.size else 0
        return [(range(worker, self.groups, workers),) for worker in range(workers)]


def unit_of(weight: NDArray[np.int32]) -> float:
    """Weight of a typical point."""
    used = weight[weight > 0]
    return float(used.mean()) if used.size else 1.0


@kernel
def _extract(
    table: NDArray[np.int32],
    inside: NDArray[np.int32],
    number: NDArray[np.int32],
    least: int,
    most: int,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The rows of some elements with points numbered as they appear, and these points.

    Points with fewer than ``least`` or more than ``most`` of the elements become -1. ``number`` is
    -1 again afterwards.
    """
    arity = table.shape[1]
    rows = np.empty((inside.size, arity), np.int32)
    points = np.empty(inside.size * arity, np.int32)
    degree = np.zeros(inside.size * arity, np.int32)
    count = 0
    for k in range(inside.size):
        for j in range(arity):
            t = table[inside[k], j]
            if t >= 0 and number[t] < 0:
                number[t] = count
                points[count] = t
                count += 1
            rows[k, j] = number[t] if t >= 0 else -1
            if t >= 0:
                degree[number[t]] += 1
    for k in range(inside.size):
        for j in range(arity):
            p = rows[k, j]
            if p >= 0 and (degree[p] < least or degree[p] > most):
                rows[k, j] = -1
    for p in range(count):
        number[points[p]] = -1
    return rows, points[:count].copy()


@kernel
def _refine(
    rows: NDArray[np.int32],
    weight: NDArray[np.int32],
    written: NDArray[np.bool_] | None,
    metrics: BlockMetrics,
    block: NDArray[np.int32],
    n_blocks: int,
    cap: int,
    unit: float,
    numbers: NDArray[np.float64],
    seed: int,
) -> tuple[int, int, bool]:
    """Anneal one group; returns the gain, and the loads and True where a cap is to be mended.

    ``written`` is None where colours have no price.
    """
    begin, end, total = int(numbers[3]), int(numbers[4]), int(numbers[5])
    schedule = AnnealingSchedule(numbers[0], numbers[1], numbers[2], begin, end, total)
    state = connect(rows, weight, block, n_blocks)
    centroid = np.empty((n_blocks, metrics.coordinates.shape[1]), np.float64)
    centroids = Centroids(metrics.coordinates, metrics.metric, centroid)
    degrees = None if written is None else count_degrees(state, written, cap)
    gained = anneal(state, centroids, degrees, cap, unit, schedule, seed)
    over = end > total and largest(state.size) > cap and n_blocks * cap >= block.size
    return gained, weighted_loads(state), over
