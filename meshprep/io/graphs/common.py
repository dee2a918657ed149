"""What a graph is as a mesh, and what of a mesh is no graph."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh import Dat, ElementSet, Mesh, SetMap
from ...mesh.model import GRAPH_MAP
from .. import reduce

VERTICES, EDGES = "vertices", "edges"
# Numbers on vertices and edges: of an edge, the entry of the matrix.
WEIGHT = "weight"
# What it costs to send a vertex, in METIS's files.
SIZE = "size"
# Formats that keep notes; Matrix Market's tell whether (i, j) and (j, i) are one edge
# ("symmetric", the default) or two ("general").
MATRIX_MARKET, METIS = "matrix-market", "metis"
SYMMETRIC = "symmetric"


def graph_mesh(
    n_vertices: int,
    pairs: NDArray[np.integer],
    dats: Iterable[Dat] = (),
    extras: Mapping[str, Any] | None = None,
) -> Mesh:
    """The mesh of a graph: ``pairs`` is (n_edges, 2), the two ends of each edge from 0."""
    sets = [ElementSet(VERTICES, n_vertices), ElementSet(EDGES, len(pairs))]
    ends = SetMap(GRAPH_MAP, EDGES, VERTICES, np.asarray(pairs))
    return Mesh(sets, [ends], dats, extras=extras or {})


def pairs_of(mesh: Mesh) -> NDArray[np.int32]:
    """The ends of each edge; raises MeshprepError where the mesh is no graph."""
    found = mesh.maps.get(GRAPH_MAP)
    if found is None or found.arity != 2:
        raise MeshprepError(
            f"a graph needs a map '{GRAPH_MAP}' of arity 2, and this mesh has none: "
            "use another format"
        )
    return found.table


def symmetry_of(mesh: Mesh) -> str:
    """How an entry (j, i) follows from (i, j), in the words of Matrix Market."""
    return str(mesh.extras.get(MATRIX_MARKET, {}).get("symmetry", SYMMETRIC))


def other_losses(mesh: Mesh, refusal: Callable[[Dat], str | None]) -> list[str]:
    """What of a mesh is no graph, see :func:`meshprep.io.reduce.other_losses`."""
    pairs_of(mesh)
    return reduce.other_losses(mesh, (VERTICES, EDGES), (GRAPH_MAP,), refusal)
