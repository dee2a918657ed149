"""The start of a search: whether the mesh is a grid, and the directions to cut it across.

The best blocks of grids of quads and hexahedra follow their lines or their diagonals,
depending on the kind of elements and points, and clusters would blur these. A mesh may be a
grid if most elements have neighbours on opposite sides; trial cuts of a sample of some
dozens of blocks decide, and give the directions.
"""

from typing import NamedTuple

import numpy as np

from meshprep_runtime.types.maps import chunks

from ....kernels import Float64s, Int32s, Int64s, kernel
from ....kernels.parallel import each
from ....mesh.incidence import Csr
from .geometry import Geometry, block_count

# Rotations of the frame, in radians. Each is a little more than a simple fraction of pi,
# since the elements of a grid stand in line: otherwise last digits would decide where a
# line is cut through.
JITTER = 0.013
ROTATIONS = (JITTER, np.pi / 8 + JITTER, np.pi / 4 + JITTER, 3 * np.pi / 8 + JITTER)
# Share of the loads by which the worst rotation of a grid is worse than the best, at least.
GRID_SPREAD = 0.015
# Share by which another rotation must be better to be chosen: less is chance.
WORTH_ROTATING = 0.01
# A mesh is no grid if two cuts, one across the other, load alike up to this share.
UNLIKELY = 0.005
# Share of a grid's neighbours that have an opposite neighbour, at least.
SYMMETRIC = 0.7
# Most distance of an opposite neighbour from the mirrored place, in lengths of the link.
AWRY = 0.3
# Elements that are tested for opposite neighbours.
SYMMETRY_SAMPLE = 1000
# Blocks of the sample that is cut, and its elements, at most.
SAMPLE_BLOCKS = 48
SAMPLE_ELEMENTS = 16_000


class Start(NamedTuple):
    """Rotation of the frame, in radians, and whether blocks follow the lines of a grid."""

    rotation: float = JITTER
    grid: bool = False


def choose_start(geometry: Geometry, graph: Csr, block_size: int) -> Start:
    """The rotation that loads least, and whether the mesh is a grid, by trial cuts.

    ``graph`` has the neighbours of each element. O(n) to find the sample, which is of
    bounded size; O(1) where few neighbours are opposite to others.
    """
    # Elements of a grid have neighbours opposite each other: without them it is none.
    symmetric = _symmetric_share(
        offset=graph.offset,
        neighbours=graph.index,
        coordinates=geometry.coordinates,
        step=max(1, graph.n_rows // SYMMETRY_SAMPLE),
    )
    if symmetric < SYMMETRIC:
        return Start()
    # Try rotations on a sample that is large enough for some blocks.
    sample = _around_the_centre(geometry, min(SAMPLE_ELEMENTS, SAMPLE_BLOCKS * block_size))
    n_blocks = block_count(sample.table.shape[0], block_size)
    if n_blocks < 4:
        return Start()

    def loads_in(rotation: float) -> int:
        return sample.loads(sample.cut(rotation, n_blocks), n_blocks)

    # Two rotations show that most meshes are no grids; the others follow for the rest.
    first, across = each(loads_in, [(ROTATIONS[k],) for k in (0, 2)])
    if abs(first - across) < UNLIKELY * first:
        return Start()
    diagonal, other_diagonal = each(loads_in, [(ROTATIONS[k],) for k in (1, 3)])
    # Rotate only where this clearly saves loads; widely different loads tell a grid.
    loads = [first, diagonal, across, other_diagonal]
    best = int(np.argmin(loads))
    if loads[best] >= (1 - WORTH_ROTATING) * loads[0]:
        best = 0
    is_grid = max(loads) > (1 + GRID_SPREAD) * min(loads)
    return Start(rotation=ROTATIONS[best], grid=is_grid)


@kernel
def _symmetric_share(
    offset: Int64s, neighbours: Int32s, coordinates: Float64s, step: int
) -> float:
    """The share of neighbours with an opposite one, of every ``step``-th element."""
    d = coordinates.shape[1]
    pairs = 0
    count = 0
    for i in range(0, offset.size - 1, step):
        for s in range(offset[i], offset[i + 1]):
            # Seek the neighbour whose mirror image at the element comes nearest.
            best = np.inf
            length = 0.0
            for a in range(d):
                length += (coordinates[neighbours[s], a] - coordinates[i, a]) ** 2
            for z in range(offset[i], offset[i + 1]):
                off = 0.0
                for a in range(d):
                    both = coordinates[neighbours[s], a] + coordinates[neighbours[z], a]
                    off += (both - 2 * coordinates[i, a]) ** 2
                best = min(best, off)
            # It is opposite if it is only a small share of the distance off.
            pairs += best < AWRY * AWRY * length
            count += 1
    return pairs / max(1, count)


def _around_the_centre(geometry: Geometry, count: int) -> Geometry:
    """The ``count`` elements nearest to the middle one, and others at the last distance."""
    where = geometry.coordinates
    n = where.shape[0]
    if n <= count:
        return geometry.sample(np.arange(n))
    # Keep the least distances chunk by chunk, so that no array holds all.
    nearest = np.empty(0)
    for chunk in chunks(n):
        far = np.concatenate([nearest, _squared_distances(where[chunk], where[n // 2])])
        if far.size > count:
            nearest = np.partition(far, count)[: count + 1]
        else:
            nearest = far
    # Elements at equal distances all count, so that the sample is symmetric.
    radius = nearest.max()
    inside = [
        _squared_distances(where[chunk], where[n // 2]) <= radius for chunk in chunks(n)
    ]
    return geometry.sample(np.flatnonzero(np.concatenate(inside))[: 2 * count])


def _squared_distances(where: Float64s, centre: Float64s) -> Float64s:
    """The squared distance of each place from a centre, axis after axis."""
    far = np.zeros(len(where))
    for axis, middle in zip(where.T, centre, strict=True):
        off = axis - middle
        off *= off
        far += off
    return far
