"""How to begin: is the mesh a grid, and across which directions is it to be cut?

Grids of quads and hexahedra want blocks along their lines or along their diagonals, depending on
what the elements and points are, and clusters would blur these. Neighbours on both sides of most
elements tell a grid; cuts of a sample of some dozens of blocks tell the directions.
"""

from typing import NamedTuple

import numpy as np

from meshprep_runtime.types.maps import chunks

from ....kernels import Float64s, Int32s, Int64s, kernel
from ....kernels.parallel import each
from ....mesh.incidence import Csr
from ..bisect.geometry import Geometry, block_count

# Rotations of the frame, in radians. A little more than none, because elements of a grid stand in
# line: without it, where a line is cut through would be left to chance.
JITTER = 0.013
ROTATIONS = (JITTER, np.pi / 8 + JITTER, np.pi / 4 + JITTER, 3 * np.pi / 8 + JITTER)
# By what share of the loads the worst rotation of a grid is worse than the best, at least; by what
# share another must be better to be chosen: less is chance.
GRID_SPREAD = 0.015
WORTH_ROTATING = 0.01
# A mesh that two cuts across each other load alike, up to this share, is no grid.
UNLIKELY = 0.005
# The share of a grid's neighbours that have one on the other side, so far from there at most.
SYMMETRIC = 0.7
AWRY = 0.3
SYMMETRY_SAMPLE = 1000
SAMPLE_BLOCKS = 48
SAMPLE_ELEMENTS = 16_000


class Start(NamedTuple):
    """Rotation of the frame, in radians, and whether blocks follow the lines of a grid."""

    rotation: float = JITTER
    grid: bool = False


def choose_start(geometry: Geometry, graph: Csr, block_size: int) -> Start:
    """The rotation of the frame that loads least, and whether the mesh is a grid, by a sample.

    ``graph`` has the neighbours of each element. O(n) to find the sample, which is of bounded size
    itself; O(1) where the mesh is no grid.
    """
    step = max(1, graph.n_rows // SYMMETRY_SAMPLE)
    if _symmetric_share(graph.offset, graph.index, geometry.coordinates, step) < SYMMETRIC:
        return Start()
    sample = _around_the_centre(geometry, min(SAMPLE_ELEMENTS, SAMPLE_BLOCKS * block_size))
    n_blocks = block_count(sample.table.shape[0], block_size)
    if n_blocks < 4:
        return Start()

    def loads_in(rotation: float) -> int:
        return sample.loads(sample.cut(rotation, n_blocks), n_blocks)

    first, across = each(loads_in, [(ROTATIONS[k],) for k in (0, 2)])
    if abs(first - across) < UNLIKELY * first:
        return Start()
    rest = each(loads_in, [(ROTATIONS[k],) for k in (1, 3)])
    loads = [first, rest[0], across, rest[1]]
    best = int(np.argmin(loads))
    best = best if loads[best] < (1 - WORTH_ROTATING) * loads[0] else 0
    return Start(ROTATIONS[best], max(loads) > (1 + GRID_SPREAD) * min(loads))


@kernel
def _symmetric_share(offset: Int64s, neighbours: Int32s, coordinates: Float64s, step: int) -> float:
    """The share of neighbours with an opposite one, of every ``step``-th element."""
    d = coordinates.shape[1]
    pairs, count = 0, 0
    for i in range(0, offset.size - 1, step):
        for s in range(offset[i], offset[i + 1]):
            best, length = np.inf, 0.0
            for a in range(d):
                length += (coordinates[neighbours[s], a] - coordinates[i, a]) ** 2
            for z in range(offset[i], offset[i + 1]):
                off = 0.0
                for a in range(d):
                    both = coordinates[neighbours[s], a] + coordinates[neighbours[z], a]
                    off += (both - 2 * coordinates[i, a]) ** 2
                best = min(best, off)
            pairs += best < AWRY * AWRY * length
            count += 1
    return pairs / max(1, count)


def _around_the_centre(geometry: Geometry, count: int) -> Geometry:
    where = geometry.coordinates
    n = where.shape[0]
    if n <= count:
        return geometry.sample(np.arange(n))
    nearest = np.empty(0)
    for some in chunks(n):
        far = np.concatenate([nearest, _squared_distances(where[some], where[n // 2])])
        nearest = np.partition(far, count)[: count + 1] if far.size > count else far
    inside = [_squared_distances(where[some], where[n // 2]) <= nearest.max() for some in chunks(n)]
    return geometry.sample(np.flatnonzero(np.concatenate(inside))[: 2 * count])


def _squared_distances(where: Float64s, centre: Float64s) -> Float64s:
    far = np.zeros(len(where))
    for axis, middle in zip(where.T, centre, strict=True):
        off = axis - middle
        off *= off
        far += off
    return far
