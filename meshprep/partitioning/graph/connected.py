"""Connected parts: pieces go to the neighbouring part that they are tied to most."""

import numpy as np

from ...kernels import Int32s, Int64s
from ..multilevel.balancing.components import components
from .graph import WeightedGraph

# Pieces that joined another part may have cut others off: so often they are looked for.
ROUNDS = 10


def connect_parts(graph: WeightedGraph, part: Int32s, cap: Int64s) -> None:
    """Make parts connected in place, as far as caps and the graph allow.

    Of a part in several pieces the heaviest stays. Another piece goes to the part with room
    to which its edges weigh most. A piece without neighbours in other parts stays. O(edges)
    for each round, of which the last changes nothing.
    """
    k = len(cap)
    row = np.repeat(np.arange(part.size), np.diff(graph.offset))
    for _ in range(ROUNDS):
        inside = part[row] == part[graph.neighbour]
        kept_before = np.append(0, np.cumsum(inside))
        piece = components(kept_before[graph.offset], graph.neighbour[inside])
        n_pieces = int(piece.max()) + 1
        owner = np.empty(n_pieces, np.int64)
        owner[piece] = part
        size = np.bincount(piece, graph.size, n_pieces)
        # The heaviest piece of each part, of equals the first.
        heaviest_first = np.lexsort((np.arange(n_pieces), -size, owner))
        _, first = np.unique(owner[heaviest_first], return_index=True)
        stays = np.zeros(n_pieces, bool)
        stays[heaviest_first[first]] = True
        load = np.zeros(cap.shape, np.int64)
        np.add.at(load, part, graph.vertex_weight)
        changed = False
        for loose in np.flatnonzero(~stays):
            members = np.flatnonzero(piece == loose)
            weight = graph.vertex_weight[members].sum(axis=0)
            # Weigh its edges to each other part.
            of_piece = (piece[row] == loose) & ~inside
            beside = part[graph.neighbour[of_piece]]
            tie = np.bincount(beside, graph.edge_weight[of_piece], k)
            tie[owner[loose]] = 0
            tie[(load + weight > cap).any(axis=1)] = 0
            target = int(np.argmax(tie))
            if tie[target] > 0:
                part[members] = target
                load[owner[loose]] -= weight
                load[target] += weight
                changed = True
        if not changed:
            return
