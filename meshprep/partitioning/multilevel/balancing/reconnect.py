"""Connected blocks: all fragments of a block but the largest go to adjacent blocks.

Adjacent blocks that are full give elements to their own neighbours
(:func:`repair.enforce_cap`), so that the cap holds.
"""

from typing import Any

import numpy as np

from meshprep_runtime.types.maps import ranges, read_only

from ....kernels import Bools, Int32s, Int64s, helper, kernel
from ....kernels.arrays import numbers, sort_by
from ....kernels.parallel import each, rows_in_pieces
from ....mesh.incidence import Csr
from ...connectivity import ANY_BLOCK, Connectivity, best_target
from ...repair import enforce_cap
from ...shift import Members, count_and_list, gather, move_listed
from ..coarsening.grouping import Grouping

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
    """Give all fragments of blocks but the largest to neighbours.

    ``block`` (n,) is changed in place. ``fragmented`` (n_blocks,) tells which blocks have
    several components, and is updated; ``near`` (n_blocks,) tells which blocks may change:
    the fragmented ones and some around them. A group that would have more fragmented blocks
    afterwards stays as it is. O(n) to find the elements that may change, O(arity) for each
    of these.
    """
    # Only elements of blocks that may change are looked at.
    table = read_only(table)
    elements = np.flatnonzero(near[block]).astype(np.int32)
    grouping = Grouping.of(block[elements], group_of_block)

    def bring_together(groups: Int64s) -> None:
        """Reconnect the blocks of some groups, each in numbers of its own."""
        number = np.full(weight.size, -1, np.int32)
        rank = np.empty(near.size, np.int32)
        for group in map(grouping.group, groups):
            owned = group.blocks[near[group.blocks]]
            if not fragmented[owned].any():
                continue
            inside = elements[group.clusters]
            # Number the elements, points and blocks of the group from 0, so that the repair
            # costs what the group is large, not the mesh.
            rows, points = extract(table, inside, number)
            rank[owned] = np.arange(owned.size)
            local_block = rank[block[inside]]
            components = reconnect(
                rows=rows,
                weight=weight[points],
                block=local_block,
                n_blocks=owned.size,
                cap=cap,
            )
            # Carry the repaired blocks back to the numbers of the mesh.
            if components is not None:
                block[inside] = owned[local_block]
                fragmented[owned] = components > 1

    each(bring_together, [(share,) for share in grouping.shares()])


def near_blocks(graph: Csr, block: Int32s, some: Bools) -> Bools:
    """Blocks within ``NEAR`` steps of the given ones, through neighbours of elements."""
    near = ring = some
    for _ in range(NEAR):
        starts = np.flatnonzero(ring[block])
        begin = graph.offset[starts]
        count = graph.offset[starts + 1] - graph.offset[starts]
        beside = np.zeros_like(near)
        beside[block[graph.index[ranges(begin, count)]]] = True
        ring = beside & ~near
        near = beside | near
    return near


def reconnect(
    rows: Int32s, weight: Int32s, block: Int32s, n_blocks: int, cap: int
) -> Int64s | None:
    """Give fragments to neighbours while fewer blocks are fragmented; changes ``block``.

    ``rows`` has -1 for no point. Returns the number of components of each block, or None
    where not fewer blocks are fragmented than before. No block is over the cap that was
    not before, and none is empty.
    """
    # Remember the blocks as they are: a round that does not help is taken back.
    components = count_components(
        table=read_only(rows), n_points=weight.size, block=block, n_blocks=n_blocks
    )
    n_fragmented = np.count_nonzero(components > 1)
    best_block = block.copy()
    best = None
    for _ in range(ROUNDS):
        # Give the fragments away, and bring full blocks back within the cap.
        if _give_away(
            rows=rows,
            weight=weight,
            block=block,
            n_blocks=n_blocks,
            cap=cap,
            components=components,
        ):
            enforce_cap(rows=rows, weight=weight, block=block, limit=n_blocks, cap=cap)
        components = count_components(
            table=read_only(rows), n_points=weight.size, block=block, n_blocks=n_blocks
        )
        # Keep the result if fewer blocks are fragmented, and none is empty.
        left = np.count_nonzero(components > 1)
        if left >= n_fragmented or components.min() == 0:
            break
        n_fragmented = left
        best = components
        best_block[:] = block
        if left == 0:
            break
    block[:] = best_block
    return best


@kernel
def extract(table: Int32s, inside: Int32s, number: Int32s) -> tuple[Int32s, Int32s]:
    """Rows of some elements in local numbers, and the points that these numbers stand for.

    Points of only one of the elements are -1. ``number`` (n_points,) is scratch: -1 for all
    points before and afterwards.
    """
    # Number the points by first touch, and count the elements of each.
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
            if t >= 0:
                rows[k, j] = number[t]
            else:
                rows[k, j] = -1
            if t >= 0:
                degree[number[t]] += 1
    # Leave out points of one element: no move changes what they cost.
    for k in range(inside.size):
        for j in range(arity):
            p = rows[k, j]
            if p >= 0 and degree[p] < 2:
                rows[k, j] = -1
    for p in range(count):
        number[points[p]] = -1
    return rows, points[:count].copy()


def _give_away(
    rows: Int32s, weight: Int32s, block: Int32s, n_blocks: int, cap: int, components: Int64s
) -> bool:
    """Give all fragments away.

    Returns whether a block is then over the cap while there is room elsewhere.
    """
    state, members = count_and_list(
        table=rows, weight=weight, block=block, n_blocks=n_blocks
    )
    give_fragments(
        state=state,
        members=members,
        fragmented=np.flatnonzero(components > 1),
        cap=cap,
    )
    return bool(state.size.max() > cap and n_blocks * cap >= block.size)


@kernel
def give_fragments(
    state: Connectivity, members: Members, fragmented: Int64s, cap: int
) -> None:
    """Empty each fragmented block of all but its largest component."""
    elements = np.empty(state.block.size, np.int32)
    seen_by = np.full(state.weight.size, -1, np.int32)
    for b in fragmented:
        _give_fragments(
            state=state,
            members=members,
            source=b,
            cap=cap,
            elements=elements,
            seen_by=seen_by,
        )


@helper
def _give_fragments(
    state: Connectivity,
    members: Members,
    source: int,
    cap: int,
    elements: Int32s,
    seen_by: Int32s,
) -> None:
    """Give all components but the largest to the blocks where they gain most.

    Blocks without room take them only where no other block does.
    """
    # List the elements of the block breadth-first: components follow each other in this
    # order.
    count = gather(state=state, members=members, source=source, out=elements)
    start = _starts_of_components(
        state=state, elements=elements[:count], source=source, seen_by=seen_by
    )
    # The component of most elements stays.
    largest = 0
    for p in range(start.size - 1):
        size = start[p + 1] - start[p]
        size_of_largest = start[largest + 1] - start[largest]
        if size > size_of_largest:
            largest = p
    for p in range(start.size - 1):
        if p == largest:
            continue
        # An element inside a fragment touches other blocks only after the elements around
        # it have moved.
        waiting = elements[start[p] : start[p + 1]].copy()
        while waiting.size > 0:
            left = 0
            for k in range(waiting.size):
                i = int(np.int64(waiting[k]))
                target, _ = best_target(state=state, element=i, cap=cap, only=ANY_BLOCK)
                # A fragment costs more than a block over the cap: that is mended
                # afterwards.
                if target < 0:
                    target, _ = best_target(
                        state=state,
                        element=i,
                        cap=state.block.size + 1,
                        only=ANY_BLOCK,
                    )
                if target >= 0:
                    move_listed(state=state, members=members, element=i, target=target)
                else:
                    waiting[left] = i
                    left += 1
            # What touches no other block stays where it is.
            if left == waiting.size:
                break
            waiting = waiting[:left]


@helper
def _starts_of_components(
    state: Connectivity, elements: Int32s, source: int, seen_by: Int32s
) -> Int64s:
    """Where each component begins in the breadth-first order of a block, and the end."""
    start = np.empty(elements.size + 1, np.int64)
    count = 0
    for k in range(elements.size):
        # An element that shares no point with those before it opens a component.
        fresh = True
        # Ask whether an element before it has touched one of its points.
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
    """The number of components of each block, (n_blocks,); 0 for an empty block."""
    offset, member = sort_by(block, n_blocks)
    return np.concatenate(
        rows_in_pieces(_count_components, offset, table, n_points, member)
    )


@kernel
def _count_components(
    table: Int32s, n_points: int, new_to_old: Int32s, block_offset: Int64s
) -> Int64s:
    """Components of a range of blocks, by union and find over the points of each block."""
    n = new_to_old.size
    parent = numbers(n)
    first = np.full(n_points, -1, np.int32)
    components = np.empty(block_offset.size - 1, np.int64)
    for b in range(block_offset.size - 1):
        low = block_offset[b]
        high = block_offset[b + 1]
        # Each element is a component at first; each union makes one fewer.
        components[b] = high - low
        for k in range(np.uint64(low), np.uint64(high)):
            i = np.uint32(new_to_old[k])
            root = int(k)
            for j in range(table.shape[1]):
                if table[i, j] < 0:
                    continue
                t = np.uint32(table[i, j])
                # Entries of earlier blocks are stale.
                if first[t] < low:
                    first[t] = k
                    continue
                # Unite the element with the first one that touched the point.
                root = _root(parent, root)
                other = _root(parent, np.uint64(first[t]))
                if root != other:
                    parent[root] = other
                    components[b] -= 1
    return components


@helper
def _root(parent: Int32s, k: Any) -> int:
    """The root of a tree of elements; paths are halved on the way."""
    i: Any = np.uint32(k)
    while parent[i] != i:
        parent[i] = parent[np.uint32(parent[i])]
        i = np.uint32(parent[i])
    return int(i)
