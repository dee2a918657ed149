"""METIS k-way on a graph; in an order of locality, on clusters whose borders are shortened."""

from __future__ import annotations

import numpy as np
import pymetis
from numpy.typing import NDArray

from ..kernels import Int32s, Int64s, kernel
from ..mesh.incidence import Csr
from ..partition.blocks.levels import coarsen, element_level

# Thousandths by which METIS may overfill a part. Twice its 10 passes on each level take a quarter
# more time, for 0.25 % fewer ghosts.
UFACTOR = 30
# The most elements of a cluster, and how often all elements are asked for a better part.
LARGEST, ROUNDS = 4, 4


def metis_parts(
    graph: Csr,
    weights: NDArray[np.float64],
    seed: int,
    sizes: NDArray[np.integer] | None = None,
    facets: NDArray[np.integer] | None = None,
) -> NDArray[np.int32]:
    """The part of every vertex, for parts of these shares.

    ``sizes`` are what vertices count and ``facets`` what edges count, 1 where they are left out.
    O(edges), and 8 bytes an edge several times.
    """
    even = bool((weights == weights[0]).all())
    _, part = pymetis.part_graph(
        weights.size,
        pymetis.CSRAdjacency(graph.offset, graph.index.astype(np.int64)),
        vweights=None if sizes is None else sizes.astype(np.int64),
        eweights=None if facets is None else facets.astype(np.int64),
        tpwgts=None if even else weights.tolist(),
        recursive=False,
        options=pymetis.Options(ufactor=UFACTOR, seed=seed),
    )
    return np.asarray(part, dtype=np.int32)


def metis_parts_of_clusters(
    graph: Csr, weights: NDArray[np.float64], seed: int
) -> NDArray[np.int32]:
    """The part of every element, of elements whose neighbours stand near them in their order.

    METIS sees clusters of up to :data:`LARGEST` elements, found on all cores; then elements at
    borders move. Half the memory of :func:`metis_parts`, for some 1 % more ghosts.
    """
    n = graph.n_rows
    elements = element_level(np.empty((n, 0), np.int32), graph, np.zeros((n, 3)))
    level, label = coarsen(elements, 0, LARGEST)
    del elements
    clusters = Csr(level.offset, level.neighbours)
    part = metis_parts(clusters, weights, seed, level.weight, level.facets)[label]
    size = np.bincount(part, minlength=weights.size)
    cap = np.ceil((1 + UFACTOR / 1000) * n * weights).astype(np.int64)
    _shorten_borders(graph.offset, graph.index, part, size, cap)
    return part


@kernel
def _shorten_borders(
    offset: Int64s, index: Int32s, part: Int32s, size: Int64s, cap: Int64s
) -> None:
    """Move elements to the part of most of their neighbours, of equals to one that is smaller."""
    beside = np.zeros(size.size, np.int32)
    for _ in range(ROUNDS):
        moved = 0
        for i in range(part.size):
            home = best = part[i]
            for s in range(offset[i], offset[i + 1]):
                beside[part[index[s]]] += 1
            for s in range(offset[i], offset[i + 1]):
                p = part[index[s]]
                gain = beside[p] - beside[best]
                if size[p] < cap[p] and (gain > 0 or (gain == 0 and size[p] + 1 < size[best])):
                    best = p
            for s in range(offset[i], offset[i + 1]):
                beside[part[index[s]]] = 0
            if best != home and size[home] > 1:
                part[i] = best
                size[home] -= 1
                size[best] += 1
                moved += 1
        if moved == 0:
            break
