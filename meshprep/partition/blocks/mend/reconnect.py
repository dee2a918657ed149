"""Connected blocks: all components but the largest go to adjacent blocks.

Where these are full, they give elements to their own neighbours
(:func:`repair.enforce_cap`), so that the cap holds.
"""

from typing import Any

import numpy as np

from meshprep_runtime.types.maps import ranges, read_only

from ....kernels import Bools, Int32s, Int64s, helper, kernel
from ....kernels.arrays import largest, numbers, sort_by
from ....kernels.parallel import each, rows_in_pieces
from ....mesh.incidence import Csr
from ...connectivity import Connectivity, best_target, connect
from ...repair import enforce_cap
from ...shift import Members, gather, move_listed, new_members
from ..grouping import Grouping

# Passes over the blocks of a group: moves may leave new fragments.
ROUNDS = 4
# Steps between blocks within which a surplus may move.
NEAR = 2


def reconnect_groups(
    table: Int32s,
    weight: Int32s,
    block: Int32s,
    group_of_block: Int32s,
    cap: int,
    fragmented: Bools,
    near: Bools,
) -> None:
    """Give all components of blocks but the largest to neighbours; changes ``block`` in place.

    ``fragmented`` (n_blocks,) tells which blocks have several components, and is changed as well;
    ``near`` (n_blocks,) which may change: these and some around them. Groups that would have more
    of them afterwards stay as they are. O(n) to find the elements that may change, O(arity) for
    each of these.
    """
    table, elements = read_only(table), np.flatnonzero(near[block]).astype(np.int32)
    grouping = Grouping.of(block[elements], group_of_block)

    def bring_together(groups: Int64s) -> None:
        number = np.full(weight.size, -1, np.int32)
        rank = np.empty(near.size, np.int32)
        for group in map(grouping.group, groups):
            owned = group.blocks[near[group.blocks]]
            if not fragmented[owned].any():
                continue
            inside = elements[group.clusters]
            rows, points = extract(table, inside, number)
            rank[owned] = np.arange(owned.size)
            found = rank[block[inside]]
            components = reconnect(rows, weight[points], found, owned.size, cap)
            if components is not None:
                block[inside], fragmented[owned] = owned[found], components > 1

    each(bring_together, [(share,) for share in grouping.shares()])


def near_blocks(graph: Csr, block: Int32s, some: Bools) -> Bools:
    """Blocks within ``NEAR`` steps of the given ones, through neighbours of elements."""
    near = ring = some
    for _ in range(NEAR):
        starts = np.flatnonzero(ring[block])
        begin, count = graph.offset[starts], graph.offset[starts + 1] - graph.offset[starts]
        beside = np.zeros_like(near)
        beside[block[graph.index[ranges(begin, count)]]] = True
        ring, near = beside & ~near, beside | near
    return near


def reconnect(
    rows: Int32s, weight: Int32s, block: Int32s, n_blocks: int, cap: int
) -> Int64s | None:
    """Give fragments to neighbours, as long as fewer blocks are fragmented; changes ``block``.

    ``rows`` with -1 for no point. Returns the components of each block where fewer are fragmented
    than before, otherwise None; no block is over the cap that was not before, and none is empty.
    """
    components = count_components(read_only(rows), weight.size, block, n_blocks)
    found, kept, best = np.count_nonzero(components > 1), block.copy(), None
    for _ in range(ROUNDS):
        if _give_away(rows, weight, block, n_blocks, cap, components):
            enforce_cap(rows, weight, block, n_blocks, cap)
        components = count_components(read_only(rows), weight.size, block, n_blocks)
        left = np.count_nonzero(components > 1)
        if left >= found or components.min() == 0:
            break
        found, best = left, components
        kept[:] = block
        if left == 0:
            break
    block[:] = kept
    return best


@kernel
def extract(table: Int32s, inside: Int32s, number: Int32s) -> tuple[Int32s, Int32s]:
    """Rows of the elements ``inside`` in local numbers, -1 for points of one, and the points."""
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
            if p >= 0 and degree[p] < 2:
                rows[k, j] = -1
    for p in range(count):
        number[points[p]] = -1
    return rows, points[:count].copy()


@kernel
def _give_away(
    rows: Int32s, weight: Int32s, block: Int32s, n_blocks: int, cap: int, components: Int64s
) -> bool:
    """Give all fragments away; True if a block is then over the cap and there is room elsewhere."""
    state = connect(rows, weight, block, n_blocks)
    members = new_members(state)
    elements = np.empty(block.size, np.int32)
    seen_by = np.full(weight.size, -1, np.int32)
    for b in range(n_blocks):
        if components[b] > 1:
            _give_fragments(state, members, b, cap, elements, seen_by)
    return largest(state.size) > cap and n_blocks * cap >= block.size


@helper
def _give_fragments(
    state: Connectivity, members: Members, source: int, cap: int, elements: Int32s, seen_by: Int32s
) -> None:
    """Give all components but the largest to the blocks where they gain most, full ones too."""
    count = gather(state, members, source, elements)
    start = _starts_of_components(state, elements[:count], source, seen_by)
    largest = 0
    for p in range(start.size - 1):
        if start[p + 1] - start[p] > start[largest + 1] - start[largest]:
            largest = p
    for p in range(start.size - 1):
        if p == largest:
            continue
        # An element inside a fragment touches other blocks only after those around it have moved.
        waiting = elements[start[p] : start[p + 1]].copy()
        while waiting.size > 0:
            left = 0
            for k in range(waiting.size):
                i = waiting[k]
                target, _ = best_target(state, i, cap, -1)
                if target < 0:
                    target, _ = best_target(state, i, state.block.size + 1, -1)
                if target >= 0:
                    move_listed(state, members, i, target)
                else:
                    waiting[left] = i
                    left += 1
            if left == waiting.size:
                break
            waiting = waiting[:left]


@helper
def _starts_of_components(
    state: Connectivity, elements: Int32s, source: int, seen_by: Int32s
) -> Int64s:
    """The start of each component in the breadth-first order of a block, and the end."""
    start = np.empty(elements.size + 1, np.int64)
    count = 0
    for k in range(elements.size):
        fresh = True
        for j in range(state.table.shape[1]):
            t = state.table[elements[k], j]
            if t >= 0 and seen_by[t] == source:
                fresh = False
        if fresh:
            start[count] = k
            count += 1
        for j in range(state.table.shape[1]):
            t = state.table[elements[k], j]
            if t >= 0:
                seen_by[t] = source
    start[count] = elements.size
    return start[: count + 1]


def count_components(table: Int32s, n_points: int, block: Int32s, n_blocks: int) -> Int64s:
    """Number of components of every block, 0 for an empty one, for elements in any order."""
    offset, member = sort_by(block, n_blocks)
    return np.concatenate(rows_in_pieces(_count_components, offset, table, n_points, member))


@kernel
def _count_components(
    table: Int32s, n_points: int, new_to_old: Int32s, block_offset: Int64s
) -> Int64s:
    n = new_to_old.size
    parent = numbers(n)
    first = np.full(n_points, -1, np.int32)
    components = np.empty(block_offset.size - 1, np.int64)
    for b in range(block_offset.size - 1):
        low, high = block_offset[b], block_offset[b + 1]
        components[b] = high - low
        for k in range(np.uint64(low), np.uint64(high)):
            i, one = np.uint32(new_to_old[k]), int(k)
            for j in range(table.shape[1]):
                if table[i, j] < 0:
                    continue
                t = np.uint32(table[i, j])
                # Entries of earlier blocks are stale.
                if first[t] < low:
                    first[t] = k
                    continue
                one, other = _root(parent, one), _root(parent, first[t])
                if one != other:
                    parent[one] = other
                    components[b] -= 1
    return components


@helper
def _root(parent: Int32s, k: int) -> int:
    i: Any = np.uint32(k)
    while parent[i] != i:
        parent[i] = parent[np.uint32(parent[i])]
        i = np.uint32(parent[i])
    return int(i)
