"""Lagrange elements on triangles and tetrahedra: what a plain solver assembles.

The bilinear form is that of ``u - div grad u``, whose matrix is positive definite without boundary
conditions. Cells have straight sides, and their points stand as in Gmsh's files: corners first,
then the middles of the sides.
"""

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

# The corners between which each middle stands, as Gmsh counts them.
MIDDLES = {
    2: ((0, 1), (1, 2), (2, 0)),
    3: ((0, 1), (1, 2), (2, 0), (3, 0), (3, 2), (3, 1)),
}
# Gauss points in each direction: exact up to degree seven, less two for the corner of a simplex.
GAUSS_POINTS = 4


def reference_integrals(
    dimension: int, order: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Integrals over the reference simplex: of products of gradients, and of functions.

    The first is (dimension, dimension, k, k), for each pair of directions and of functions; the
    second (k, k).
    """
    where, weights = _simplex_rule(dimension)
    # Barycentric coordinates, (points, dimension + 1), and their gradients.
    corner = np.column_stack([1 - where.sum(axis=1), where])
    slope = np.vstack([-np.ones(dimension), np.eye(dimension)])
    if order == 1:
        value = corner
        gradient = np.broadcast_to(slope, (len(where), *slope.shape))
    else:
        a, b = np.array(MIDDLES[dimension]).T
        at_corners = corner * (2 * corner - 1)
        at_middles = 4 * corner[:, a] * corner[:, b]
        value = np.hstack([at_corners, at_middles])
        of_corners = (4 * corner - 1)[:, :, None] * slope
        of_middles = 4 * (
            corner[:, a, None] * slope[None, b] + corner[:, b, None] * slope[None, a]
        )
        gradient = np.concatenate([of_corners, of_middles], axis=1)
    stiffness = np.einsum("q,qip,qjr->prij", weights, gradient, gradient)
    mass = np.einsum("q,qi,qj->ij", weights, value, value)
    return stiffness, mass


def _simplex_rule(dimension: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points and weights of the reference simplex: Gauss points of a cube, folded onto it."""
    nodes, weights = np.polynomial.legendre.leggauss(GAUSS_POINTS)
    grid = np.meshgrid(*[0.5 * (nodes + 1)] * dimension, indexing="ij")
    weight = np.ones(1)
    for _ in range(dimension):
        weight = np.outer(weight, 0.5 * weights).ravel()
    cube = np.stack([axis.ravel() for axis in grid], axis=1)
    where = np.empty_like(cube)
    left = np.ones(len(cube))
    for axis in range(dimension):
        # What is left of the side shrinks for the axes that follow.
        where[:, axis] = left * cube[:, axis]
        weight = weight * left
        left = left * (1 - cube[:, axis])
    return where, weight


def pattern_of(cells: NDArray[np.int32], n_points: int) -> csr_array:
    """The matrix with an entry for each two points of a cell, all zeros; columns sorted."""
    arity = cells.shape[1]
    rows = np.repeat(cells, arity, axis=1).ravel()
    columns = np.tile(cells, arity).ravel()
    matrix = csr_array((np.ones(rows.size), (rows, columns)), (n_points, n_points))
    matrix.sum_duplicates()
    matrix.sort_indices()
    matrix.data[:] = 0
    return matrix


@numba.njit
def assemble(
    cells: NDArray[np.int32],
    points: NDArray[np.float64],
    dimension: int,
    stiffness: NDArray[np.float64],
    mass: NDArray[np.float64],
    offset: NDArray[np.int32],
    index: NDArray[np.int32],
    values: NDArray[np.float64],
) -> None:
    """Add up the matrix of the form: ``values`` of the rows that ``offset`` and ``index`` have.

    ``points`` is (n_points, 3). The place of a contribution is looked for in its row, as solvers
    do that add element by element.
    """
    values[:] = 0.0
    side = np.zeros((3, 3))
    gradient = np.zeros((3, 3))
    metric = np.zeros((3, 3))
    # A triangle is the base of a prism of height one.
    side[2, 2] = 1.0
    for c in range(cells.shape[0]):
        # The sides from the first corner, and the gradients of the other corners' coordinates.
        for p in range(dimension):
            for x in range(3):
                side[p, x] = points[cells[c, p + 1], x] - points[cells[c, 0], x]
        for p in range(3):
            q = (p + 1) % 3
            r = (p + 2) % 3
            for x in range(3):
                y = (x + 1) % 3
                z = (x + 2) % 3
                gradient[p, x] = side[q, y] * side[r, z] - side[q, z] * side[r, y]
        volume = 0.0
        for x in range(3):
            volume += side[0, x] * gradient[0, x]
        volume = abs(volume)
        for p in range(dimension):
            for q in range(dimension):
                product = 0.0
                for x in range(3):
                    product += gradient[p, x] * gradient[q, x]
                metric[p, q] = product / volume
        # Add each entry of the cell's matrix where its column stands in its row.
        for i in range(cells.shape[1]):
            row = cells[c, i]
            for j in range(cells.shape[1]):
                entry = volume * mass[i, j]
                for p in range(dimension):
                    for q in range(dimension):
                        entry += metric[p, q] * stiffness[p, q, i, j]
                k = offset[row]
                while index[k] != cells[c, j]:
                    k += 1
                values[k] += entry


@numba.njit
def cholesky_entries(
    offset: NDArray[np.int32], index: NDArray[np.int32]
) -> tuple[int, float]:
    """Entries of the Cholesky factor of a matrix with a symmetric pattern, and its products.

    The matrix is factored as it stands. Row i of the factor has the vertices on the paths in the
    elimination tree from the columns of row i up to i. Each step on them is an entry: O(entries).
    """
    n = offset.size - 1
    parent = np.full(n, -1, np.int64)
    root = np.arange(n)
    seen = np.full(n, -1, np.int64)
    count = np.ones(n, np.int64)
    for i in range(n):
        # Hang the trees of the columns on i, and shorten the ways to their roots.
        for k in range(offset[i], offset[i + 1]):
            j = np.int64(index[k])
            while j < i and root[j] != i:
                above = root[j]
                root[j] = i
                if above == j:
                    parent[j] = i
                j = above
        # Follow each column up the tree, to what the row has already.
        seen[i] = i
        for k in range(offset[i], offset[i + 1]):
            j = np.int64(index[k])
            while j < i and seen[j] != i:
                seen[j] = i
                count[j] += 1
                j = parent[j]
    products = 0.0
    for j in range(n):
        products += float(count[j]) * float(count[j])
    return count.sum(), products
