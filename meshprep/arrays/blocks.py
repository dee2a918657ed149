"""Blocks of elements under hard caps, from arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..kernels import Int32s
from ..mesh.incidence import renumber_table
from ..mesh.orderings import ordering_of
from ..ordering import METHODS, LocalityProblem
from ..partitioning import BlockProblem, partition
from .inputs import Elements, elements_of


def blocks(
    elements: Any = None,
    size: int = 256,
    *,
    staged_points: int | None = None,
    points: Any = None,
    effort: str | float = "default",
    seed: int = 0,
    edge_index: Any = None,
    n_points: int | None = None,
) -> NDArray[np.int32]:
    """Cut elements into blocks that touch few points, for thread blocks of a GPU.

    Parameters
    ----------
    elements : array, pair of arrays, sparse matrix, graph or mesh
        (n, k) whole numbers from 0, the points of each element; or (offset, index) of rows
        of different lengths, a mesh, or a rectangular SciPy matrix with a row for each
        element. Of a graph (a square matrix, networkx) the vertices are cut, which touch
        their edges.
    size : int
        The most elements of a block.
    staged_points : int, optional
        The most different points of a block, such as 64 for a meshlet.
    points : (n_points, d) array, optional
        Coordinates, which make the search faster and better; a mesh brings its own.
    effort : str or float
        How long to search: ``"fast"``, ``"default"``, ``"strong"``, or a multiple of the
        default.
    seed : int
        The same seed gives the same blocks.
    edge_index : (2, n_edges) array or pair of arrays, optional
        In place of ``elements``: the ends of the edges of a graph.
    n_points : int, optional
        How many points there are, or vertices of ``edge_index``.

    Returns
    -------
    (n,) array of int32
        The block of each element, from 0; no block is empty, and neighbouring numbers are
        neighbouring blocks.

    Raises
    ------
    MeshprepError
        For shapes and numbers that do not fit, and an element that alone touches more than
        ``staged_points``.

    Notes
    -----
    The multilevel search of ``meshprep reorder``, which counts the points of all blocks,
    the loads of [S19]. O(n (log blocks + sweeps k)).

    Examples
    --------
    >>> import numpy as np
    >>> import meshprep
    >>> strip = np.arange(100)[:, None] + [0, 1]
    >>> block = meshprep.blocks(strip, size=10)
    >>> int(np.bincount(block).max())
    10
    """
    rows = elements_of(elements, points, edge_index=edge_index, n_points=n_points)
    if staged_points is not None and staged_points < 1:
        raise MeshprepError(f"staged_points is {staged_points}, must be at least 1")
    if not rows.n:
        return np.empty(0, np.int32)
    table = rows.table()

    # Bring the elements into an order of locality; coordinates give the search its own.
    order = None
    centroids = rows.centroids()
    if centroids is None:
        order = _order_of_locality(rows)
        table = np.ascontiguousarray(table[order])

    # A point is staged as one byte, so that the cap of bytes is one of points; blocks are
    # filled up to it.
    problem = BlockProblem(
        table=table,
        n_points=rows.n_points,
        block_size=size,
        point_bytes=np.ones(rows.n_points, np.int32),
        coordinates=centroids,
        seed=seed,
    )
    options = {"effort": effort, "staged_bytes": staged_points or 0, "fill": True}
    found = partition(problem, "blocks", options).block_of_element
    if order is None:
        return found
    block = np.empty_like(found)
    block[order] = found
    return block


def _order_of_locality(elements: Elements) -> Int32s:
    """The elements in the order of their points along GPS."""
    table = elements.table()
    problem = LocalityProblem(table=table, n_points=elements.n_points, target="gpu")
    of_points = ordering_of(METHODS["gps"].function(problem))
    moved = renumber_table(table, None, of_points.old_to_new)
    follow = LocalityProblem(moved, elements.n_points, target="gpu").follow(moved)
    return ordering_of(follow).new_to_old
