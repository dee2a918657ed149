"""How crowded blocks are: the largest number of a block's elements on one written point.

No colouring of the threads of a block has fewer colours than that, and ours hardly ever has more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels import helper, inlined, kernel
from ..blocks_of import sort_by
from ..connectivity import Connectivity

# Points more crowded than this are not counted: they are hubs in any block.
LEVELS = 32


class Crowding(NamedTuple):
    """``level_count`` (n_blocks, LEVELS + 1): points of a block by how many elements it has there.

    ``most`` (n_blocks,) is the highest level in use. ``written`` (n_points,) tells which points
    count. ``per_point`` is what one more point at the highest level adds to the price, so that
    there is a slope to go down.
    """

    level_count: NDArray[np.int32]
    most: NDArray[np.int32]
    written: NDArray[np.bool_]
    per_point: float


@helper
def crowding_of(state: Connectivity, written: NDArray[np.bool_], cap: int) -> Crowding:
    """Count the levels of every block. O(n * arity)."""
    n_blocks = state.size.size
    crowding = Crowding(
        np.zeros((n_blocks, LEVELS + 1), np.int32), np.zeros(n_blocks, np.int32), written, 1.0 / cap
    )
    for t in range(state.weight.size):
        if not written[t]:
            continue
        for s in range(state.slot_offset[t], state.slot_offset[t] + state.used[t]):
            level = min(LEVELS, state.slot_count[s])
            b = state.slot_block[s]
            crowding.level_count[b, level] += 1
            crowding.most[b] = max(crowding.most[b], level)
    return crowding


@inlined
def count_move(crowding: Crowding, state: Connectivity, element: int, target: int) -> None:
    """Keep the levels; called before the element moves. O(arity * blocks at its points)."""
    home = state.block[element]
    for j in range(state.table.shape[1]):
        t = state.table[element, j]
        if t < 0 or not crowding.written[t]:
            continue
        at_home, at_target = _count(state, t, home), _count(state, t, target)
        if at_home <= LEVELS:
            crowding.level_count[home, at_home] -= 1
            crowding.level_count[home, at_home - 1] += at_home > 1
        if at_target < LEVELS:
            crowding.level_count[target, at_target] -= at_target > 0
            crowding.level_count[target, at_target + 1] += 1
            crowding.most[target] = max(crowding.most[target], at_target + 1)
    while crowding.most[home] > 0 and crowding.level_count[home, crowding.most[home]] == 0:
        crowding.most[home] -= 1


@inlined
def colours_changed(crowding: Crowding, state: Connectivity, element: int, target: int) -> float:
    """By how much the colours of both blocks would rise. O(arity * blocks at its points)."""
    home = state.block[element]
    high, top = crowding.most[home], crowding.most[target]
    relieved, crowded, risen = 0, 0, 0
    for j in range(state.table.shape[1]):
        t = state.table[element, j]
        if t < 0 or not crowding.written[t]:
            continue
        relieved += _count(state, t, home) == high
        count = _count(state, t, target) + 1
        crowded += count == top
        risen += count == top + 1
    change = crowding.per_point * (crowded - relieved)
    if relieved and relieved == crowding.level_count[home, high]:
        change -= 1.0
    return change + 1.0 if risen and top < LEVELS else change


@inlined
def _count(state: Connectivity, point: int, block: int) -> int:
    start = state.slot_offset[point]
    for s in range(start, start + state.used[point]):
        if state.slot_block[s] == block:
            return state.slot_count[s]
    return 0


@kernel
def colour_bounds(
    table: NDArray[np.int32], written: NDArray[np.bool_], block: NDArray[np.int32], n_blocks: int
) -> NDArray[np.int32]:
    """The largest number of a block's elements on one written point, (n_blocks,). O(n * arity)."""
    offset, member = sort_by(block, n_blocks)
    last = np.full(written.size, -1, np.int32)
    count = np.zeros(written.size, np.int32)
    most = np.zeros(n_blocks, np.int32)
    for b in range(n_blocks):
        for k in range(offset[b], offset[b + 1]):
            for j in range(table.shape[1]):
                t = table[member[k], j]
                if t < 0 or not written[t]:
                    continue
                if last[t] != b:
                    last[t], count[t] = b, 0
                count[t] += 1
                most[b] = max(most[b], count[t])
    return most
