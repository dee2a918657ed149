"""Refinement of parts on one level: caps first, then rounds of local searches."""

from typing import NamedTuple

import numpy as np

from ...kernels import Int32s, Int64s, arrayless, kernel
from .graph import WeightedGraph
from .parts import (
    GraphParts,
    emptiest_part,
    excess_and_cut,
    is_over,
    move,
    parts_with_loads,
)
from .queue import take_out
from .random import shuffle
from .search import RELIEF, LocalSearch, consider, new_search, run_search
from .tuning import SearchEffort


class Balance(NamedTuple):
    """What parts should weigh, and may."""

    aim: Int64s  # (k, c)
    cap: Int64s  # (k, c)


class Figures(NamedTuple):
    """How good parts are: the less, the better, the excess first."""

    excess: int  # weight over the caps
    cut: int  # twice the weight of the edges cut


def refined(
    graph: WeightedGraph,
    part: Int32s,
    balance: Balance,
    effort: SearchEffort,
    seed: int,
    *,
    grow: bool = False,
    loose: bool = False,
) -> Figures:
    """Refine parts in place; their figures afterwards.

    With ``grow`` all vertices are in part 0, and part 1 grows first. With ``loose`` a part
    may weigh the heaviest vertex more than its aim, since vertices of a coarse graph fit no
    tighter.
    """
    excess, cut = refine(
        graph,
        part,
        balance.aim,
        balance.cap,
        grow,
        loose,
        effort.rounds,
        effort.patience,
        effort.moves_per_border_vertex,
        seed,
    )
    return Figures(excess, cut)


@kernel
def refine(
    graph: WeightedGraph,
    part: Int32s,
    aim: Int64s,
    cap: Int64s,
    grow: bool,
    loose: bool,
    rounds: int,
    patience: int,
    moves_per_border_vertex: int,
    seed: int,
) -> tuple[int, int]:
    """Refine parts in place; how much they are over their caps, and twice the cut."""
    n_columns = cap.shape[1]
    parts = parts_with_loads(graph, part, cap.copy())
    search = new_search(part.size)
    order = np.empty(part.size, np.int32)
    if loose:
        loosen_caps(graph, parts, aim)
    # Part 1 grows while part 0 is over its aim.
    cap_of_grown = np.empty(n_columns, np.int64)
    for j in range(n_columns):
        cap_of_grown[j] = parts.cap[0, j]
        if grow:
            parts.cap[0, j] = aim[0, j]
    relieve_parts(graph, parts, search, order, seed)
    for j in range(n_columns):
        parts.cap[0, j] = cap_of_grown[j]
    # Search from the whole border, then from its vertices one after the other.
    moves = 0
    most_moves = 0
    for turn in range(rounds):
        count = vertices_at_border(graph, part, order)
        shuffle(order, count, seed + turn)
        search.is_moved[:] = 0
        if turn == 0:
            most_moves = moves_per_border_vertex * count
            for i in range(count):
                consider(graph, parts, search, order[i])
            gained, n_moved = run_search(graph, parts, search, patience)
        else:
            # Single starts let many small searches climb out of local optima [SS11].
            gained, n_moved = search_from_each(
                graph, parts, search, order, count, patience, most_moves - moves
            )
        moves += n_moved
        if moves >= most_moves or (turn > 0 and gained == 0):
            break
    return excess_and_cut(graph, parts)


@arrayless
def loosen_caps(graph: WeightedGraph, parts: GraphParts, aim: Int64s) -> None:
    """Let each part weigh the heaviest vertex more than its aim."""
    for j in range(aim.shape[1]):
        heaviest = 0
        for v in range(parts.part.size):
            heaviest = max(heaviest, graph.vertex_weight[v, j])
        for p in range(aim.shape[0]):
            parts.cap[p, j] = max(parts.cap[p, j], aim[p, j] + heaviest)


@arrayless
def vertices_at_border(graph: WeightedGraph, part: Int32s, border: Int32s) -> int:
    """Write the vertices with neighbours in other parts; their number. O(edges)."""
    count = 0
    for v in range(part.size):
        for e in range(graph.offset[v], graph.offset[v + 1]):
            if part[graph.neighbour[e]] != part[v]:
                border[count] = v
                count += 1
                break
    return count


@arrayless
def search_from_each(
    graph: WeightedGraph,
    parts: GraphParts,
    search: LocalSearch,
    border: Int32s,
    count: int,
    patience: int,
    most_moves: int,
) -> tuple[int, int]:
    """Search from each of some vertices, those first that gain most; gain and moves.

    Searches end after about ``most_moves`` moves of all.
    """
    # Sort the vertices by the gains of their moves.
    queue = search.queue
    for i in range(count):
        consider(graph, parts, search, border[i])
    n_starts = 0
    while queue.length[0] > 0:
        v = queue.vertex[0]
        take_out(queue, v)
        border[n_starts] = v
        n_starts += 1
    # Search from one after the other.
    gained = 0
    moves = 0
    for i in range(n_starts):
        if moves >= most_moves:
            break
        v = border[i]
        if search.is_moved[v] == 0:
            consider(graph, parts, search, v)
            gain, n_moved = run_search(graph, parts, search, patience)
            gained += gain
            moves += n_moved
    return gained, moves


@arrayless
def relieve_parts(
    graph: WeightedGraph, parts: GraphParts, search: LocalSearch, order: Int32s, seed: int
) -> None:
    """Vertices leave parts that are over their caps, those first that lose least.

    Where no neighbouring part has room, a random vertex goes to the part that has most, and
    others follow it.
    """
    over = False
    for p in range(parts.cap.shape[0]):
        over = over or is_over(parts, p)
    if not over:
        return
    # Move vertices to neighbouring parts with room, by least loss.
    for i in range(order.size):
        order[i] = i
    shuffle(order, order.size, seed)
    for v in order:
        if is_over(parts, parts.part[v]):
            consider(graph, parts, search, v)
    run_search(graph, parts, search, RELIEF)
    for v in order:
        source = parts.part[v]
        if not is_over(parts, source) or parts.members[source] == 1:
            continue
        # Where a part is shut in by full ones, plant a vertex in the emptiest part, and let
        # its neighbours follow.
        target = emptiest_part(graph, parts, v)
        if target < 0:
            continue
        move(graph, parts, v, target)
        search.is_moved[v] = 1
        for e in range(graph.offset[v], graph.offset[v + 1]):
            u = graph.neighbour[e]
            if search.is_moved[u] == 0 and is_over(parts, parts.part[u]):
                consider(graph, parts, search, u)
        run_search(graph, parts, search, RELIEF)
