"""Counts of the elements of each block at each point: the gain of a move, and the move.

A point keeps a short list of (block, count) in a slice as long as its number of elements,
so a gain costs the blocks around an element, not the elements.
"""

from typing import Any, NamedTuple

import numpy as np

from ..kernels import Int32s, Int64s, helper, inlined
from ..kernels.arrays import scan_offsets

# Most neighbouring blocks that are evaluated; only points of high degree have more.
MAX_CANDIDATES = 24
# No block in particular, typed since numba compiles a helper again for a constant.
ANY_BLOCK: Any = np.int64(-1)


class Connectivity(NamedTuple):
    """Blocks, and the counts that follow from them.

    ``table`` (n, arity) has -1 where a row names a point again (:func:`distinct_rows`).
    Point ``t`` has its ``used[t]`` blocks and counts from ``slot_offset[t]`` on. ``weight``
    is what a point costs; ``block`` (n,) and ``size`` (n_blocks,) follow every move.
    ``found_*`` is scratch of :func:`neighbours`.
    """

    table: Int32s
    weight: Int32s
    block: Int32s
    size: Int64s
    slot_offset: Int64s
    slot_block: Int32s
    slot_count: Int32s
    used: Int32s
    found_block: Int32s
    found_weight: Int64s


def distinct_rows(table: Int32s) -> Int32s:
    """The table with -1 where a row repeats a point; the table itself if no row does."""
    columns = np.ascontiguousarray(table.T)
    out = table
    for j in range(1, len(columns)):
        again = (columns[:j] == columns[j]).any(axis=0)
        if again.any():
            out = table.copy() if out is table else out
            out[again, j] = -1
    return out


@helper
def connect(table: Int32s, weight: Int32s, block: Int32s, n_blocks: int) -> Connectivity:
    """Count the blocks at every point. O(n * arity * blocks at a point)."""
    # Make room at each point for as many blocks as it has elements.
    n, arity = table.shape
    slot_offset = np.zeros(weight.size + 1, np.int64)
    size = np.zeros(n_blocks, np.int64)
    for i in range(n):
        size[block[i]] += 1
        for j in range(arity):
            if table[i, j] >= 0:
                slot_offset[table[i, j] + 1] += 1
    scan_offsets(slot_offset)
    slots = slot_offset[weight.size]
    state = Connectivity(
        table=table,
        weight=weight,
        block=block,
        size=size,
        slot_offset=slot_offset,
        slot_block=np.empty(slots, np.int32),
        slot_count=np.empty(slots, np.int32),
        used=np.zeros(weight.size, np.int32),
        found_block=np.empty(MAX_CANDIDATES, np.int32),
        found_weight=np.empty(MAX_CANDIDATES, np.int64),
    )
    # Count the elements there one by one.
    for i in range(n):
        for j in range(arity):
            if table[i, j] >= 0:
                _enter(state, table[i, j], int(np.int64(block[i])))
    return state


@inlined
def _enter(state: Connectivity, point: int, block: int) -> None:
    """Count one more element of a block at a point."""
    start = state.slot_offset[point]
    end = start + state.used[point]
    for s in range(start, end):
        if state.slot_block[s] == block:
            state.slot_count[s] += 1
            return
    state.slot_block[end] = block
    state.slot_count[end] = 1
    state.used[point] += 1


@inlined
def _leave(state: Connectivity, point: int, block: int) -> None:
    """Count one element less of a block at a point; a block without any leaves the list."""
    start = state.slot_offset[point]
    s = start
    while state.slot_block[s] != block:
        s += 1
    state.slot_count[s] -= 1
    if state.slot_count[s] == 0:
        last = start + state.used[point] - 1
        state.slot_block[s] = state.slot_block[last]
        state.slot_count[s] = state.slot_count[last]
        state.used[point] -= 1


@inlined
def move_element(state: Connectivity, element: int, target: int) -> None:
    """Move an element to another block. O(arity * blocks at its points)."""
    source = state.block[element]
    for j in range(state.table.shape[1]):
        point = state.table[element, j]
        if point >= 0:
            # Leaving first keeps the list within the point's slots.
            _leave(state, point, source)
            _enter(state, point, target)
    state.block[element] = target
    state.size[source] -= 1
    state.size[target] += 1


@inlined
def neighbours(state: Connectivity, element: int) -> tuple[int, int, int]:
    """Find the other blocks at an element's points.

    Returns the number of these blocks, the weight freed when the element leaves its block,
    and the weight of all its points. ``found_block`` lists the blocks, ``found_weight`` the
    weight of the element's points that each block already has.
    """
    source = state.block[element]
    n_found = 0
    freed = 0
    total = 0
    for j in range(state.table.shape[1]):
        point = state.table[element, j]
        if point < 0:
            continue
        weight = state.weight[point]
        total += weight
        start = state.slot_offset[point]
        for s in range(start, start + state.used[point]):
            b = state.slot_block[s]
            # The only element of its block at a point frees the point.
            if b == source:
                if state.slot_count[s] == 1:
                    freed += weight
                continue
            # Another block: add the point to what it has already.
            c = 0
            while c < n_found and state.found_block[c] != b:
                c += 1
            if c < n_found:
                state.found_weight[c] += weight
            elif n_found < MAX_CANDIDATES:
                state.found_block[n_found] = b
                state.found_weight[n_found] = weight
                n_found += 1
    return n_found, freed, total


@helper
def best_target(state: Connectivity, element: int, cap: int, only: int) -> tuple[int, int]:
    """The neighbouring block with room that gains most, -1 if there is none; and the gain.

    The gain is the weight freed in the source less the weight new there; ``only`` >= 0 asks
    for one block. Ties go to the emptier block, then to the lower number.
    """
    n_found, freed, total = neighbours(state, element)
    target = -1
    gain = 0
    for c in range(n_found):
        b = state.found_block[c]
        if state.size[b] >= cap or (only >= 0 and b != only):
            continue
        score = freed - (total - state.found_weight[c])
        better = target < 0 or score > gain
        if not better and score == gain:
            fuller = state.size[b] - state.size[target]
            better = fuller < 0 or (fuller == 0 and b < target)
        if better:
            target = b
            gain = score
    return target, gain
