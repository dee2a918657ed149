"""Local searches: vertices move between parts, and what did not gain is taken back.

A search starts from vertices at a border and goes on with the neighbours of those that it
moved [SS11]. It moves the vertex of the largest gain even where that is a loss [FM82], and
ends when moves have not gained for long. Then it goes back to its best state.
"""

from typing import NamedTuple

import numpy as np

from ...kernels import Int32s, arrayless, helper
from .graph import WeightedGraph
from .parts import GraphParts, best_move, has_room, is_over, move
from .queue import OUTSIDE, GainQueue, empty_queue, put, take_out

# The patience of a search that relieves parts. Of a constant of Python, numba would make
# another type than of an argument.
RELIEF: int = np.int64(-1)  # type: ignore[assignment]


class LocalSearch(NamedTuple):
    """The queue of a search, and its moves."""

    queue: GainQueue
    target: Int32s  # (n,): where a vertex in the queue wants to go
    is_moved: (
        Int32s  # (n,): 1 for vertices that stay where a search of this round moved them
    )
    moved: Int32s  # (n,): the vertices that a search moved, in sequence
    origin: Int32s  # (n,): the parts that these came from


@helper
def new_search(n: int) -> LocalSearch:
    """A search with an empty queue."""
    return LocalSearch(
        queue=empty_queue(n),
        target=np.empty(n, np.int32),
        is_moved=np.zeros(n, np.int32),
        moved=np.empty(n, np.int32),
        origin=np.empty(n, np.int32),
    )


@arrayless
def consider(graph: WeightedGraph, parts: GraphParts, search: LocalSearch, v: int) -> None:
    """Put the best move of a vertex into the queue, or take it out if there is none."""
    target, gain = best_move(graph, parts, v)
    if target < 0:
        take_out(search.queue, v)
    else:
        search.target[v] = target
        put(search.queue, v, gain)


@arrayless
def follow(
    graph: WeightedGraph,
    parts: GraphParts,
    search: LocalSearch,
    u: int,
    weight: int,
    source: int,
    target: int,
) -> None:
    """Update the move of ``u``, whose neighbour over an edge moved.

    The gain changes by the edge's weight where the best target cannot have changed.
    """
    queue = search.queue
    if queue.position[u] != OUTSIDE:
        # An edge to the part that it leaves became one to its target: it gains twice.
        if parts.part[u] == source and search.target[u] == target:
            put(queue, u, queue.gain[u] + 2 * weight)
            return
        # It would now leave a neighbour behind.
        if parts.part[u] == target and search.target[u] != source:
            put(queue, u, queue.gain[u] - weight)
            return
    consider(graph, parts, search, u)


@arrayless
def run_search(
    graph: WeightedGraph,
    parts: GraphParts,
    search: LocalSearch,
    patience: int,
) -> tuple[int, int]:
    """Run a search from the vertices in the queue: what the cut gained, and all moves.

    It ends after ``patience`` moves without a gain. With the patience RELIEF vertices leave
    parts that are over their caps, and no others; nothing is taken back.
    """
    relieve = patience == RELIEF
    queue = search.queue
    n_moved = 0
    n_best = 0
    gained = 0
    most = 0
    while queue.length[0] > 0 and (relieve or n_moved - n_best < patience):
        # Take the vertex of the largest gain, even where that is a loss [FM82].
        v = queue.vertex[0]
        source = parts.part[v]
        target = search.target[v]
        if relieve and not is_over(parts, source):
            take_out(queue, v)
            continue
        # The parts have changed since it was rated: rate it again.
        if parts.members[source] == 1 or not has_room(graph, parts, target, v):
            consider(graph, parts, search, v)
            continue
        take_out(queue, v)
        move(graph, parts, v, target)
        # Record the move, to take it back if no gain follows.
        search.moved[n_moved] = v
        search.origin[n_moved] = source
        search.is_moved[v] = 1
        n_moved += 1
        gained += queue.gain[v]
        # The prefix of moves with the largest gain is the best state so far.
        if relieve or gained > most:
            most = gained
            n_best = n_moved
        # Neighbours that have not moved in this round follow into the queue.
        for e in range(graph.offset[v], graph.offset[v + 1]):
            u = graph.neighbour[e]
            if search.is_moved[u] == 0 and (not relieve or is_over(parts, parts.part[u])):
                weight = graph.edge_weight[e]
                follow(graph, parts, search, u, weight, source, target)
    # Empty the queue, and go back to the best state.
    while queue.length[0] > 0:
        take_out(queue, queue.vertex[queue.length[0] - 1])
    for i in range(n_moved - 1, n_best - 1, -1):
        v = search.moved[i]
        move(graph, parts, v, search.origin[i])
        search.is_moved[v] = 0
    return most, n_moved
