"""Refinement of parts on one level: caps first, then rounds of local searches."""

from typing import NamedTuple

import numpy as np

from ...kernels import Int32s, Int64s, arrayless, kernel
from ...kernels.arrays import ZERO
from .graph import WeightedGraph
from .parts import (
    GraphParts,
    add_vertices,
    empty_parts,
    excess_and_cut,
)
from .queue import take_out
from .random import shuffle
from .search import GAIN, LocalSearch, consider, new_search, relieve_parts, run_search
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
    tries: int = 0,
    loose: bool = False,
) -> Figures:
    """Refine parts in place; their figures afterwards.

    With ``tries`` there are two parts, which ``part`` does not say: part 1 grows from a
    random vertex, and of several tries the best is kept. With ``loose`` a part may weigh
    the heaviest vertex more than its aim, since vertices of a coarse graph fit no tighter.
    """
    # A copy, which the kernel changes for a while.
    cap = balance.cap.copy()
    if loose:
        cap = np.maximum(cap, balance.aim + graph.vertex_weight.max(axis=0))
    excess, cut = refine(
        graph,
        part,
        balance.aim,
        cap,
        tries,
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
    tries: int,
    rounds: int,
    patience: int,
    moves_per_border_vertex: int,
    seed: int,
) -> tuple[int, int]:
    """Refine parts in place; how much they are over their caps, and twice the cut."""
    n = part.size
    parts = empty_parts(graph, part, cap)
    search = new_search(n)
    order = np.empty(n, np.int32)
    # The best try.
    best = np.empty(n, np.int32)
    excess = 0
    cut = 0
    for turn in range(max(1, tries)):
        if tries > 0:
            for v in range(n):
                part[v] = 0
        add_vertices(graph, parts)
        # Part 1 grows while part 0 is over its aim.
        cap_of_grown = parts.cap[0, 0]
        if tries > 0:
            parts.cap[0, 0] = min(cap_of_grown, aim[0, 0])
        relieve_parts(graph, parts, search, order, seed + turn)
        parts.cap[0, 0] = cap_of_grown
        search_in_rounds(
            graph, parts, search, order, rounds, patience, moves_per_border_vertex, seed
        )
        excess_of_turn, cut_of_turn = excess_and_cut(graph, parts)
        is_better = excess_of_turn < excess or (
            excess_of_turn == excess and cut_of_turn < cut
        )
        if turn == 0 or is_better:
            for v in range(n):
                best[v] = part[v]
            excess = excess_of_turn
            cut = cut_of_turn
    for v in range(n):
        part[v] = best[v]
    return excess, cut


@arrayless
def search_in_rounds(
    graph: WeightedGraph,
    parts: GraphParts,
    search: LocalSearch,
    order: Int32s,
    rounds: int,
    patience: int,
    moves_per_border_vertex: int,
    seed: int,
) -> None:
    """Search from the whole border, then from its vertices one after the other.

    Those first that gain most. Searches end after about so many moves of all.
    """
    queue = search.queue
    moves = 0
    most_moves = 0
    for turn in range(rounds):
        # Put the vertices with neighbours in other parts into the queue, in random order.
        n_starts = ZERO
        for v in range(order.size):
            search.is_moved[v] = 0
            begin = graph.offset[v]
            n_parts = parts.n_near[v]
            if n_parts > 1 or (n_parts == 1 and parts.near[begin] != parts.part[v]):
                order[n_starts] = v
                n_starts += 1
        shuffle(order, n_starts, seed + turn)
        for i in range(n_starts):
            consider(graph, parts, search, order[i], GAIN)
        if turn == 0:
            # One search has all of them.
            most_moves = moves_per_border_vertex * n_starts
            n_searches = 1
        else:
            # Single starts let many small searches climb out of local optima [SS11].
            n_searches = queue.length[0]
            for i in range(n_searches):
                order[i] = queue.vertex[0]
                take_out(queue, order[i])
        gained = 0
        for i in range(n_searches):
            if turn > 0:
                if moves >= most_moves:
                    break
                v = order[i]
                if search.is_moved[v] == 1:
                    continue
                consider(graph, parts, search, v, GAIN)
            gain, n_moved = run_search(graph, parts, search, patience)
            gained += gain
            moves += n_moved
        if moves >= most_moves or (turn > 0 and gained == 0):
            break
