"""Local searches: vertices move between parts, and what did not gain is taken back.

A search starts from vertices at a border and goes on with the neighbours of those that it
moved [SS11]. It moves the vertex of the largest gain even where that is a loss [FM82], and
ends when moves have not gained for long. Then it goes back to its best state.
"""

from typing import Any, NamedTuple

import numpy as np

from ...kernels import Int32s, Int64s, arrayless, helper
from .graph import WeightedGraph
from .parts import GraphParts, emptiest_part, has_room, is_over, move, relief
from .queue import OUTSIDE, GainQueue, put, take_out
from .random import shuffle

# What moves are for: a smaller cut, or less above the caps. Of a constant of Python, numba
# would make another type than of an argument.
GAIN: int = np.int64(0)  # type: ignore[assignment]
RELIEF: int = np.int64(1)  # type: ignore[assignment]
# No vertex, of the type of vertices.
NOBODY: Any = np.int32(-1)


class LocalSearch(NamedTuple):
    """The queue of a search, and its moves."""

    queue: GainQueue
    target: Int64s  # (n,): where a vertex in the queue wants to go
    is_moved: (
        Int32s  # (n,): 1 for vertices that stay where a search of this round moved them
    )
    moved: Int32s  # (n,): the vertices that a search moved, in sequence
    origin: Int64s  # (n,): the parts that these came from


@helper
def new_search(n: int) -> LocalSearch:
    """A search with an empty queue, in which no round has begun."""
    heap_position = np.empty(n, np.int32)
    for v in range(n):
        heap_position[v] = OUTSIDE
    queue = GainQueue(
        vertex=np.empty(n, np.int32),
        gain=np.empty(n, np.int64),
        place=heap_position,
        length=np.empty(1, np.int64),
    )
    queue.length[0] = 0
    return LocalSearch(
        queue=queue,
        target=np.empty(n, np.int64),
        is_moved=np.empty(n, np.int32),
        moved=np.empty(n, np.int32),
        origin=np.empty(n, np.int64),
    )


@arrayless
def consider(
    graph: WeightedGraph, parts: GraphParts, search: LocalSearch, v: int, goal: int
) -> None:
    """Put the best move of a vertex into the queue, or take it out if there is none.

    It goes to the part around it to which its edges weigh most, if that has room; with the
    goal RELIEF, if that is a relief. Of equals the part with the most room in the first
    column is taken. The last vertex of a part stays.
    """
    source = parts.part[v]
    target = -1
    most = 0
    most_room = 0
    inside = 0
    begin = graph.offset[v]
    if parts.members[source] > 1:
        for i in range(begin, begin + parts.n_near[v]):
            # One type for parts, whatever array they come from.
            p = int(np.int64(parts.near[i]))
            tie = parts.tie[i]
            room = parts.cap[p, 0] - parts.load[p, 0]
            if p == source:
                inside = tie
            elif tie > most or (tie == most and room > most_room):
                if goal == RELIEF:
                    is_allowed = relief(graph, parts, v, p) > 0
                else:
                    is_allowed = has_room(graph, parts, p, v)
                if is_allowed:
                    target = p
                    most = tie
                    most_room = room
    if target < 0:
        take_out(search.queue, v)
    else:
        search.target[v] = target
        put(search.queue, v, most - inside)


@arrayless
def run_search(
    graph: WeightedGraph,
    parts: GraphParts,
    search: LocalSearch,
    patience: int,
) -> tuple[int, int]:
    """Run a search from the vertices in the queue: what the cut gained, and all moves.

    It ends after ``patience`` moves without a gain.
    """
    queue = search.queue
    n_moved = 0
    n_best = 0
    gained = 0
    most = 0
    while queue.length[0] > 0 and n_moved - n_best < patience:
        # Take the vertex of the largest gain, even where that is a loss [FM82].
        v = queue.vertex[0]
        source = parts.part[v]
        target = search.target[v]
        # The parts have changed since it was rated: rate it again.
        if parts.members[source] == 1 or not has_room(graph, parts, target, v):
            consider(graph, parts, search, v, GAIN)
            continue
        gained += queue.gain[0]
        take_out(queue, v)
        move(graph, parts, v, target)
        # Record the move, to take it back if no gain follows.
        search.moved[n_moved] = v
        search.origin[n_moved] = source
        search.is_moved[v] = 1
        n_moved += 1
        # The prefix of moves with the largest gain is the best state so far.
        if gained > most:
            most = gained
            n_best = n_moved
        # Neighbours that have not moved in this round follow into the queue.
        for e in range(graph.offset[v], graph.offset[v + 1]):
            u = graph.neighbour[e]
            if search.is_moved[u] == 0:
                consider(graph, parts, search, u, GAIN)
    # Empty the queue, and go back to the best state.
    for i in range(queue.length[0]):
        queue.place[queue.vertex[i]] = OUTSIDE
    queue.length[0] = 0
    for i in range(n_moved - 1, n_best - 1, -1):
        v = search.moved[i]
        move(graph, parts, v, search.origin[i])
        search.is_moved[v] = 0
    return most, n_moved


@arrayless
def relieve_parts(
    graph: WeightedGraph, parts: GraphParts, search: LocalSearch, order: Int32s, seed: int
) -> None:
    """Vertices leave parts that are over their caps, those first that lose least.

    Where no move to a neighbouring part is a relief, a random vertex goes to the part that
    has most room, and others follow it.
    """
    over = False
    for v in range(order.size):
        over = over or is_over(parts, parts.part[v])
    if not over:
        return
    for i in range(order.size):
        order[i] = i
        search.is_moved[i] = 0
    shuffle(order, order.size, seed)
    for v in order:
        if is_over(parts, parts.part[v]):
            consider(graph, parts, search, v, RELIEF)
    n_tried = 0
    while n_tried < order.size:
        # Move a vertex to a neighbouring part.
        v = next_to_leave(graph, parts, search)
        if v >= 0:
            target = search.target[v]
        else:
            # Where a part is shut in by full ones, plant a vertex in the emptiest part, and
            # let its neighbours follow.
            v = order[n_tried]
            n_tried += 1
            target = emptiest_part(graph, parts, v)
            if target < 0:
                continue
        move(graph, parts, v, target)
        search.is_moved[v] = 1
        # Neighbours follow, and those of a target that got over a cap.
        for e in range(graph.offset[v], graph.offset[v + 1]):
            u = graph.neighbour[e]
            if search.is_moved[u] == 0 and is_over(parts, parts.part[u]):
                consider(graph, parts, search, u, RELIEF)


@arrayless
def next_to_leave(graph: WeightedGraph, parts: GraphParts, search: LocalSearch) -> int:
    """Take out the vertex in the queue that loses least and is a relief; -1 for none."""
    queue = search.queue
    while queue.length[0] > 0:
        v = queue.vertex[0]
        # The parts may have changed since its move was rated.
        if parts.members[parts.part[v]] == 1 or not is_over(parts, parts.part[v]):
            take_out(queue, v)
        elif relief(graph, parts, v, search.target[v]) > 0:
            take_out(queue, v)
            return v
        else:
            consider(graph, parts, search, v, RELIEF)
    return NOBODY
