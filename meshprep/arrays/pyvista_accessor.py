"""``grid.meshprep``: the calls on arrays, on any grid or surface of PyVista 0.48 and newer.

PyVista finds this module by the entry point ``pyvista.accessors`` and imports it when
somebody writes ``grid.meshprep`` for the first time.
"""

from typing import Any

import numpy as np
import pyvista
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from .blocks import blocks
from .colouring import colour
from .ordering import order
from .partitioning import partition

# VTK's type of a cell that has faces of its own.
POLYHEDRON = 42


@pyvista.register_dataset_accessor("meshprep", pyvista.DataSet)
class MeshprepAccessor:
    """Orders, parts, blocks and colours of a grid, in the order of its cells."""

    def __init__(self, grid: Any) -> None:
        self._grid = grid

    def reorder(self, method: str = "gps", target: str = "cpu") -> Any:
        """The grid with its points and cells in an order of locality.

        Parameters
        ----------
        method : str
            A name in ``meshprep.ordering.METHODS``, or ``"auto"``.
        target : str
            ``"cpu"`` or ``"gpu"``.

        Returns
        -------
        pyvista.UnstructuredGrid
            With all arrays of points, cells and the field, and with ``original_id`` of
            points and of cells: their numbers in this grid.

        Raises
        ------
        MeshprepError
            For unknown methods, and a grid with polyhedra.
        """
        grid = _unstructured(self._grid)
        if (np.asarray(grid.celltypes) == POLYHEDRON).any():
            raise MeshprepError(
                "the grid has polyhedra, whose faces would be lost: take meshprep.order"
            )
        ordered = order(grid, method=method, target=target)
        of_cells = ordered.ordering["cells"]
        of_points = ordered.ordering["points"]

        # Write the cells as VTK has them: the number of points, then the points.
        offset, index = _rows(ordered.cells)
        lengths = np.diff(offset)
        cells = np.insert(index, offset[:-1], lengths)
        types = of_cells.apply(np.asarray(grid.celltypes))
        new = pyvista.UnstructuredGrid(cells, types, ordered.points)

        # Bring all arrays into the new order.
        for name, values in grid.point_data.items():
            new.point_data[name] = of_points.apply(np.asarray(values))
        for name, values in grid.cell_data.items():
            new.cell_data[name] = of_cells.apply(np.asarray(values))
        for name, values in grid.field_data.items():
            new.field_data[name] = values
        new.point_data["original_id"] = of_points.new_to_old
        new.cell_data["original_id"] = of_cells.new_to_old
        return new

    def partition(self, parts: int, **options: Any) -> NDArray[np.int32]:
        """The part of each cell; options are those of :func:`meshprep.partition`.

        Parameters
        ----------
        parts : int
        **options
            Such as ``weights`` and ``shares``.

        Returns
        -------
        (n_cells,) array of int32
            Also stored as the cell array ``part``, so that ``grid.plot()`` shows it.
        """
        return self._stored("part", partition(self._grid, parts, **options))

    def blocks(self, size: int = 256, **options: Any) -> NDArray[np.int32]:
        """The block of each cell; options are those of :func:`meshprep.blocks`.

        Parameters
        ----------
        size : int
        **options
            Such as ``staged_points``.

        Returns
        -------
        (n_cells,) array of int32
            Also stored as the cell array ``block``.
        """
        return self._stored("block", blocks(self._grid, size, **options))

    def colour(self) -> NDArray[np.int32]:
        """A colour for each cell: two of one colour share no point.

        Returns
        -------
        (n_cells,) array of int32
            Also stored as the cell array ``colour``.
        """
        return self._stored("colour", colour(self._grid))

    def _stored(self, name: str, values: NDArray[np.int32]) -> NDArray[np.int32]:
        """The values, which the grid shows as an array of its cells from now on."""
        self._grid.cell_data[name] = values
        return values


def _unstructured(grid: Any) -> Any:
    """The grid itself, or a surface or structured one as cells."""
    if isinstance(grid, pyvista.UnstructuredGrid):
        return grid
    return grid.cast_to_unstructured_grid()


def _rows(cells: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Cells as offset and index, whether they have one number of points or several."""
    if isinstance(cells, tuple):
        return cells
    n, arity = cells.shape
    return np.arange(n + 1) * arity, cells.reshape(-1)
