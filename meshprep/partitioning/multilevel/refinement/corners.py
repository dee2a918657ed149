"""Corners of elements of second and higher order, which are annealed before all points.

An element of second order has ten points or more, and evaluating a move reads them all. On
the border of a block the numbers of corners, edges and facets are in proportion, by Euler's
formula: where few corners are shared, few of the other points are shared.
"""

from typing import NamedTuple

import numpy as np

from meshprep_runtime.types.maps import ranges, read_only

from ....kernels import Bools, Int32s
from ....mesh.incidence import Csr
from ...blocks_of import staged_bytes
from .groups import unit_of

# Elements of fewer points are annealed with all points at once.
LEAST_ARITY = 6
# Largest share of the columns that may be corners.
MOST_CORNERS = 2 / 3
# Columns are sorted by the falling number of neighbours that share their point. Corners end
# where this number falls below this share of the number before.
FALL = 0.8
# Corners that neighbours have in common, at least,
IN_COMMON = 2
# in at least this share of the sampled pairs.
NEARLY_ALL = 0.9
# Elements of the sample.
SAMPLE = 500


class Corners(NamedTuple):
    """The corners of elements, (n, corners), and the mean weight of a corner."""

    table: Int32s
    unit: float

    def loaded(self, weight: Int32s, block: Int32s, n_blocks: int) -> float:
        """Corners that blocks load for each element; ``weight`` is that of all points."""
        loads = int(
            staged_bytes(
                table=self.table, weight=weight, block=block, n_blocks=n_blocks
            ).sum()
        )
        return loads / self.unit / block.size


def corners_of(table: Int32s, weight: Int32s | None, graph: Csr) -> Corners | None:
    """The corners of the elements; None if all points are needed.

    ``weight`` is that of the points, None where all weigh the same; ``graph`` has the
    neighbours of each element. Corners are columns of the table: an element shares a corner
    with the neighbours at two or three facets, the middle of an edge or a facet with one
    less. O(n), and O(arity^2) for each element of a sample of bounded size.
    """
    if table.shape[1] < LEAST_ARITY or not graph.index.size:
        return None
    step = max(1, len(table) // SAMPLE)
    sample = np.arange(0, len(table), step).astype(np.int32)
    # Sort the columns by the number of neighbours that share their point.
    common = _in_common(table, graph, sample)
    order = np.argsort(-common.sum(axis=0), kind="stable")
    count = common.sum(axis=0)[order]
    # Take the first columns, up to a fall, that are few and that neighbours have in common.
    falls = np.flatnonzero(count[1:] < FALL * count[:-1]) + 1
    for k in falls.tolist():
        columns = np.sort(order[:k])
        have_corners_in_common = common[:, columns].sum(axis=1) >= IN_COMMON
        near = have_corners_in_common.mean() >= NEARLY_ALL
        points = table[np.ix_(sample, columns)]
        if weight is None:
            weights = np.ones(1, np.int32)
        else:
            weights = weight[points[points >= 0]]
        if k <= MOST_CORNERS * table.shape[1] and near and weights.all():
            return Corners(
                read_only(np.ascontiguousarray(table[:, columns])), unit_of(weights)
            )
    return None


def _in_common(table: Int32s, graph: Csr, sample: Int32s) -> Bools:
    """Which points of sampled elements their neighbours have: a row for each neighbour."""
    count = graph.offset[sample + 1] - graph.offset[sample]
    other = graph.index[ranges(graph.offset[sample], count)]
    points = table[np.repeat(sample, count)][:, :, None]
    points_of_other = table[other][:, None, :]
    is_shared = (points == points_of_other) & (points >= 0)
    return np.any(is_shared, axis=2)
