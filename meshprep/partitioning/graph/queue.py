"""A priority queue of vertices: the one whose move gains most comes first."""

from typing import NamedTuple

import numpy as np

from ...kernels import Int32s, Int64s, arrayless, helper, inlined

# Places of vertices that are in no queue.
OUTSIDE = -1


class GainQueue(NamedTuple):
    """A binary heap of vertices by their gains."""

    vertex: Int32s  # (n,): the first ``length[0]`` are the heap
    position: Int32s  # (n,): where a vertex stands in ``vertex``, or OUTSIDE
    gain: Int64s  # (n,): of each vertex
    length: Int64s  # (1,): number of vertices in the heap


@inlined
def _hold(queue: GainQueue, position: int, v: int) -> None:
    """Put a vertex into a position of the heap."""
    queue.vertex[position] = v
    queue.position[v] = position


@arrayless
def put(queue: GainQueue, v: int, gain: int) -> None:
    """Put a vertex in, or give it another gain. O(log length)."""
    position = queue.position[v]
    if position == OUTSIDE:
        position = queue.length[0]
        queue.length[0] += 1
    queue.gain[v] = gain
    # Let it rise above vertices of less gain.
    while position > 0:
        above = (position - 1) >> 1
        u = queue.vertex[above]
        if queue.gain[u] >= gain:
            break
        _hold(queue, position, u)
        position = above
    # Let it sink below vertices of more gain.
    length = queue.length[0]
    while 2 * position + 1 < length:
        below = 2 * position + 1
        if below + 1 < length:
            left = queue.gain[queue.vertex[below]]
            right = queue.gain[queue.vertex[below + 1]]
            if right > left:
                below += 1
        u = queue.vertex[below]
        if queue.gain[u] <= gain:
            break
        _hold(queue, position, u)
        position = below
    _hold(queue, position, v)


@arrayless
def take_out(queue: GainQueue, v: int) -> None:
    """Take a vertex out, if it is in. O(log length)."""
    position = queue.position[v]
    if position == OUTSIDE:
        return
    queue.position[v] = OUTSIDE
    queue.length[0] -= 1
    last = queue.vertex[queue.length[0]]
    if last != v:
        # The last vertex takes the free position, and moves from there.
        _hold(queue, position, last)
        put(queue, last, queue.gain[last])


@helper
def empty_queue(n: int) -> GainQueue:
    """An empty queue for vertices below ``n``."""
    position = np.empty(n, np.int32)
    position[:] = OUTSIDE
    return GainQueue(
        vertex=np.empty(n, np.int32),
        position=position,
        gain=np.empty(n, np.int64),
        length=np.zeros(1, np.int64),
    )
