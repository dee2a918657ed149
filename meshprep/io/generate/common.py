"""What the generators share: building the mesh, tagging its sides, shuffling, checking sizes."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import INDEX_LIMIT
from meshprep_runtime.types.ordering import Ordering

from ...mesh import Mesh
from ...mesh.assemble import Block, assemble
from ...topology import derivable, derive

# Group numbers 1, 2, ... of the low and high end of each axis.
SIDES = {
    2: ("left", "right", "bottom", "top"),
    3: ("left", "right", "front", "back", "bottom", "top"),
}
# The group of all cells, which programs want that know cells by their groups; behind the sides.
DOMAIN = {2: {5: "domain"}, 3: {7: "domain"}}
_FACET_TYPES = {2: "line", 3: "triangle", 4: "quad"}

Tables = Mapping[str, NDArray[np.integer]]


def box_mesh(points: NDArray[np.float64], tables: Tables) -> Mesh:
    """A mesh that fills a box, with the cells of its sides below, all in groups of ``physical``.

    Nodes on a side have exactly the side's coordinate.
    """
    dim = points.shape[1]
    cells = [
        Block(t, np.asarray(rows, np.int32), tags=whole(len(rows), DOMAIN[dim]))
        for t, rows in tables.items()
        if len(rows)
    ]
    mesh = assemble(points, cells)[0]
    wanted = [n for n in derivable(mesh) if n.startswith("boundary_") and n.endswith("->nodes")]
    closed = derive(mesh, wanted)
    boundary = [_tagged(points, closed.map(n).table) for n in wanted]
    sides = dict(enumerate(SIDES[dim], start=1))
    names = {("physical", dim - 1): sides, ("physical", dim): DOMAIN[dim]}
    return assemble(points, [*boundary, *cells], tag_names=names)[0]


def whole(n: int, named: Mapping[int, str]) -> dict[str, NDArray[np.int64]]:
    """The tag that puts ``n`` cells into the one group of a table of names."""
    return {"physical": np.full(n, next(iter(named)))}


def _tagged(points: NDArray[np.float64], facets: NDArray[np.int32]) -> Block:
    """The facets whose nodes are all on one side, with that side's number."""
    side = np.zeros(len(facets), np.int64)
    for axis in range(points.shape[1]):
        value = points[:, axis]
        for end, limit in enumerate((value.min(), value.max())):
            side[(value == limit)[facets].all(axis=1)] = 2 * axis + end + 1
    kept = side > 0
    return Block(_FACET_TYPES[facets.shape[1]], facets[kept], tags={"physical": side[kept]})


def shuffled(mesh: Mesh, shuffle: bool, seed: int) -> Mesh:
    """The mesh with nodes and cells, of every dimension, in random order where ``shuffle``."""
    if not shuffle:
        return mesh
    random = np.random.default_rng(seed)
    names = ["nodes", *(s.name for s in mesh.cell_sets)]
    return mesh.renumber(
        {n: Ordering.from_new_to_old(random.permutation(mesh.size(n)), n) for n in names}
    )


def check_count(name: str, value: int, least: int) -> None:
    """Raise MeshprepError unless ``least <= value <= 2^31 - 1``."""
    if not least <= value <= INDEX_LIMIT:
        raise MeshprepError(f"{name} is {value}, must be within {least}..{INDEX_LIMIT}")
