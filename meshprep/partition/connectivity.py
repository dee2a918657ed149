"""Counts of the elements of each block at each point: the gain of a move, and the move.

A point keeps a short list of (block, count) in a slice as long as its number of elements, so a
gain costs the blocks around an element, not the elements.
"""

from typing import NamedTuple

import numpy as np

from ..kernels import Int32s, Int64s, helper, inlined
from ..kernels.arrays import scan_offsets

# Most neighbouring blocks that are evaluated; only points of high degree have more.
MAX_CANDIDATES = 24


class Connectivity(NamedTuple):
    """Blocks, and the counts that follow from them.

    ``table`` (n, arity) has -1 where a row names a point again (:func:`distinct_rows`).
    Point ``t`` has its ``used[t]`` blocks and counts from ``slot_offset[t]`` on. ``weight`` is what
    a point costs; ``block`` (n,) and ``size`` (n_blocks,) are current. ``found_*`` are scratch.
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
    """The table with -1 where a row names a point again; the table itself when none does."""
    columns, out = np.ascontiguousarray(table.T), table
    for j in range(1, len(columns)):
        again = (columns[:j] == columns[j]).any(axis=0)
        if again.any():
            out = table.copy() if out is table else out
            out[again, j] = -1
    return out


@helper
def connect(table: Int32s, weight: Int32s, block: Int32s, n_blocks: int) -> Connectivity:
    """Count the blocks at every point. O(n * arity * blocks at a point)."""
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
        table,
        weight,
        block,
        size,
        slot_offset,
        np.empty(slots, np.int32),
        np.empty(slots, np.int32),
        np.zeros(weight.size, np.int32),
        np.empty(MAX_CANDIDATES, np.int32),
        np.empty(MAX_CANDIDATES, np.int64),
    )
    for i in range(n):
        for j in range(arity):
            if table[i, j] >= 0:
                _enter(state, table[i, j], block[i])
    return state


@inlined
def _enter(state: Connectivity, point: int, block: int) -> None:
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
def move(state: Connectivity, element: int, target: int) -> None:
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

    Returns how many there are, the weight freed when the element leaves its block, and the weight
    of all its points; ``found_block`` lists the blocks and ``found_weight`` what they hold of it.
    """
    source = state.block[element]
    found, freed, total = 0, 0, 0
    for j in range(state.table.shape[1]):
        point = state.table[element, j]
        if point < 0:
            continue
        weight = state.weight[point]
        total += weight
        start = state.slot_offset[point]
        for s in range(start, start + state.used[point]):
            b = state.slot_block[s]
            if b == source:
                if state.slot_count[s] == 1:
                    freed += weight
                continue
            c = 0
            while c < found and state.found_block[c] != b:
                c += 1
            if c < found:
                state.found_weight[c] += weight
            elif found < MAX_CANDIDATES:
                state.found_block[found] = b
                state.found_weight[found] = weight
                found += 1
    return found, freed, total


@helper
def best_target(state: Connectivity, element: int, cap: int, only: int) -> tuple[int, int]:
    """The neighbouring block with room that gains most, -1 when there is none; and the gain.

    The gain is the weight freed in the source less the weight new there; ``only`` >= 0 asks for one
    block. Ties go to the emptier block, then to the lower number.
    """
    found, freed, total = neighbours(state, element)
    target, gain = -1, 0
    for c in range(found):
        b = state.found_block[c]
        if state.size[b] >= cap or (only >= 0 and b != only):
            continue
        score = freed - (total - state.found_weight[c])
        better = target < 0 or score > gain
        if not better and score == gain:
            fuller = state.size[b] - state.size[target]
            better = fuller < 0 or (fuller == 0 and b < target)
        if better:
            target, gain = b, score
    return target, gain
