"""Moves of elements out of a block: by gain, or along a chain of blocks."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels import Int32s, Int64s, helper, kernel
from ..kernels.arrays import ZERO
from .connectivity import Connectivity, best_target, connect, move_element

# Bounds on the cost of a step: blocks among which a chain is looked for,
REACH = 1024
# and elements at a point above which the point does not make them neighbours.
HIGH_DEGREE = 256


class Members(NamedTuple):
    """The elements of each block as doubly linked lists, and scratch of searches.

    ``head`` (n_blocks,), ``after`` and ``before`` (n,) are the lists, -1 at their ends.
    Point ``t`` has the elements ``touch_index[touch_offset[t]:touch_offset[t + 1]]``.
    Marks equal to ``tick`` (1,) are set in the current search; ``parent`` (n_blocks,) leads
    back from block to block.
    """

    head: Int32s
    after: Int32s
    before: Int32s
    touch_offset: Int64s
    touch_index: Int32s
    element_mark: Int64s
    block_mark: Int64s
    parent: Int32s
    tick: Int64s


@kernel
def count_and_list(
    table: Int32s, weight: Int32s, block: Int32s, n_blocks: int
) -> tuple[Connectivity, Members]:
    """The counts of blocks at every point, and the elements of every block.

    ``table`` as of :func:`distinct_rows`; moves change ``block`` in place.
    """
    state = connect(table=table, weight=weight, block=block, n_blocks=n_blocks)
    return state, new_members(state)


@helper
def new_members(state: Connectivity) -> Members:
    """Link the elements of each block, ascending, and list those at each point. Linear."""
    # List the elements at each point.
    n = state.block.size
    n_blocks = state.size.size
    fill = state.slot_offset[:-1].copy()
    touching = np.empty(state.slot_block.size, np.int32)
    for i in range(n):
        for j in range(state.table.shape[1]):
            t = state.table[i, j]
            if t >= 0:
                touching[fill[t]] = i
                fill[t] += 1
    members = Members(
        head=np.full(n_blocks, -1, np.int32),
        after=np.empty(n, np.int32),
        before=np.empty(n, np.int32),
        touch_offset=state.slot_offset,
        touch_index=touching,
        element_mark=np.zeros(n, np.int64),
        block_mark=np.zeros(n_blocks, np.int64),
        parent=np.empty(n_blocks, np.int32),
        tick=np.zeros(1, np.int64),
    )
    # From the last one on, so that the lists ascend.
    for i in range(n - 1, -1, -1):
        _link(members, i, int(np.int64(state.block[i])))
    return members


@helper
def _link(members: Members, element: int, block: int) -> None:
    """Put an element first in the list of a block."""
    first = members.head[block]
    members.before[element] = -1
    members.after[element] = first
    if first >= 0:
        members.before[first] = element
    members.head[block] = element


@helper
def move_listed(state: Connectivity, members: Members, element: int, target: int) -> None:
    """Move an element and update the lists. O(arity * blocks at its points)."""
    previous = members.before[element]
    following = members.after[element]
    if previous >= 0:
        members.after[previous] = following
    else:
        members.head[state.block[element]] = following
    if following >= 0:
        members.before[following] = previous
    _link(members, element, target)
    move_element(state, element, target)


@kernel
def move_all(state: Connectivity, members: Members, elements: Int32s, target: int) -> None:
    """Move some elements to a block."""
    for k in range(elements.size):
        i = int(np.int64(elements[k]))
        move_listed(state=state, members=members, element=i, target=target)


@kernel
def evict(
    state: Connectivity,
    members: Members,
    sources: Int64s,
    keep: int,
    cap: int,
    only: int,
    journal: Int32s,
) -> tuple[int, int]:
    """Move elements of some blocks to neighbours with room until each has ``keep`` left.

    Neighbours have room up to ``cap``; ``only`` >= 0 names the one block to move to. It
    ends with the first block that nobody takes elements of while it has more. Returns how
    many blocks were finished, and the number of moves; the elements are written to
    ``journal``.
    """
    moved = 0
    for k in range(sources.size):
        source = sources[k]
        while state.size[source] > keep:
            count = _evict_from(
                state=state,
                members=members,
                source=source,
                count=state.size[source] - keep,
                cap=cap,
                only=only,
                journal=journal[moved:],
            )
            if count == 0:
                return k, moved
            moved += count
    return sources.size, moved


@helper
def _evict_from(
    state: Connectivity,
    members: Members,
    source: int,
    count: int,
    cap: int,
    only: int,
    journal: Int32s,
) -> int:
    """Move up to ``count`` elements to neighbouring blocks with room, best gain first.

    Returns how many. O((boundary + moves * degree) * log), a lazy heap.
    """
    # Queue the elements that some block with room would take.
    most = state.table.shape[1] * HIGH_DEGREE
    heap = new_heap(state.size[source] + most)
    n = ZERO
    moved = 0
    # Elements and blocks are numbers of 64 bits here, so that helpers are compiled once.
    i = int(np.int64(members.head[source]))
    while i >= 0:
        target, gain = best_target(state=state, element=i, cap=cap, only=only)
        if target >= 0:
            n = push(heap=heap, n=n, first=-gain, second=i)
        i = int(np.int64(members.after[i]))
    while moved < count and n > 0:
        # Take the best. Its entry may be stale: of an element that has moved, or whose gain
        # has fallen since, which is queued again.
        cost = heap[0, 0]
        i = heap[0, 1]
        n = pop(heap, n)
        if state.block[i] != source:
            continue
        target, gain = best_target(state=state, element=i, cap=cap, only=only)
        if target < 0:
            continue
        if -gain > cost:
            n = push(heap=heap, n=n, first=-gain, second=i)
            continue
        # Move it, and queue its neighbours with their new gains.
        move_listed(state=state, members=members, element=i, target=target)
        journal[moved] = i
        moved += 1
        heap = with_room(heap, n, most)
        n = _refresh(
            state=state,
            members=members,
            heap=heap,
            n=n,
            element=i,
            source=source,
            cap=cap,
            only=only,
        )
    return moved


@helper
def _refresh(
    state: Connectivity,
    members: Members,
    heap: Int64s,
    n: int,
    element: int,
    source: int,
    cap: int,
    only: int,
) -> int:
    """Push the neighbours that a moved element leaves behind: their gains have risen.

    Returns the length of the heap.
    """
    for j in range(state.table.shape[1]):
        t = state.table[element, j]
        if t < 0 or members.touch_offset[t + 1] - members.touch_offset[t] > HIGH_DEGREE:
            continue
        for p in range(members.touch_offset[t], members.touch_offset[t + 1]):
            k = int(np.int64(members.touch_index[p]))
            if state.block[k] == source:
                target, gain = best_target(state=state, element=k, cap=cap, only=only)
                if target >= 0:
                    n = push(heap=heap, n=n, first=-gain, second=k)
    return n


def move_along_chain(
    state: Connectivity, members: Members, source: int, cap: int, journal: Int32s
) -> tuple[int, int]:
    """Shift elements from block to block along a chain to the nearest one with room.

    Returns how many elements ``source`` has lost, and the number of moves; (0, 0) when no
    block with room is within reach.
    """
    end = _nearest_room(state=state, members=members, source=source, cap=cap)
    if end < 0:
        return 0, 0
    # From the block with room back to the source: each takes from the one before it.
    count = int(min(state.size[source] - cap, cap - state.size[end]))
    moves = 0
    while end != source:
        donor = int(members.parent[end])
        _, count = evict(
            state=state,
            members=members,
            sources=np.array([donor]),
            keep=int(state.size[donor]) - count,
            cap=cap,
            only=end,
            journal=journal,
        )
        moves += count
        end = donor
    return count, moves


@kernel
def _nearest_room(state: Connectivity, members: Members, source: int, cap: int) -> int:
    """The nearest block with room, breadth-first, or -1; ``parent`` leads back from it."""
    queue = np.empty(REACH, np.int32)
    members.tick[0] += 1
    tick = members.tick[0]
    members.block_mark[source] = tick
    queue[0] = source
    begin = 0
    end = 1
    while begin < end:
        b = queue[begin]
        begin += 1
        # The blocks at the points of its elements are its neighbours.
        i = members.head[b]
        while i >= 0:
            for j in range(state.table.shape[1]):
                t = state.table[i, j]
                if t < 0:
                    continue
                for s in range(state.slot_offset[t], state.slot_offset[t] + state.used[t]):
                    other = state.slot_block[s]
                    if members.block_mark[other] == tick:
                        continue
                    members.block_mark[other] = tick
                    members.parent[other] = b
                    if state.size[other] < cap:
                        return other
                    if end < REACH:
                        queue[end] = other
                        end += 1
            i = members.after[i]
    return -1


@helper
def gather(state: Connectivity, members: Members, source: int, out: Int32s) -> int:
    """Write a block's elements to ``out``, breadth-first from a far end; their number."""
    count = _breadth_first(
        state=state, members=members, source=source, root=members.head[source], out=out
    )
    return _breadth_first(
        state=state, members=members, source=source, root=out[count - 1], out=out
    )


@helper
def _breadth_first(
    state: Connectivity, members: Members, source: int, root: int, out: Int32s
) -> int:
    """Write a block's elements to ``out``, breadth-first from ``root``; their number."""
    members.tick[0] += 1
    tick = members.tick[0]
    begin = 0
    end = 0
    spare = members.head[source]
    start = root
    while start >= 0:
        members.element_mark[start] = tick
        out[end] = start
        end += 1
        while begin < end:
            i = out[begin]
            begin += 1
            for j in range(state.table.shape[1]):
                t = state.table[i, j]
                if (
                    t < 0
                    or members.touch_offset[t + 1] - members.touch_offset[t] > HIGH_DEGREE
                ):
                    continue
                for p in range(members.touch_offset[t], members.touch_offset[t + 1]):
                    k = members.touch_index[p]
                    if state.block[k] == source and members.element_mark[k] != tick:
                        members.element_mark[k] = tick
                        out[end] = k
                        end += 1
        # A block in several pieces: go on from an element that was not reached.
        while spare >= 0 and members.element_mark[spare] == tick:
            spare = members.after[spare]
        start = spare
    return end


# A heap of pairs, the least first, as that of heapq, which numba compiles for 1.5 seconds.
@helper
def new_heap(room: int) -> NDArray[np.int64]:
    """An empty heap with room for pairs; the caller keeps their number."""
    return np.empty((room, 2), np.int64)


@helper
def with_room(heap: NDArray[np.int64], n: int, more: int) -> NDArray[np.int64]:
    """The heap, or a copy of its ``n`` pairs with room for ``more``."""
    if n + more <= heap.shape[0]:
        return heap
    larger = new_heap(2 * heap.shape[0] + more)
    for k in range(n):
        larger[k, 0] = heap[k, 0]
        larger[k, 1] = heap[k, 1]
    return larger


@helper
def push(heap: NDArray[np.int64], n: int, first: int, second: int) -> int:
    """Add a pair to ``n`` others; returns their number. O(log n)."""
    hole = n
    while hole > 0:
        above = (hole - 1) // 2
        if not _less(a=first, b=second, c=heap[above, 0], d=heap[above, 1]):
            break
        heap[hole, 0] = heap[above, 0]
        heap[hole, 1] = heap[above, 1]
        hole = above
    heap[hole, 0] = first
    heap[hole, 1] = second
    return n + 1


@helper
def pop(heap: NDArray[np.int64], n: int) -> int:
    """Remove the least pair, ``heap[0]``; returns how many are left. O(log n)."""
    first = heap[n - 1, 0]
    second = heap[n - 1, 1]
    hole = 0
    while 2 * hole + 1 < n - 1:
        below = 2 * hole + 1
        if below + 1 < n - 1 and _less(
            a=heap[below + 1, 0], b=heap[below + 1, 1], c=heap[below, 0], d=heap[below, 1]
        ):
            below += 1
        if not _less(a=heap[below, 0], b=heap[below, 1], c=first, d=second):
            break
        heap[hole, 0] = heap[below, 0]
        heap[hole, 1] = heap[below, 1]
        hole = below
    heap[hole, 0] = first
    heap[hole, 1] = second
    return n - 1


@helper
def _less(a: int, b: int, c: int, d: int) -> bool:
    """Whether the pair (a, b) stands before the pair (c, d)."""
    return a < c or (a == c and b < d)
