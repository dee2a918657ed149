"""Orders of others beside ours, and meshes of Gmsh for them.

Gmsh's ``computeRenumbering``, METIS's nested dissection, scipy's reverse Cuthill-McKee, and MFEM's
Gecko (``pip install mfem``). A peer that is not installed is left out, and the table says so.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from mesher import mesher_file
from numpy.typing import NDArray
from order_graphs import scipy_rcm

from meshprep.ordering import LocalityProblem, touch_order


class PeerCase(NamedTuple):
    """A mesh of Gmsh in the numbers that Gmsh gave it.

    ``dimension`` is that of the cells, ``order`` 1 or 2. ``tags`` has Gmsh's number of each point.
    """

    shape: str
    n_cells: int
    dimension: int
    order: int
    problem: LocalityProblem
    tags: NDArray[np.int64]


class TimedOrder(NamedTuple):
    """The old number of each point in an order, and the processor's seconds that it took.

    These begin with the cells: who orders a graph has to make it.
    """

    new_to_old: NDArray[np.integer]
    seconds: float


def mesher_case(shape: str, n_cells: int, order: int) -> PeerCase:
    """The mesh of a shape, whose points Gmsh has numbered; middles of sides where order is 2."""
    gmsh = _opened(shape, n_cells, order)
    dimension = gmsh.model.getDimension()
    tags, where, _ = gmsh.model.mesh.getNodes()
    _, elements, nodes = gmsh.model.mesh.getElements(dimension)
    gmsh.finalize()
    # Nodes that only carry the geometry are no points of a cell.
    used, cells = np.unique(nodes[0], return_inverse=True)
    by_tag = np.argsort(tags)
    row = by_tag[np.searchsorted(tags[by_tag], used)]
    problem = LocalityProblem(
        cells.reshape(len(elements[0]), -1).astype(np.int32),
        n_points=used.size,
        coordinates=where.reshape(-1, 3)[row],
        target="cpu",
        block_size=2048,
    )
    return PeerCase(
        shape=shape,
        n_cells=n_cells,
        dimension=dimension,
        order=order,
        problem=problem,
        tags=used.astype(np.int64),
    )


def _opened(shape: str, n_cells: int, order: int) -> Any:
    """Gmsh with a mesh that it has made."""
    path = mesher_file(shape, n_cells)
    import gmsh

    gmsh.initialize(interruptible=False)
    gmsh.option.setNumber("General.Terminal", 0)
    gmsh.open(str(path))
    gmsh.model.mesh.setOrder(order)
    return gmsh


def gmsh_order(case: PeerCase, method: str) -> TimedOrder:
    """The order of ``computeRenumbering``, from the new numbers that it gives to Gmsh's."""
    gmsh = _opened(case.shape, case.n_cells, case.order)
    begun = time.process_time()
    old, new = gmsh.model.mesh.computeRenumbering(method)
    seconds = time.process_time() - begun
    gmsh.finalize()
    by_tag = np.argsort(old)
    place = new[by_tag[np.searchsorted(old[by_tag], case.tags)]]
    return TimedOrder(np.argsort(place, kind="stable"), seconds)


def rcm_of_scipy(case: PeerCase) -> TimedOrder:
    """scipy's reverse Cuthill-McKee."""
    begun = time.process_time()
    new_to_old = scipy_rcm(replace(case.problem).graph)
    return TimedOrder(new_to_old, time.process_time() - begun)


def metis_order(case: PeerCase) -> TimedOrder:
    """METIS's nested dissection."""
    import pymetis

    begun = time.process_time()
    graph = replace(case.problem).graph
    adjacency = pymetis.CSRAdjacency(graph.offset, graph.index)
    new_to_old, _ = pymetis.nested_dissection(adjacency)
    return TimedOrder(np.asarray(new_to_old), time.process_time() - begun)


def gecko_order(case: PeerCase) -> TimedOrder:
    """MFEM's Gecko orders cells by their neighbours; points stand as these cells meet them."""
    import mfem.ser as mfem

    problem = case.problem
    assert problem.coordinates is not None
    corners = problem.table[:, : case.dimension + 1]
    used, local = np.unique(corners, return_inverse=True)
    mesh = mfem.Mesh(case.dimension, used.size, len(corners), 0, 3)
    for point in problem.coordinates[used].tolist():
        mesh.AddVertex(*point)
    add = mesh.AddTriangle if case.dimension == 2 else mesh.AddTet
    for cell in local.reshape(corners.shape).tolist():
        add(*cell)
    mesh.FinalizeTopology()
    ordering = mfem.intArray()
    begun = time.process_time()
    mesh.GetGeckoElementOrdering(ordering)
    seconds = time.process_time() - begun
    cells = np.argsort(np.array(ordering.ToList())).astype(np.int32)
    return TimedOrder(touch_order(problem.n_points, [(problem.table, cells)]), seconds)


# What each peer imports, and its function.
PEERS: dict[str, tuple[str, Callable[[PeerCase], TimedOrder]]] = {
    "Gmsh RCMK": ("gmsh", partial(gmsh_order, method="RCMK")),
    "Gmsh Hilbert": ("gmsh", partial(gmsh_order, method="Hilbert")),
    "scipy RCM": ("scipy", rcm_of_scipy),
    "METIS dissection": ("pymetis", metis_order),
    "MFEM Gecko": ("mfem", gecko_order),
}


def installed_peers() -> tuple[dict[str, Callable[[PeerCase], TimedOrder]], list[str]]:
    """The peers that can run here, and the names of the others."""
    here = {name: run for name, (module, run) in PEERS.items() if find_spec(module)}
    return here, [name for name in PEERS if name not in here]
