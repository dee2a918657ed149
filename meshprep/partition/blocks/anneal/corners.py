"""Corners of elements of second and higher order, which are annealed before all points.

An element of second order has ten points or more, and evaluating a move reads them all. On the
border of a block corners, edges and facets are as many in proportion, by Euler's formula: where
few corners are shared, few of the other points are.
"""

from typing import NamedTuple

import numpy as np

from meshprep_runtime.types.maps import ranges, read_only

from ....kernels import Bools, Int32s
from ....mesh.incidence import Csr
from ...blocks_of import staged_bytes
from .groups import unit_of

# Elements of fewer points are read whole. Corners are at most this share of the columns.
LEAST_ARITY, MOST_CORNERS = 6, 2 / 3
# Columns by falling number of neighbours that share their point: corners end where it falls below
# this share of that before.
FALL = 0.8
# Least corners in common of neighbours, and the least share of sampled pairs that have these.
IN_COMMON, NEARLY_ALL = 2, 0.9
SAMPLE = 500


class Corners(NamedTuple):
    """The corners of elements, (n, corners), and what a typical one of these points weighs."""

    table: Int32s
    unit: float

    def loaded(self, weight: Int32s, block: Int32s, n_blocks: int) -> float:
        """How many corners blocks load for each element; ``weight`` has that of all points."""
        loads = int(staged_bytes(self.table, weight, block, n_blocks).sum())
        return loads / self.unit / block.size


def corners_of(table: Int32s, weight: Int32s | None, graph: Csr) -> Corners | None:
    """The corners of the elements; None if all points are needed.

    ``weight`` is that of the points, None where all weigh the same; ``graph`` has the neighbours of
    each element. Corners are columns of the table: an element shares a corner with the neighbours
    at two or three facets, the middle of an edge or a facet with one less. O(n), and O(arity^2) for
    each element of a sample of bounded size.
    """
    if table.shape[1] < LEAST_ARITY or not graph.index.size:
        return None
    sample = np.arange(0, len(table), max(1, len(table) // SAMPLE)).astype(np.int32)
    common = _in_common(table, graph, sample)
    order = np.argsort(-common.sum(axis=0), kind="stable")
    count = common.sum(axis=0)[order]
    for k in (np.flatnonzero(count[1:] < FALL * count[:-1]) + 1).tolist():
        columns = np.sort(order[:k])
        near = (common[:, columns].sum(axis=1) >= IN_COMMON).mean() >= NEARLY_ALL
        points = table[np.ix_(sample, columns)]
        weights = np.ones(1, np.int32) if weight is None else weight[points[points >= 0]]
        if k <= MOST_CORNERS * table.shape[1] and near and weights.all():
            return Corners(read_only(np.ascontiguousarray(table[:, columns])), unit_of(weights))
    return None


def _in_common(table: Int32s, graph: Csr, sample: Int32s) -> Bools:
    """Of each neighbour of the elements of a sample, which of the element's points it has."""
    count = graph.offset[sample + 1] - graph.offset[sample]
    other = graph.index[ranges(graph.offset[sample], count)]
    own = table[np.repeat(sample, count)][:, :, None]
    return np.any((own == table[other][:, None, :]) & (own >= 0), axis=2)
