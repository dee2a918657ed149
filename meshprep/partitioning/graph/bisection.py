"""Recursive bisection of a small graph, each time by the multilevel scheme."""

from dataclasses import dataclass

import numpy as np

from ...kernels import Bools, Float64s, Int32s, Int64s
from .coarsening import Hierarchy, coarsened, contract
from .graph import WeightedGraph, number_of_vertices
from .refinement import Balance, Figures, refined
from .tuning import GraphTuning, SearchEffort

# Seeds of the restarts of a bisection are so far from each other.
FAR = 1000


def caps(weight: Float64s) -> Int64s:
    """The smallest whole numbers not below these, but for errors of rounding."""
    return np.ceil(np.round(weight, 6)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class RecursiveBisection:
    """Parts of a graph, which are filled in by :meth:`split`."""

    most: Float64s  # (k, c): what each part may weigh
    shares: Float64s  # (k,): add up to 1
    tuning: GraphTuning
    part: Int32s  # (n,): of each vertex

    def split(
        self, graph: WeightedGraph, members: Int32s, first: int, last: int, seed: int
    ) -> None:
        """Cut the graph of some vertices into the parts from ``first`` to ``last - 1``."""
        if last - first == 1 or not members.size:
            self.part[members] = first
            return
        # Bisect the vertices, and then each half, until a part is left [KK98].
        middle = (first + last + 1) // 2
        # A lone vertex goes to the first half: there is nothing to bisect.
        half = np.zeros(1, np.int32)
        if members.size > 1:
            balance = self._balance_of_halves(graph, first, middle, last)
            half = bisected(graph, balance, self.tuning, seed)
        for side, begin, end in ((0, first, middle), (1, middle, last)):
            inside = half == side
            of_half = members[inside]
            graph_of_half = graph
            if end - begin > 1:
                graph_of_half = _subgraph(graph, inside)
            self.split(graph_of_half, of_half, begin, end, 2 * seed + 1 + side)

    def _balance_of_halves(
        self, graph: WeightedGraph, first: int, middle: int, last: int
    ) -> Balance:
        """Aims and caps of both halves: the room that is left is for all cuts to come."""
        share_of_first = self.shares[first:middle].sum()
        share_of_second = self.shares[middle:last].sum()
        share = np.array([share_of_first, share_of_second])
        weight = graph.vertex_weight.sum(axis=0)
        aim = (share / share.sum())[:, None] * weight
        # Each cut to come may use its share of the room that is left.
        cuts_to_come = (last - first - 1).bit_length()
        most = self.most[first:last].sum(axis=0)
        room = most / np.maximum(weight, 1) - 1
        room_of_cut = np.maximum(room, 0) / cuts_to_come
        return Balance(aim=caps(aim), cap=caps(aim * (1 + room_of_cut)))


def _subgraph(graph: WeightedGraph, inside: Bools) -> WeightedGraph:
    """The graph of some vertices, numbered in their sequence."""
    number = np.cumsum(inside, dtype=np.int32) - np.int32(1)
    number[~inside] = -1
    return contract(graph, number, int(np.count_nonzero(inside)))


def bisected(
    graph: WeightedGraph, balance: Balance, tuning: GraphTuning, seed: int
) -> Int32s:
    """The half, 0 or 1, of each vertex.

    Several bisections of a coarse graph, each by a hierarchy of its own, are compared.
    """
    # Coarsen part of the way: restarts from there are cheap.
    hierarchy = coarsened(graph, tuning.restart_size, tuning.heaviest_cluster, seed)
    coarse = hierarchy.graphs[-1]
    loose = coarse is not graph
    # Keep the best of several bisections from different seeds.
    best, least = _bisected_once(coarse, balance, tuning, seed, loose=loose)
    if number_of_vertices(coarse) > tuning.smallest_size:
        for restart in range(1, tuning.restarts):
            half, figures = _bisected_once(
                coarse, balance, tuning, seed + FAR * restart, loose=loose
            )
            if figures < least:
                best = half
                least = figures
    # Carry it back to the finest graph, within the caps from here on.
    half, _ = refined_upwards(
        hierarchy=hierarchy,
        part=best,
        figures=least,
        balance=balance,
        effort=tuning.bisection,
        seed=seed,
        loose=False,
    )
    return half


def _bisected_once(
    graph: WeightedGraph, balance: Balance, tuning: GraphTuning, seed: int, *, loose: bool
) -> tuple[Int32s, Figures]:
    """The half of each vertex, by one hierarchy; and its figures."""
    # Coarsen to a handful of vertices, and grow a half there [KK98].
    hierarchy = coarsened(graph, tuning.smallest_size, tuning.heaviest_cluster, seed)
    smallest = hierarchy.graphs[-1]
    half = np.empty(number_of_vertices(smallest), np.int32)
    figures = refined(
        smallest,
        half,
        balance,
        tuning.bisection,
        seed,
        tries=tuning.tries,
        loose=loose or smallest is not graph,
    )
    if smallest is graph:
        return half, figures
    # Uncoarsen, refining the border on each level.
    return refined_upwards(
        hierarchy=hierarchy,
        part=half,
        figures=figures,
        balance=balance,
        effort=tuning.bisection,
        seed=seed,
        loose=loose,
    )


def refined_upwards(
    hierarchy: Hierarchy,
    part: Int32s,
    figures: Figures,
    balance: Balance,
    effort: SearchEffort,
    seed: int,
    *,
    loose: bool,
) -> tuple[Int32s, Figures]:
    """Parts of the smallest graph, projected and refined on all larger ones.

    ``figures`` are those on the smallest graph; those on the largest are returned.
    """
    for level in range(len(hierarchy.clusters) - 1, -1, -1):
        # Each vertex goes where its cluster went.
        part = part[hierarchy.clusters[level]]
        figures = refined(
            hierarchy.graphs[level],
            part,
            balance,
            effort,
            seed,
            loose=loose or level > 0,
        )
    return part, figures
