"""Blocks within a hard cap: surplus elements move to neighbours or to new blocks.

A partitioner that only balances leaves blocks over the cap, empty ones and slivers. Here
elements leave an overfull block for neighbours with room, best connectivity gain first;
where these are full too, elements are passed on along the shortest chain of blocks to one
with room; where there is none within reach, the block is split evenly. Slivers go to their
neighbours where these have room.
"""

import numpy as np

from ..kernels import Int32s, Int64s, helper, kernel
from .connectivity import ANY_BLOCK, Connectivity, distinct_rows
from .shift import (
    Members,
    count_and_list,
    evict,
    gather,
    move_all,
    move_along_chain,
    move_listed,
)

# A block smaller than the cap over this is a sliver.
SLIVER = 4


def repair(
    table: Int32s, n_points: int, block_of_element: Int32s, n_asked: int, block_size: int
) -> tuple[Int32s, int, dict[str, int]]:
    """Blocks of at most ``block_size`` elements, the bound of their numbers, and notes.

    The partitioner was asked for ``n_asked`` blocks, and ``n_asked * block_size`` is at
    least n. The blocks are numbered below ``n_asked + max(1, n_asked // 100)``; some
    numbers may be unused. ``notes`` counts the elements moved, blocks split and slivers
    merged. Linear in the incidences, plus for each element over the cap its block's
    incidences.
    """
    limit = n_asked + max(1, n_asked // 100)
    # A copy, as it may be written to, like the rows that annealing passes: the kernel is
    # then compiled once for both.
    rows = np.array(distinct_rows(table))
    weight = np.ones(n_points, np.int32)
    block = np.array(block_of_element, dtype=np.int32)
    moved, split_blocks, merged = enforce_cap(
        rows=rows, weight=weight, block=block, limit=limit, cap=block_size
    )
    return block, limit, {"moved": moved, "split": split_blocks, "merged": merged}


def enforce_cap(
    rows: Int32s, weight: Int32s, block: Int32s, limit: int, cap: int
) -> tuple[int, int, int]:
    """Bring every block within the cap; ``block`` is changed in place.

    ``rows`` as of :func:`distinct_rows`; block numbers are below ``limit``, and ``limit *
    cap`` is at least n. Returns the number of moves, of blocks split and of slivers merged.
    The steps are kernels of their own, so that a step that no block needs is not compiled.
    """
    state, members = count_and_list(table=rows, weight=weight, block=block, n_blocks=limit)
    journal = np.empty(block.size, np.int32)
    cursor = np.zeros(2, np.int64)
    moved = 0
    split = 0
    merged = 0
    # Empty overfull blocks to the cap: into neighbours with room, else along a chain to the
    # nearest block with room, else into new blocks. None of these makes another one
    # overfull.
    overfull = np.flatnonzero(state.size > cap)
    while overfull.size:
        done, moves = evict(
            state=state,
            members=members,
            sources=overfull,
            keep=cap,
            cap=cap,
            only=ANY_BLOCK,
            journal=journal,
        )
        moved += moves
        overfull = overfull[done:]
        if overfull.size:
            source = int(overfull[0])
            count, moves = move_along_chain(
                state=state, members=members, source=source, cap=cap, journal=journal
            )
            if count == 0:
                moves += _divide(
                    state=state,
                    members=members,
                    source=source,
                    cap=cap,
                    cursor=cursor,
                    order=journal,
                )
                split += 1
            moved += moves
    # Dissolve slivers, but for those that have grown beside others.
    least = (cap + SLIVER - 1) // SLIVER
    for source in np.flatnonzero((state.size > 0) & (state.size < least)).tolist():
        if state.size[source] < least:
            count = _merge_sliver(
                state=state, members=members, source=source, cap=cap, journal=journal
            )
            moved += count
            merged += count > 0
    return moved, split, merged


@kernel
def _divide(
    state: Connectivity,
    members: Members,
    source: int,
    cap: int,
    cursor: Int64s,
    order: Int32s,
) -> int:
    """Split a block evenly into unused ones; surplus left over goes where there is room.

    Returns the number of moves. ``source`` is within the cap afterwards, and no other block
    is over it, since all blocks together have room for every element.
    """
    # Cut the block, breadth-first, into equal parts; the first one stays.
    count = gather(state=state, members=members, source=source, out=order)
    parts = (count + cap - 1) // cap
    moves = 0
    for part in range(1, parts):
        unused = _next_block(state=state, cursor=cursor, which=0, below=1)
        for k in range(part * count // parts, (part + 1) * count // parts):
            # Without unused blocks only the surplus moves.
            target = unused
            if unused < 0 and state.size[source] > cap:
                target = _next_block(state=state, cursor=cursor, which=1, below=cap)
            if target >= 0:
                element = int(np.int64(order[k]))
                move_listed(state=state, members=members, element=element, target=target)
                moves += 1
    return moves


@helper
def _next_block(state: Connectivity, cursor: Int64s, which: int, below: int) -> int:
    """The next block with fewer than ``below`` elements, -1 if there is none.

    The search goes on from the block found last by the same ``which`` of two cursors.
    """
    n_blocks = state.size.size
    for _ in range(n_blocks):
        b = cursor[which]
        if state.size[b] < below:
            return b
        cursor[which] = (b + 1) % n_blocks
    return -1


def _merge_sliver(
    state: Connectivity, members: Members, source: int, cap: int, journal: Int32s
) -> int:
    """Merge a whole block into its neighbours, or leave it as it is.

    Returns the number of elements moved.
    """
    done, count = evict(
        state=state,
        members=members,
        sources=np.array([source]),
        keep=0,
        cap=cap,
        only=ANY_BLOCK,
        journal=journal,
    )
    if done:
        return count
    # Some have no room elsewhere: put the others back.
    move_all(state=state, members=members, elements=journal[:count], target=source)
    return 0
