"""From arrays to orders in one call: no mesh, no plan, no proof."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError, check_choice, listed
from meshprep_runtime.types.maps import read_only
from meshprep_runtime.types.ordering import Ordering

from ..kernels import Int32s
from ..loops.options import TARGETS
from ..mesh.incidence import renumber_table
from ..mesh.orderings import ordering_of
from ..ordering import METHOD_NAMES, METHODS, LocalityProblem, locality_order, touch_order
from ..registry.orders import AUTO
from .inputs import (
    Elements,
    Graph,
    as_numpy,
    elements_or_graph,
    least_and_most,
    rows_in_order,
)


class NamedOrderings(Mapping[str, Ordering]):
    """Orderings by the name of what they order; another name says which there are."""

    def __init__(self, orderings: Mapping[str, Ordering]) -> None:
        self._orderings = dict(orderings)

    def __getitem__(self, name: str) -> Ordering:
        if name not in self._orderings:
            raise MeshprepError(
                f"there is no ordering of '{name}': there are {listed(self._orderings)}"
            )
        return self._orderings[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._orderings)

    def __len__(self) -> int:
        return len(self._orderings)

    def __repr__(self) -> str:
        return repr(self._orderings)


@dataclass(frozen=True, eq=False)
class OrderedArrays:
    """The result of :func:`order`: the arrays in their new order, and the orders.

    Parameters
    ----------
    cells : array, or pair of arrays
        The points of each cell, in the form that was given: (n_cells, k), (offset, index)
        of rows of different lengths, or (2, n_edges) for ``edge_index``. A cell's points
        keep their places in its row. Of a graph the ends of each edge, (n_edges, 2).
    points : (n_points, d) array or None
    neighbours : (n_cells, sides) array or None
        The cell beyond each side, -1 where there is none.
    ordering : mapping
        An Ordering for ``"cells"`` (of a graph: its edges) and for ``"points"`` (its
        vertices): ``ordering["cells"].apply(values)`` brings values of cells into the new
        order, ``restore`` brings them back.
    labels : tuple or None
        What the vertices of a networkx graph are called, in the new order.
    """

    cells: Any
    points: NDArray[Any] | None
    neighbours: NDArray[np.integer] | None
    ordering: Mapping[str, Ordering]
    labels: tuple[Hashable, ...] | None = None

    def __repr__(self) -> str:
        n_cells = self.ordering["cells"].size
        n_points = self.ordering["points"].size
        return f"OrderedArrays of {n_cells:,} cells and {n_points:,} points"


def order(
    cells: Any = None,
    points: Any = None,
    neighbours: Any = None,
    method: str = "gps",
    target: str = "cpu",
    n_points: int | None = None,
    *,
    edge_index: Any = None,
) -> OrderedArrays:
    """Order cells and points for loops that stream through them.

    Parameters
    ----------
    cells : array, pair of arrays, sparse matrix, graph or mesh
        (n_cells, k) whole numbers from 0, the points of each cell; or (offset, index) of
        rows of different lengths; or a square SciPy matrix or a networkx graph, whose
        vertices are then the points; or a mesh of meshio, scikit-fem, PyVista or meshprep.
        Arrays of torch, JAX and CuPy are taken, too.
    points : (n_points, d) array, optional
        Coordinates, which hilbert needs; a mesh brings its own.
    neighbours : (n_cells, sides) array of int, optional
        The cell beyond each side, -1 where there is none. With it the cells are ordered,
        and points follow in the order of their first cells; without it cells follow the
        points.
    method : str
        A name in ``meshprep.ordering.METHODS``, or ``"auto"`` for the best of them.
    target : str
        ``"cpu"`` or ``"gpu"``: cells follow by their lowest and highest, or by all their
        points.
    n_points : int, optional
        How many points there are, those that no cell has among them. Without it and
        ``points`` the last one is the last of a cell.
    edge_index : (2, n_edges) array or pair of arrays, optional
        In place of ``cells``: the ends of the edges of a graph, as PyTorch Geometric and
        jraph have them and ``A.nonzero()`` gives them.

    Returns
    -------
    OrderedArrays
        The arrays, of the dtypes that were given, and both orders. Nothing given is
        changed.

    Raises
    ------
    MeshprepError
        For unknown names, shapes that do not fit, and numbers of points or cells that there
        are not.

    Notes
    -----
    The order is applied whether it gains or not; :func:`meshprep.reorder` would keep
    an input order that is no worse. O(entries of the arrays). The first call on a machine
    compiles for some seconds.

    Examples
    --------
    >>> import meshprep
    >>> strip = meshprep.order([[3, 0], [2, 1], [0, 2]])
    >>> strip.cells.tolist(), strip.ordering["points"].new_to_old.tolist()
    ([[0, 1], [1, 2], [2, 3]], [3, 0, 2, 1])
    """
    check_choice("method", method, METHOD_NAMES)
    check_choice("target", target, TARGETS)

    # Check and convert.
    source = elements_or_graph(cells, points, edge_index=edge_index, n_points=n_points)
    coordinates = source.coordinates
    table = _table_of(source)
    problem = LocalityProblem(
        table=table, n_points=_points_of(source), coordinates=coordinates, target=target
    )

    if neighbours is None:
        # Order the points; cells follow them.
        beyond = None
        point_order = _ordering_by(problem, method)
        moved = renumber_table(table, None, point_order.old_to_new)
        follow = LocalityProblem(moved, problem.n_points, target=target).follow(moved)
        cell_order = ordering_of(follow)
    else:
        # Order the cells; points follow in the order of their first cells.
        beyond, sides = _checked_neighbours(neighbours, len(table))
        middles = None
        if coordinates is not None and _looks_at_coordinates(method):
            middles = coordinates[table].mean(axis=1)
        cells_as_points = LocalityProblem(
            table=_pairs_of_neighbours(sides),
            n_points=len(table),
            coordinates=middles,
            target=target,
        )
        cell_order = _ordering_by(cells_as_points, method)
        touched = touch_order(problem.n_points, [(read_only(table), cell_order.new_to_old)])
        point_order = ordering_of(touched)
        # No cell is -1: as an index that is the last entry, -1 again.
        numbers = np.append(cell_order.old_to_new, np.int32(-1))
        beyond = numbers[cell_order.apply(sides)].astype(beyond.dtype, copy=False)

    labels = None
    if isinstance(source, Graph) and source.labels is not None:
        labels = tuple(source.labels[old] for old in point_order.new_to_old)
    return OrderedArrays(
        cells=_renumbered(source, cell_order, point_order),
        points=None if coordinates is None else point_order.apply(coordinates),
        neighbours=beyond,
        ordering=NamedOrderings({"cells": cell_order, "points": point_order}),
        labels=labels,
    )


def _table_of(source: Elements | Graph) -> Int32s:
    """A row of points for each element, or for each edge of a graph."""
    if isinstance(source, Graph):
        return source.edges
    return source.table()


def _points_of(source: Elements | Graph) -> int:
    if isinstance(source, Graph):
        return source.n
    return source.n_points


def _renumbered(
    source: Elements | Graph, cell_order: Ordering, point_order: Ordering
) -> Any:
    """The cells in their new order, with new numbers, in the form that was source."""
    # Give back edges as they came: as rows, or as columns.
    if isinstance(source, Graph):
        moved = renumber_table(source.edges, cell_order.new_to_old, point_order.old_to_new)
        edges = moved.astype(source.dtype, copy=False)
        if source.turned:
            return edges.T
        return edges
    if source.arity is not None:
        table = source.table()
        moved = renumber_table(table, cell_order.new_to_old, point_order.old_to_new)
        return moved.astype(source.dtype, copy=False)
    # Rows of unlike lengths come back as (offset, index).
    rows = rows_in_order(source.rows, cell_order.new_to_old)
    index = point_order.old_to_new[rows.index]
    return rows.offset, index.astype(source.dtype, copy=False)


def _looks_at_coordinates(method: str) -> bool:
    """Whether a method uses coordinates: ``auto`` tries some that do."""
    return method == AUTO or METHODS[method].needs_coordinates


def _ordering_by(problem: LocalityProblem, method: str) -> Ordering:
    """The order of a problem's points by a method."""
    if method == AUTO:
        return locality_order(problem, method).ordering
    if METHODS[method].needs_coordinates and problem.coordinates is None:
        raise MeshprepError(f"method '{method}' needs coordinates: give points")
    return ordering_of(METHODS[method].function(problem))


def _checked_neighbours(neighbours: Any, n_cells: int) -> tuple[NDArray[Any], Int32s]:
    """The cell beyond each side, as given and with int32."""
    source = as_numpy(neighbours)
    if source.ndim != 2 or (source.dtype.kind not in "iu" and source.size):
        raise MeshprepError(
            f"neighbours have shape {source.shape} and dtype {source.dtype}, "
            "must be whole numbers in rows of one length"
        )
    if len(source) != n_cells:
        raise MeshprepError(f"neighbours have {len(source)} rows, cells {n_cells}")
    # -1 stands for the outside of the mesh.
    least, most = least_and_most(source)
    if least < -1 or most >= n_cells:
        raise MeshprepError(
            f"neighbours name cells {least}..{most}, but there are {n_cells}: give -1 "
            "where there is none"
        )
    return source, source.astype(np.int32, "C", copy=False)


def _pairs_of_neighbours(neighbours: Int32s) -> Int32s:
    """Each cell with the cells of higher number beside it.

    Raises MeshprepError where a neighbour does not name the cell in turn.
    """
    # Each pair stands at both of its cells: keep it at the lower one.
    cell = np.arange(len(neighbours), dtype=np.int32)[:, None]
    higher = neighbours > cell
    lower = (neighbours < cell) & (neighbours >= 0)
    if np.count_nonzero(higher) != np.count_nonzero(lower):
        raise MeshprepError("neighbours: a cell names one that does not name it in turn")
    pairs = np.empty((np.count_nonzero(higher), 2), np.int32)
    pairs[:, 0] = np.nonzero(higher)[0]
    pairs[:, 1] = neighbours[higher]
    return pairs
