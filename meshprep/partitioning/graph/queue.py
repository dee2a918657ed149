"""A priority queue of vertices: the one whose move gains most comes first."""

from typing import NamedTuple

from ...kernels import Int32s, Int64s, arrayless

# Places of vertices that are in no queue.
OUTSIDE = -1


class GainQueue(NamedTuple):
    """A binary heap of vertices by their gains."""

    vertex: Int32s  # (n,): the first ``length[0]`` are the heap
    gain: Int64s  # (n,): of the vertex in each place of the heap
    place: Int32s  # (n,): where a vertex stands in the heap, or OUTSIDE
    length: Int64s  # (1,): number of vertices in the heap


@arrayless
def put(queue: GainQueue, v: int, gain: int) -> None:
    """Put a vertex in, or give it another gain. O(log length)."""
    hole = queue.place[v]
    if hole == OUTSIDE:
        hole = queue.length[0]
        queue.length[0] += 1
    # The hole rises above vertices of less gain.
    while hole > 0:
        above = (hole - 1) >> 1
        if queue.gain[above] >= gain:
            break
        u = queue.vertex[above]
        queue.vertex[hole] = u
        queue.gain[hole] = queue.gain[above]
        queue.place[u] = hole
        hole = above
    # Or it sinks below vertices of more gain.
    while True:
        below = 2 * hole + 1
        if below + 1 < queue.length[0] and queue.gain[below + 1] > queue.gain[below]:
            below += 1
        if below >= queue.length[0] or queue.gain[below] <= gain:
            break
        u = queue.vertex[below]
        queue.vertex[hole] = u
        queue.gain[hole] = queue.gain[below]
        queue.place[u] = hole
        hole = below
    queue.vertex[hole] = v
    queue.gain[hole] = gain
    queue.place[v] = hole


@arrayless
def take_out(queue: GainQueue, v: int) -> None:
    """Take a vertex out, if it is in. O(log length)."""
    hole = queue.place[v]
    if hole == OUTSIDE:
        return
    queue.place[v] = OUTSIDE
    queue.length[0] -= 1
    end = queue.length[0]
    if hole < end:
        # The last vertex takes the free place, and moves from there.
        last = queue.vertex[end]
        queue.place[last] = hole
        put(queue, last, queue.gain[end])
