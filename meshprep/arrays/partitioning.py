"""Parts of graphs and meshes, from arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError, check_choice

from ..distribute.owners.search import part_of_element
from ..partitioning import partition_graph
from ..partitioning.connectivity import distinct_rows
from .checks import refuse_scattered, refuse_unbalanced
from .inputs import Elements, elements_or_graph
from .weights import part_shares, weight_columns, whole_weights

# Sweeps of the search for parts of elements, as a multiple of the default's.
EFFORTS = {"fast": 0.5, "default": 1.0, "strong": 4.0}


def partition(
    graph: Any = None,
    parts: int | None = None,
    *,
    weights: Any = None,
    shares: Any = None,
    room: float = 0.03,
    connected: bool = False,
    effort: str = "default",
    seed: int = 0,
    points: Any = None,
    edge_index: Any = None,
    n_points: int | None = None,
) -> NDArray[np.int32]:
    """Cut a graph or a mesh into parts with short borders.

    Parameters
    ----------
    graph : sparse matrix, graph, array, pair of arrays or mesh
        A square SciPy matrix, whose entries are edges, or a networkx graph: its vertices
        are cut. Of (n, k) whole numbers from 0, the points of each element, of
        (offset, index), rows of different lengths, and of a mesh: its elements.
    parts : int
        How many parts.
    weights : (n,) or (n, c) array, optional
        What each vertex or element weighs; of several columns each is balanced.
    shares : (parts,) array, optional
        What the parts should hold relative to each other; without it the same.
    room : float
        A part may hold this more than its share, such as 0.03, or one vertex.
    connected : bool
        Whether every part must be connected.
    effort : str
        How long to search: ``"fast"``, ``"default"`` or ``"strong"``.
    seed : int
        The same seed gives the same parts.
    points : (n_points, d) array, optional
        Coordinates of the points of elements, which make the search better; a mesh brings
        its own.
    edge_index : (2, n_edges) array or pair of arrays, optional
        In place of ``graph``: the ends of the edges, as PyTorch Geometric and jraph have
        them and ``A.nonzero()`` gives them.
    n_points : int, optional
        How many vertices there are, those without edges among them, or points of elements.

    Returns
    -------
    (n,) array of int32
        The part of each vertex (in the order of the graph's nodes) or element, from 0. No
        part is empty, but for shares of 0 and where there are more parts than vertices.

    Raises
    ------
    MeshprepError
        For shapes and numbers that do not fit, and where no parts are found that hold no
        more than they may, or that are connected.

    Notes
    -----
    Of graphs few edges are cut: multilevel, with local searches after Fiduccia and
    Mattheyses. Of elements few points are shared, the search of ``meshprep split``. The
    caps are proved before the parts are given out. O(n log n + edges log parts).

    Examples
    --------
    >>> import meshprep
    >>> path = [[0, 1, 2], [1, 2, 3]]
    >>> sorted(meshprep.partition(edge_index=path, parts=2).tolist())
    [0, 0, 1, 1]
    """
    if parts is None:
        raise MeshprepError("give the number of parts: partition(graph, 8)")
    check_choice("effort", effort, EFFORTS)
    source = elements_or_graph(graph, points, edge_index=edge_index, n_points=n_points)
    columns = weight_columns(weights, source.n)
    share = part_shares(shares, parts)
    # The partitioner of meshes knows coordinates and shared points, but takes one weight,
    # from 1: to it an element that weighs 0 weighs 1.
    one_weight = columns.shape[1] == 1 and bool((columns > 0).all())
    if isinstance(source, Elements) and one_weight and not connected:
        owner = part_of_element(
            source.neighbours(),
            parts,
            table=distinct_rows(source.table()),
            coordinates=source.centroids(),
            weights=None if weights is None else columns[:, 0],
            shares=share,
            tolerance=1 + room,
            seed=seed,
            effort=EFFORTS[effort],
        )
    else:
        # That of graphs balances several weights, and connects parts.
        neighbours = source.neighbours()
        whole = [whole_weights(column) for column in columns.T]
        owner = partition_graph(
            neighbours.offset,
            neighbours.index,
            parts=parts,
            vertex_weights=np.column_stack(whole),
            shares=share,
            room=room,
            effort=effort,
            seed=seed,
            connected=connected,
        )

    # Nothing is given out that was not proved.
    refuse_unbalanced(owner, parts=parts, weights=weights, shares=shares, room=room)
    if connected:
        refuse_scattered(owner, parts, source.neighbours())
    return owner
