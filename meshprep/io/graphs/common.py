"""What a graph is as a mesh, and what of a mesh is no graph."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh import Dat, ElementSet, Mesh, SetMap
from ...mesh.model import GRAPH_MAP
from ..format import reduce

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
    ends = SetMap(name=GRAPH_MAP, from_set=EDGES, to_set=VERTICES, table=np.asarray(pairs))
    return Mesh(sets=sets, maps=[ends], dats=dats, extras=extras or {})


def pairs_of(mesh: Mesh) -> NDArray[np.int32]:
    """The ends of each edge; raises MeshprepError where the mesh is no graph."""
    graph_map = mesh.maps.get(GRAPH_MAP)
    if graph_map is None or graph_map.arity != 2:
        raise MeshprepError(
            f"a graph needs a map '{GRAPH_MAP}' of arity 2, and this mesh has none: "
            "use another format"
        )
    return graph_map.table


def symmetry_of(mesh: Mesh) -> str:
    """How an entry (j, i) follows from (i, j), in the words of Matrix Market."""
    return str(mesh.extras.get(MATRIX_MARKET, {}).get("symmetry", SYMMETRIC))


def other_losses(mesh: Mesh, refusal: Callable[[Dat], str | None]) -> list[str]:
    """What of a mesh is no graph, see :func:`meshprep.io.format.reduce.other_losses`."""
    pairs_of(mesh)
    return reduce.other_losses(
        mesh=mesh, sets=(VERTICES, EDGES), maps=(GRAPH_MAP,), refusal=refusal
    )
