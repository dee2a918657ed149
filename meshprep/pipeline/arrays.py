"""From arrays to orders in one call: no mesh, no plan, no proof."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meshprep_runtime.errors import MeshprepError, check_choice
from meshprep_runtime.types.maps import INDEX_LIMIT, read_only
from meshprep_runtime.types.ordering import Ordering

from ..kernels import Int32s
from ..loops.options import TARGETS
from ..mesh.incidence import renumber_table
from ..mesh.orderings import ordering_of
from ..reorder import METHOD_NAMES, METHODS, LocalityProblem, locality_order, touch_order


@dataclass(frozen=True, eq=False)
class OrderedArrays:
    """The result of :func:`order`: the arrays in their new order, and the orders.

    Parameters
    ----------
    cells : (n_cells, k) array
        The points of each cell; a cell's points keep their places in its row.
    points : (n_points, d) array or None
    neighbours : (n_cells, sides) array or None
        The cell beyond each side, -1 where there is none.
    ordering : mapping
        An Ordering for ``"cells"`` and for ``"points"``: ``ordering["cells"].apply(values)`` brings
        values of cells into the new order, ``restore`` brings them back.
    """

    cells: NDArray[np.integer]
    points: NDArray[Any] | None
    neighbours: NDArray[np.integer] | None
    ordering: Mapping[str, Ordering]


def order(
    cells: ArrayLike,
    points: ArrayLike | None = None,
    neighbours: ArrayLike | None = None,
    method: str = "gps",
    target: str = "cpu",
) -> OrderedArrays:
    """Order cells and points for loops that stream through them.

    Parameters
    ----------
    cells : (n_cells, k) array of int
        The points of each cell, from 0.
    points : (n_points, d) array, optional
        Coordinates, which hilbert needs.
    neighbours : (n_cells, sides) array of int, optional
        The cell beyond each side, -1 where there is none. With it the cells are ordered, and points
        follow in the order of their first cells; without it cells follow the points.
    method : str
        A name in ``meshprep.reorder.METHODS``, or ``"auto"`` for the best of them.
    target : str
        ``"cpu"`` or ``"gpu"``: cells follow by their lowest and highest, or by all their points.

    Returns
    -------
    OrderedArrays
        The arrays, of the dtypes that were given, and both orders. Nothing given is changed.

    Raises
    ------
    MeshprepError
        For unknown names, shapes that do not fit, and numbers of points or cells that there are
        not.

    Notes
    -----
    The order is applied whether it gains or not; :func:`meshprep.prepare` would keep an input order
    that is no worse. O(entries of the arrays).

    Examples
    --------
    >>> import meshprep
    >>> strip = meshprep.order([[3, 0], [2, 1], [0, 2]])
    >>> strip.cells.tolist(), strip.ordering["points"].new_to_old.tolist()
    ([[0, 1], [1, 2], [2, 3]], [3, 0, 2, 1])
    """
    check_choice("method", method, METHOD_NAMES)
    check_choice("target", target, TARGETS)
    given, where = _rows(cells, "cells"), None if points is None else np.asarray(points)
    if where is not None and where.ndim != 2:
        raise MeshprepError(f"points have shape {where.shape}, must be (n_points, d)")
    n_points = len(where) if where is not None else _bounds(given)[1] + 1
    table = _checked(given, n_points, "cells", "points").astype(np.int32, "C", copy=False)
    beyond = None if neighbours is None else _rows(neighbours, "neighbours")
    if beyond is None:
        moved = _lead(LocalityProblem(table, n_points, where, target), method)
        new = renumber_table(table, None, moved.old_to_new)
        follow = LocalityProblem(new, n_points, target=target).follow(new)
        rows, new = ordering_of(follow), renumber_table(new, follow, None)
    else:
        if len(beyond) != len(table):
            raise MeshprepError(f"neighbours have {len(beyond)} rows, cells {len(table)}")
        known = _checked(beyond, len(table), "neighbours", "cells", low=-1)
        sides = known.astype(np.int32, "C", copy=False)
        placed = method == "auto" or METHODS[method].needs_coordinates
        middle = where[table].mean(axis=1) if placed and where is not None else None
        rows = _lead(LocalityProblem(_pairs(sides), len(table), middle, target), method)
        moved = ordering_of(touch_order(n_points, [(read_only(table), rows.new_to_old)]))
        new = renumber_table(table, rows.new_to_old, moved.old_to_new)
        # -1 finds the last entry
        numbers = np.append(rows.old_to_new, np.int32(-1))
        beyond = numbers[rows.apply(sides)].astype(beyond.dtype, copy=False)
    return OrderedArrays(
        new.astype(given.dtype, copy=False),
        None if where is None else moved.apply(where),
        beyond,
        {"cells": rows, "points": moved},
    )


def _lead(problem: LocalityProblem, method: str) -> Ordering:
    """The order of a problem's points by a method."""
    if method == "auto":
        return locality_order(problem, method).ordering
    if METHODS[method].needs_coordinates and problem.coordinates is None:
        raise MeshprepError(f"method '{method}' needs coordinates: give points")
    return ordering_of(METHODS[method].function(problem))


def _rows(given: ArrayLike, name: str) -> NDArray[Any]:
    """The array; raises MeshprepError unless it holds whole numbers in rows of one length."""
    found = np.asarray(given)
    if found.ndim != 2 or (found.dtype.kind not in "iu" and found.size):
        raise MeshprepError(
            f"{name} have shape {found.shape} and dtype {found.dtype}, must be whole numbers in "
            "rows of one length"
        )
    return found


def _checked(given: NDArray[Any], n: int, name: str, of: str, low: int = 0) -> NDArray[Any]:
    """The numbers; raises MeshprepError where one of them is outside."""
    if max(n, len(given)) > INDEX_LIMIT:
        raise MeshprepError(f"{name}: there are {max(n, len(given)):,} of them, past 2^31-1")
    least, most = _bounds(given)
    if least < low or most >= n:
        raise MeshprepError(f"{name} name {of} {least}..{most}, but there are {n}")
    return given


def _bounds(given: NDArray[Any]) -> tuple[int, int]:
    return (int(given.min()), int(given.max())) if given.size else (0, -1)


def _pairs(neighbours: Int32s) -> Int32s:
    """Each cell with the cells of higher number beside it; raises where these do not know it."""
    here = np.arange(len(neighbours), dtype=np.int32)[:, None]
    up, down = neighbours > here, (neighbours < here) & (neighbours >= 0)
    if np.count_nonzero(up) != np.count_nonzero(down):
        raise MeshprepError("neighbours: a cell names one that does not name it in turn")
    pairs = np.empty((np.count_nonzero(up), 2), np.int32)
    pairs[:, 0], pairs[:, 1] = np.nonzero(up)[0], neighbours[up]
    return pairs
