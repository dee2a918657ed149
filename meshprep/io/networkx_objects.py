"""networkx's graphs in and out: a graph to order, and the graphs that a loop sees."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError, check_choice, import_package
from meshprep_runtime.plan import LoopPlan, Plan, Variant
from meshprep_runtime.types.maps import SetMap

from ..loops.reach import written_table
from ..loops.requests import LoopRequest, as_requests, resolve
from ..mesh import Dat, Mesh
from ..mesh.geometry import centroids
from .graphs.common import EDGES, MATRIX_MARKET, VERTICES, graph_mesh

KINDS = ("points", "elements", "blocks")
# Where networkx's layouts put the places of nodes.
POSITION = "pos"


def from_networkx(graph: Any) -> Mesh:
    """The mesh of a graph: sets ``vertices`` and ``edges``, and the map ``edges->vertices``.

    Parameters
    ----------
    graph : networkx.Graph, DiGraph, MultiGraph or MultiDiGraph
        Vertex ``i`` is the ``i``-th node of ``list(graph)``, edge ``k`` the ``k``-th of
        ``graph.edges()``; isolated nodes are vertices, too. It is not changed.

    Returns
    -------
    Mesh
        The node attribute ``pos`` gives the coordinates of the vertices, (n, 2) or (n, 3). Other
        attributes of nodes and edges that hold numbers, or arrays of one shape, become dats of
        their names, for those nodes and edges that have them; text and other objects stay in the
        graph.

    Raises
    ------
    MeshprepError
        Where there are no nodes, or only some of them have a ``pos`` of two or three numbers.

    Notes
    -----
    O(nodes + edges), in Python.

    Examples
    --------
    >>> import networkx, meshprep
    >>> mesh = meshprep.from_networkx(networkx.Graph([("a", "b"), ("b", "c")]))
    >>> mesh.map("edges->vertices").table.tolist()
    [[0, 1], [1, 2]]
    """
    nodes = list(graph)
    if not nodes:
        raise MeshprepError("the graph has no nodes: there is nothing to order")
    number = {node: i for i, node in enumerate(nodes)}
    ends = [(number[u], number[v]) for u, v in graph.edges()]
    pairs = np.array(ends, dtype=np.int32).reshape(-1, 2)
    of_nodes = [graph.nodes[node] for node in nodes]
    of_edges = [attributes for *_, attributes in graph.edges(data=True)]
    dats = [*_coordinates(of_nodes), *_dats(VERTICES, of_nodes), *_dats(EDGES, of_edges)]
    extras = {MATRIX_MARKET: {"symmetry": "general"}} if graph.is_directed() else {}
    return graph_mesh(len(nodes), pairs, dats, extras)


def _coordinates(attributes: Sequence[Mapping[str, Any]]) -> list[Dat]:
    known = [a[POSITION] for a in attributes if POSITION in a]
    if not known:
        return []
    values = _numbers(known)
    if len(known) < len(attributes) or values is None or values.shape[1:] not in ((2,), (3,)):
        raise MeshprepError(
            f"'{POSITION}' must be two or three numbers at each of the {len(attributes)} nodes"
        )
    return [Dat("coordinates", VERTICES, values.astype(np.float64))]


def _dats(on: str, attributes: Sequence[Mapping[str, Any]]) -> list[Dat]:
    found = []
    for name in dict.fromkeys(n for a in attributes for n in a if isinstance(n, str)):
        index = [i for i, a in enumerate(attributes) if name in a]
        values = _numbers([attributes[i][name] for i in index])
        if values is not None and (on, name) != (VERTICES, POSITION):
            whole = len(index) == len(attributes)
            found.append(Dat(name, on, values, None if whole else np.array(index, np.int32)))
    return found


def _numbers(values: Sequence[Any]) -> NDArray[Any] | None:
    """The values as one array, None where they are no numbers of one shape."""
    try:
        made = np.asarray(values)
    except ValueError:
        return None
    return made if made.dtype.kind in "biufc" else None


def to_networkx(
    source: Mesh | Plan, kind: str = "points", loop: LoopRequest | str | None = None
) -> Any:
    """One of the graphs that a loop sees, as a ``networkx.Graph`` with nodes 0 to n - 1.

    Parameters
    ----------
    source : Mesh or Plan
        Nodes have the numbers of the mesh, or those of the plan.
    kind : str
        ``"points"``: the points of the loop's leading map, neighbours when one element has both:
        what orders are found for. ``"elements"``: the elements of the loop, neighbours when they
        write through maps to one point: what must not run at once. ``"blocks"``: the same of the
        blocks of a plan.
    loop : LoopRequest or str, optional
        The name of a loop of the plan (None: its first). For a mesh a loop as ``prepare`` takes it
        (None: the mesh's default).

    Returns
    -------
    networkx.Graph
        An edge's ``weight`` is the number of elements that the two points share, or of points
        that the two elements or blocks share. Points have ``pos`` where a mesh tells where they
        are; a plan's elements have ``block`` and ``colour`` (of the thread, in its block), its
        blocks ``elements`` (how many) and ``colour``.

    Raises
    ------
    MeshprepError
        On an unknown kind or loop, on a loop without maps, and for the blocks of a mesh.
    MissingPackageError
        Where networkx is not installed.

    Notes
    -----
    The edges are found by a product of sparse matrices, O(sum over points of incidences squared).
    """
    message = "graphs of networkx need networkx: pip install 'meshprep[graphs]'"
    networkx = import_package("networkx", message)
    check_choice("a graph of", kind, KINDS)
    if isinstance(source, Plan):
        name = next(iter(source.loops)) if loop is None else str(getattr(loop, "name", loop))
        plan, mesh = source[name], None
    else:
        plan, mesh = _of_mesh(source, loop)
    if plan.loop.leading_map is None:
        raise MeshprepError(f"loop '{plan.loop.name}' uses no map: it has no graph")
    points = plan.maps[plan.loop.leading_map]
    variant = plan.variant() if plan.variants else None
    graph = networkx.from_scipy_sparse_array(_shared(plan, points, variant, kind))
    for name, values in _attributes(mesh, points.to_set, variant, kind).items():
        networkx.set_node_attributes(graph, dict(enumerate(values)), name)
    return graph


def _of_mesh(mesh: Mesh, loop: LoopRequest | str | None) -> tuple[LoopPlan, Mesh]:
    """The loop without variants, and the mesh with its maps."""
    from ..topology import derive

    (asked,) = as_requests(() if loop is None else (loop,), mesh)
    full = derive(mesh, asked.maps)
    (spec,) = resolve([asked], full)
    return LoopPlan(spec.loop, full.sizes, full.maps, {}, ""), full


def _shared(plan: LoopPlan, points: SetMap, variant: Variant | None, kind: str) -> Any:
    """How much each two points, elements or blocks share: a sparse matrix without a diagonal."""
    if kind == "points":
        touched = _touched(points.table, plan.sizes[points.to_set]).T
    else:
        touched = _touched(*written_table(plan.loop, plan.maps, plan.sizes))
    if kind == "blocks":
        touched = _by_block(touched, variant)
    shared = (touched @ touched.T).tocoo()
    apart = shared.row != shared.col
    ends = (shared.row[apart], shared.col[apart])
    return type(shared)((shared.data[apart], ends), shared.shape)


def _touched(table: NDArray[np.integer], n_points: int) -> Any:
    """A sparse matrix: 1 where a row of the table names the point."""
    from scipy.sparse import csr_array

    n, arity = table.shape
    rows = np.repeat(np.arange(n), arity)
    made = csr_array((np.ones(table.size, np.int64), (rows, table.reshape(-1))), (n, n_points))
    return made.minimum(1)


def _by_block(touched: Any, variant: Variant | None) -> Any:
    from scipy.sparse import csr_array

    if variant is None:
        raise MeshprepError("a mesh has no blocks: prepare it, and give the plan")
    n = touched.shape[0]
    one = (np.ones(n, np.int64), variant.by_place(np.arange(n)), variant.block_offset)
    return (csr_array(one, (variant.n_blocks, n)) @ touched).minimum(1)


def _attributes(
    mesh: Mesh | None, points: str, variant: Variant | None, kind: str
) -> dict[str, Any]:
    """What is known of the nodes of a graph, by attribute."""
    if kind == "points":
        where = None if mesh is None else centroids(mesh, points)
        return {} if where is None else {POSITION: where}
    if variant is None:
        return {}
    if kind == "elements":
        block = variant.block_of_element().tolist()
        colour = variant.by_element(variant.thread_colour).tolist()
        return {"block": block, "colour": colour}
    elements = np.diff(variant.block_offset).tolist()
    return {"elements": elements, "colour": variant.colour_of_block().tolist()}
