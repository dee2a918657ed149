"""What the calls on arrays take: tables, ragged rows, matrices, graphs and meshes.

A thing that is given is either *elements*, rows of the points that each of them touches, or
a *graph*, whose vertices are joined by edges. Square sparse matrices, networkx graphs and
``edge_index`` are graphs; everything else is elements.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import INDEX_LIMIT, offsets_of

from ..kernels import Int32s, Int64s
from ..mesh.incidence import Csr, point_graph, transpose
from ..partitioning.connectivity import distinct_rows
from ..partitioning.neighbourhood import facet_graph

# The most points of a cell where there are only two cells: two longer rows are edges.
MOST_POINTS = 64


INT32 = np.dtype(np.int32)


@dataclass(frozen=True, eq=False)
class Elements:
    """The points of each element, in rows of one length or of different lengths."""

    # Row ``e`` has the points of element ``e``.
    rows: Csr
    n_points: int
    # How many points every element has; None where rows may have different lengths.
    arity: int | None = None
    # (n_points, d): where the points are; None where nobody says.
    coordinates: NDArray[Any] | None = None
    # The dtype of the numbers that were given.
    dtype: np.dtype[Any] = INT32

    @property
    def n(self) -> int:
        """Number of elements."""
        return self.rows.n_rows

    def centroids(self) -> NDArray[np.float64] | None:
        """The mean of the points of each element, (n, d); None without coordinates."""
        if self.coordinates is None or not self.coordinates.shape[1] or not self.n:
            return None
        where = np.asarray(self.coordinates, np.float64)
        middles: NDArray[np.float64] = where[self.table()].mean(axis=1)
        return middles

    def neighbours(self) -> Csr:
        """For each element those that share most points with it: a side, in a mesh."""
        return facet_graph(distinct_rows(self.table()), self.n_points)

    def table(self) -> Int32s:
        """The rows as a table; short ones name their first point again. O(n longest row).

        An element that names a point twice touches it once.
        """
        if self.arity is not None:
            return self.rows.index.reshape(self.n, self.arity)
        # Refuse what no table can hold: no first point to repeat, or far too many columns.
        lengths = np.diff(self.rows.offset)
        if not lengths.all():
            empty = int(np.argmin(lengths))
            raise MeshprepError(f"element {empty} has no points: leave it out")
        longest = int(lengths.max())
        if self.n * longest > 8 * INDEX_LIMIT:
            raise MeshprepError(
                f"an element has {longest:,} points: a table of {self.n:,} such rows "
                "does not fit into memory"
            )
        # Fill it by columns; a short row repeats its first point, which loads no other.
        table = np.empty((self.n, longest), np.int32)
        first = self.rows.offset[:-1]
        for column in range(longest):
            place = np.where(column < lengths, first + column, first)
            table[:, column] = self.rows.index[place]
        return table


@dataclass(frozen=True, eq=False)
class Graph:
    """Vertices and the edges between them."""

    # (n_edges, 2): the ends of each edge, as they were given.
    edges: Int32s
    n: int  # vertices
    # (n, d): where the vertices are; None where nobody says.
    coordinates: NDArray[Any] | None = None
    dtype: np.dtype[Any] = INT32
    # What the vertices are called, in their order; None where they are numbers.
    labels: tuple[Hashable, ...] | None = None
    # Whether edges were given as two rows, and are to be given back so.
    turned: bool = False

    def neighbours(self) -> Csr:
        """The neighbours of each vertex, ascending, without loops and repeats."""
        return point_graph(self.edges, self.n)

    def incidence(self) -> Elements:
        """Vertices as elements that touch their edges: neighbours share a point."""
        is_loop = self.edges[:, 0] == self.edges[:, 1]
        apart = self.edges[~is_loop]
        return Elements(rows=transpose(apart, self.n), n_points=len(apart))


def elements_or_graph(
    given: Any = None,
    points: Any = None,
    *,
    edge_index: Any = None,
    n_points: int | None = None,
) -> Elements | Graph:
    """What was given, checked and converted; nothing given is changed.

    Parameters
    ----------
    given : array, pair of arrays, sparse matrix, graph or mesh
        - ``(n, k)`` whole numbers from 0: the points of each element;
        - ``(offset, index)``: the points of element e are ``index[offset[e]:offset[e+1]]``;
        - a SciPy sparse matrix or array: a graph where it is square, else a row for each
          element with a nonzero for each point;
        - a networkx graph;
        - a mesh of meshio, scikit-fem or PyVista, or a meshprep.Mesh: its cells.
        Arrays of torch, JAX and CuPy are taken wherever NumPy's are.
    points : (n_points, d) array, optional
        Coordinates of the points, or of the vertices of a graph.
    edge_index : (2, n_edges) array or pair of arrays, optional
        In place of ``given``: the two ends of each edge of a graph, as PyTorch Geometric
        and jraph have them, and as ``A.nonzero()`` gives them.
    n_points : int, optional
        How many points or vertices there are, those that nothing touches among them.

    Raises
    ------
    MeshprepError
        For shapes that do not fit, numbers outside of ``0..n_points - 1``, and kinds that
        are not known.
    """
    if (given is None) == (edge_index is None):
        raise MeshprepError("give the cells or graph, or edge_index=, one of both")
    coordinates = None if points is None else as_numpy(points)
    if edge_index is not None:
        return _graph_of_ends(edge_index, coordinates, n_points)
    # Tell the kinds apart by their methods, so that no library of the caller is imported.
    if hasattr(given, "nonzero") and hasattr(given, "tocsr"):
        return _of_sparse_matrix(given, coordinates, n_points)
    if hasattr(given, "adj") and hasattr(given, "edges"):
        return _graph_of_networkx(given, coordinates, n_points)
    if _is_mesh(given):
        return _cells_of_mesh(given, coordinates, n_points)
    if _is_pair_of_rows(given):
        return _of_pair_of_rows(given, coordinates, n_points)
    return _elements_of_table(given, coordinates, n_points)


def elements_of(
    given: Any = None,
    points: Any = None,
    *,
    edge_index: Any = None,
    n_points: int | None = None,
) -> Elements:
    """As :func:`elements_or_graph`; the vertices of a graph touch their edges."""
    found = elements_or_graph(given, points, edge_index=edge_index, n_points=n_points)
    if isinstance(found, Graph):
        return found.incidence()
    return found


def as_numpy(given: Any) -> NDArray[Any]:
    """An array of NumPy, copied from the device where it lies on one."""
    if isinstance(given, np.ndarray):
        return given
    if hasattr(given, "__cuda_array_interface__"):
        # CuPy calls it get, torch cpu.
        copy = getattr(given, "get", None) or getattr(given, "cpu", None)
        if copy is not None:
            return np.asarray(copy())
    if hasattr(given, "detach"):
        # NumPy does not take tensors of torch that have a gradient.
        return np.asarray(given.detach())
    return np.asarray(given)


def _elements_of_table(
    given: Any, coordinates: NDArray[Any] | None, n_points: int | None
) -> Elements:
    rows = as_numpy(given)
    if rows.shape == (0,):
        # An empty list does not say how many points an element has.
        rows = np.empty((0, 2), np.int64)
    rows = _whole_numbers(rows, "cells")
    if len(rows) == 2 and rows.shape[1] > 2:
        _refuse_two_rows_of_ends(rows)
    n_points = _number_of_points(rows, coordinates, n_points)
    _check_numbers(rows, n_points, count=len(rows))
    n, arity = rows.shape
    offset = np.arange(n + 1, dtype=np.int64) * arity
    index = np.ascontiguousarray(rows, np.int32).reshape(-1)
    return Elements(
        rows=Csr(offset, index),
        n_points=n_points,
        arity=arity,
        coordinates=coordinates,
        dtype=rows.dtype,
    )


def _refuse_two_rows_of_ends(rows: NDArray[Any]) -> None:
    """Refuse the ends of edges, which as a table would be two cells of many points."""
    count = rows.shape[1]
    names_twice = any(len(set(row)) < len(row) for row in rows[:, :MOST_POINTS].tolist())
    if count > MOST_POINTS or names_twice:
        raise MeshprepError(
            f"cells have shape (2, {count}): if these are the ends of {count} edges, "
            "give them as edge_index="
        )


def _is_pair_of_rows(given: Any) -> bool:
    """Whether this is a tuple of two arrays with one axis each."""
    if not isinstance(given, tuple) or len(given) != 2:
        return False
    return all(getattr(one, "ndim", None) == 1 for one in given)


def _of_pair_of_rows(
    given: Any, coordinates: NDArray[Any] | None, n_points: int | None
) -> Elements | Graph:
    """Ragged rows (offset, index), or the ends of edges as ``A.nonzero()`` gives them."""
    # Two arrays may be offsets and index, or first and second ends.
    first = as_numpy(given[0])
    second = as_numpy(given[1])
    offsets = _are_offsets(first, second.size)
    if offsets and first.size == second.size:
        raise MeshprepError(
            "two arrays of one length could be the ends of edges or (offset, index): "
            "give edges as edge_index="
        )
    # Numbers that do not rise from 0 to the size of the other array are ends.
    if not offsets:
        return _graph_of_ends(given, coordinates, n_points)
    index = _whole_numbers(second[None], "index")[0]
    n_points = _number_of_points(index, coordinates, n_points)
    _check_numbers(index, n_points, count=first.size - 1)
    return Elements(
        rows=Csr(first.astype(np.int64), index.astype(np.int32)),
        n_points=n_points,
        coordinates=coordinates,
        dtype=index.dtype,
    )


def _are_offsets(numbers: NDArray[Any], size: int) -> bool:
    """Whether these go from 0 up to ``size`` without falling."""
    if not numbers.size or numbers.dtype.kind not in "iu":
        return False
    if numbers[0] != 0 or numbers[-1] != size:
        return False
    return bool((numbers[1:] >= numbers[:-1]).all())


def _graph_of_ends(
    edge_index: Any, coordinates: NDArray[Any] | None, n_points: int | None
) -> Graph:
    """A graph of two rows, or two arrays, with the ends of its edges."""
    # Join two arrays of ends into rows, once they are known to be as long.
    if isinstance(edge_index, tuple | list):
        ends = [as_numpy(one) for one in edge_index]
        if len(ends) == 2 and ends[0].shape != ends[1].shape:
            raise MeshprepError(
                f"the edges have {ends[0].size} first and {ends[1].size} second ends: "
                "give as many"
            )
        rows = np.asarray(ends)
    else:
        rows = as_numpy(edge_index)
    rows = _whole_numbers(rows, "edge_index")
    if len(rows) != 2:
        raise MeshprepError(
            f"edge_index has shape {rows.shape}, must be (2, n_edges): give rows of two "
            "as cells"
        )
    n = _number_of_points(rows, coordinates, n_points)
    _check_numbers(rows, n, count=rows.shape[1])
    # An edge is a row of two inside; ``turned`` remembers that it came as a column.
    return Graph(
        edges=np.ascontiguousarray(rows.T, np.int32),
        n=n,
        coordinates=coordinates,
        dtype=rows.dtype,
        turned=True,
    )


def _of_sparse_matrix(
    matrix: Any, coordinates: NDArray[Any] | None, n_points: int | None
) -> Elements | Graph:
    """A square matrix is a graph, another one the incidence of elements and points."""
    if len(matrix.shape) != 2:
        raise MeshprepError(f"the matrix has shape {matrix.shape}, must be (rows, columns)")
    n_rows, n_columns = matrix.shape
    if n_points not in (None, n_columns):
        raise MeshprepError(
            f"n_points is {n_points}, but the matrix has {n_columns} columns: leave "
            "n_points out"
        )
    _number_of_points(np.empty(0, np.int64), coordinates, n_columns)
    if max(n_rows, n_columns) > INDEX_LIMIT:
        raise MeshprepError(f"the matrix has shape {matrix.shape}, past 2^31-1")
    if n_rows == n_columns:
        # Stored zeros are edges, too: a pattern may hold nothing else.
        entries = matrix.tocoo()
        edges = np.column_stack([entries.row, entries.col])
        return Graph(
            edges=np.ascontiguousarray(edges, np.int32),
            n=n_rows,
            coordinates=coordinates,
            dtype=entries.row.dtype,
        )
    # A row of a rectangular matrix is an element, its columns are its points.
    rows = matrix.tocsr()
    return Elements(
        rows=Csr(rows.indptr.astype(np.int64), rows.indices.astype(np.int32)),
        n_points=n_columns,
        coordinates=coordinates,
        dtype=rows.indices.dtype,
    )


def _graph_of_networkx(
    graph: Any, coordinates: NDArray[Any] | None, n_points: int | None
) -> Graph:
    """The vertices of a networkx graph in its own order, whatever they are called."""
    labels = tuple(graph)
    if n_points not in (None, len(labels)):
        raise MeshprepError(
            f"n_points is {n_points}, but the graph has {len(labels)} nodes: leave "
            "n_points out"
        )
    _number_of_points(np.empty(0, np.int64), coordinates, len(labels))
    # Vertices may have any names: number them as the graph lists them.
    number = {label: i for i, label in enumerate(labels)}
    ends = [(number[first], number[second]) for first, second in graph.edges()]
    edges = np.asarray(ends, np.int32).reshape(-1, 2)
    return Graph(edges=edges, n=len(labels), coordinates=coordinates, labels=labels)


def _is_mesh(given: Any) -> bool:
    """Whether this is a mesh of meshprep, meshio, scikit-fem or PyVista."""
    of_meshprep = hasattr(given, "maps") and hasattr(given, "sets")
    of_meshio = hasattr(given, "cells") and hasattr(given, "points")
    of_skfem = hasattr(given, "t") and hasattr(given, "p") and hasattr(given, "doflocs")
    return of_meshprep or of_meshio or of_skfem or is_pyvista(given)


def is_pyvista(given: Any) -> bool:
    """Whether this is a grid or surface of PyVista, without importing it."""
    return hasattr(given, "cast_to_unstructured_grid")


def _cells_of_mesh(
    mesh: Any, coordinates: NDArray[Any] | None, n_points: int | None
) -> Elements:
    """The cells of a mesh and its points."""
    if n_points is not None:
        raise MeshprepError("a mesh says how many points it has: leave n_points out")
    # Tell the libraries apart by what their meshes have, so that none is imported.
    if hasattr(mesh, "maps") and hasattr(mesh, "sets"):
        rows, own_points = _cells_of_meshprep(mesh)
    elif hasattr(mesh, "doflocs"):
        table = np.asarray(mesh.t).T
        rows = _rows_of_tables([table])
        own_points = np.asarray(mesh.p).T
    elif is_pyvista(mesh):
        rows = _cells_of_pyvista(mesh)
        own_points = np.asarray(mesh.points)
    else:
        rows = _cells_of_meshio(mesh)
        own_points = np.asarray(mesh.points)
    # Coordinates of the caller take the place of those of the mesh.
    if coordinates is None:
        coordinates = own_points
    n_points = len(own_points)
    _number_of_points(np.empty(0, np.int64), coordinates, n_points)
    _check_numbers(rows.index, n_points, count=rows.n_rows)
    return Elements(
        rows=rows,
        n_points=n_points,
        arity=_common_length(rows),
        coordinates=coordinates,
    )


def _common_length(rows: Csr) -> int | None:
    """The length of all rows; None where they differ, or there are none."""
    lengths = np.diff(rows.offset)
    if lengths.size and (lengths == lengths[0]).all():
        return int(lengths[0])
    return None


def _cells_of_meshprep(mesh: Any) -> tuple[Csr, NDArray[Any]]:
    """The map of a mesh from its cells to its nodes."""
    if "cells->nodes" not in mesh.maps:
        raise MeshprepError(
            "the mesh has no map cells->nodes: give the table of one of its maps"
        )
    nodes = mesh.maps["cells->nodes"]
    # A mesh without geometry has points without coordinates.
    where = mesh.coordinates
    if where is None:
        where = np.empty((mesh.sizes["nodes"], 0))
    return _rows_of_tables([nodes.table]), where


def _cells_of_meshio(mesh: Any) -> Csr:
    """The cells of the highest dimension, block after block."""
    dimensions = [block.dim for block in mesh.cells]
    highest = max(dimensions, default=0)
    tables = []
    for block, dimension in zip(mesh.cells, dimensions, strict=True):
        if dimension == highest:
            tables.append(np.asarray(block.data))
    return _rows_of_tables(tables)


def _cells_of_pyvista(mesh: Any) -> Csr:
    """The cells of a grid, or the faces of a surface."""
    grid = mesh
    if not hasattr(grid, "cell_connectivity"):
        grid = grid.cast_to_unstructured_grid()
    # PyVista 0.48 calls them cell_offsets.
    name = "cell_offsets" if hasattr(grid, "cell_offsets") else "offset"
    offset = np.asarray(getattr(grid, name))
    index = np.asarray(grid.cell_connectivity)
    return Csr(offset.astype(np.int64), index.astype(np.int32))


def _rows_of_tables(tables: list[NDArray[Any]]) -> Csr:
    """Tables one below the other as rows of their own lengths."""
    lengths = [np.full(len(table), table.shape[1], np.int64) for table in tables]
    offset: Int64s = offsets_of(np.concatenate([np.empty(0, np.int64), *lengths]))
    flat = [table.reshape(-1) for table in tables]
    index = np.concatenate([np.empty(0, np.int32), *flat]).astype(np.int32)
    return Csr(offset, index)


def _whole_numbers(rows: NDArray[Any], name: str) -> NDArray[Any]:
    """The array; raises MeshprepError unless it has rows of whole numbers."""
    if rows.ndim != 2 or (rows.dtype.kind not in "iu" and rows.size):
        raise MeshprepError(
            f"{name} have shape {rows.shape} and dtype {rows.dtype}, "
            "must be whole numbers in rows of one length"
        )
    return rows


def _number_of_points(
    numbers: NDArray[Any], coordinates: NDArray[Any] | None, n_points: int | None
) -> int:
    """How many points there are; raises MeshprepError where the arguments do not agree."""
    # Without coordinates the largest number tells, but points beyond it may exist.
    if coordinates is None:
        if n_points is None:
            return least_and_most(numbers)[1] + 1
        return n_points
    if coordinates.ndim != 2:
        raise MeshprepError(f"points have shape {coordinates.shape}, must be (n_points, d)")
    if n_points not in (None, len(coordinates)):
        raise MeshprepError(
            f"n_points is {n_points}, but points has {len(coordinates)} rows: "
            "leave n_points out"
        )
    return len(coordinates)


def _check_numbers(numbers: NDArray[Any], n_points: int, *, count: int) -> None:
    """Raise MeshprepError for numbers of points that there are not, and for too many."""
    if max(n_points, count) > INDEX_LIMIT:
        raise MeshprepError(f"there are {max(n_points, count):,} of them, past 2^31-1")
    least, most = least_and_most(numbers)
    if least < 0 or most >= n_points:
        raise MeshprepError(f"cells name points {least}..{most}, but there are {n_points}")


def rows_in_order(rows: Csr, new_to_old: Int32s) -> Csr:
    """The rows in another order. O(entries)."""
    offset = offsets_of(np.diff(rows.offset)[new_to_old])
    # Where each entry of the new rows stood before.
    shift = rows.offset[new_to_old] - offset[:-1]
    entry = np.arange(offset[-1]) + np.repeat(shift, np.diff(offset))
    return Csr(offset, rows.index[entry])


def least_and_most(numbers: NDArray[Any]) -> tuple[int, int]:
    """The least and the largest number; 0 and -1 where there are none."""
    if numbers.size:
        return int(numbers.min()), int(numbers.max())
    return 0, -1
