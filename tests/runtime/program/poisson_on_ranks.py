"""A matrix of linear triangles and its solution, on one rank and on several."""

import numpy as np
import scipy.sparse

import meshprep
from meshprep.loops.requests import LoopRequest
from meshprep.pipeline import workflow
from meshprep_runtime import Access, Arg, Loop
from meshprep_runtime.matrix import (
    Assembly,
    Jacobi,
    PartAssembly,
    PartProduct,
    Product,
    cg,
    dot_on,
    zero_rows_and_columns,
)

CELLS_TO_NODES = "cells->nodes"
STIFFNESS = Loop(
    "stiffness",
    "cells",
    (
        Arg("x", Access.READ, 2, "f8", CELLS_TO_NODES, (0, 1, 2)),
        Arg("K", Access.INC, 3, "f8", CELLS_TO_NODES, (0, 1, 2), columns=CELLS_TO_NODES),
    ),
)
REQUEST = LoopRequest("stiffness", STIFFNESS.to_dict(), "stiffness")


def stiffness(a, b, c, K):
    bx, by, cx, cy = b[0] - a[0], b[1] - a[1], c[0] - a[0], c[1] - a[1]
    det = bx * cy - by * cx
    gx = (by - cy) / det, cy / det, -by / det
    gy = (cx - bx) / det, -cx / det, bx / det
    for i in range(3):
        for j in range(3):
            K[3 * i + j] += 0.5 * abs(det) * (gx[i] * gx[j] + gy[i] * gy[j])


def make_square(path):
    """Triangles in no order. Not between random points: there rounding decides the iterations."""
    values = {"nx": 17, "ny": 17, "nz": 0, "type": "triangle", "shuffle": True}
    workflow.generate("box", path, values=values)


def places(mesh):
    """Where its nodes are: inner ones are moved a little."""
    x = mesh.coordinates[:, :2] / mesh.coordinates.max()
    inner = ((x > 1e-9) & (x < 1 - 1e-9)).all(axis=1)
    moved = np.random.default_rng(0).uniform(-0.3, 0.3, x.shape) / 17
    return x + moved * inner[:, None]


def fixed_nodes(x):
    """Those on two sides of the square, and in a disc: all nodes of some cells."""
    in_disc = ((x - [0.6, 0.5]) ** 2).sum(axis=1) < 0.04
    return (x[:, 0] < 1e-9) | (x[:, 1] < 1e-9) | in_disc


def prescribed(x):
    """Values for fixed nodes."""
    return 0.25 + x[:, 0] - 2 * x[:, 1]


def load(x):
    """A right side, without what the fixed nodes would have."""
    return np.where(fixed_nodes(x), 0.0, np.sin(7 * x[:, 0]) + x[:, 1])


# Rows and columns of fixed nodes are those of the identity, by values of 0 and by others.
FORMS = ("zeroed", "prescribed")


def on_part(plan, x, form="zeroed"):
    """The matrix of a rank and what conjugate gradients find, by the numbers of the mesh.

    Returns
    -------
    rows, row_ptr, columns, values, load, solution, iterations
    """
    own = x[plan.numbers("nodes")]
    fixed = plan.dat("nodes", 1, "i4", values=fixed_nodes(own).astype("i4"))
    points, right = plan.dat("nodes", 2, values=own), load(own)
    if form == "prescribed":
        assemble = PartAssembly(stiffness, plan, "stiffness")
        values = plan.dat("nodes", values=prescribed(own))
        rows = np.flatnonzero(fixed.array)
        K = assemble(x=points)
        matrix, right = zero_rows_and_columns(
            K, right, rows, values.array.reshape(-1)[rows]
        )
    else:
        assemble = PartAssembly(stiffness, plan, "stiffness", fixed=fixed)
        assemble(x=points)
        matrix = assemble(x=points)
    product = PartProduct(matrix, plan, "nodes")
    found = cg(product.__matmul__, right, Jacobi(matrix), dot=dot_on(plan))
    # the numbers of the copies, as dats bring them
    number = plan.dat("nodes", 1, "i8", values=plan.numbers("nodes")).array.reshape(-1)
    rows, columns = number[: matrix.shape[0]], number[matrix.columns]
    return rows, matrix.row_ptr, columns, matrix.values, right, found.x, found.iterations


def on_one_rank(mesh, form="zeroed"):
    """The same of one rank: the matrix with all rows of the mesh, load, solution, iterations."""
    plan = meshprep.prepare(mesh, [REQUEST]).plan
    order = plan.ordering["nodes"]
    x = order.apply(places(mesh))
    matrix, right = (
        Assembly(stiffness, plan["stiffness"], strategy="sequential")(x=x),
        load(x),
    )
    fixed, number = np.flatnonzero(fixed_nodes(x)), order.new_to_old
    values = prescribed(x)[fixed] if form == "prescribed" else 0.0
    matrix, right = zero_rows_and_columns(matrix, right, fixed, values)
    found = cg(Product(matrix).__matmul__, right, Jacobi(matrix))
    made, shape = matrix.to_scipy().tocoo(), (len(x), len(x))
    of_mesh = scipy.sparse.coo_array(
        (made.data, (number[made.row], number[made.col])), shape
    )
    of_mesh = of_mesh.tocsr()
    of_mesh.sort_indices()
    loads, solution = np.zeros((2, len(x)))
    loads[number], solution[number] = right, found.x
    return of_mesh, loads, solution, found.iterations


def is_as_alone(of_part, alone):
    """True where a rank has the rows of one rank: the same entries, and values to rounding."""
    rows, row_ptr, columns, values, right, x, iterations = of_part
    matrix, loads, solution, wanted_iterations = alone
    order = np.lexsort((columns, np.repeat(np.arange(rows.size), np.diff(row_ptr))))
    wanted = matrix[rows]
    return bool(
        np.array_equal(row_ptr, wanted.indptr)
        and np.array_equal(columns[order], wanted.indices)
        and abs(values[order] - wanted.data).max() <= 1e-13 * abs(matrix.data).max()
        and abs(right - loads[rows]).max() <= 1e-13 * abs(loads).max()
        and abs(x - solution[rows]).max() <= 1e-6 * abs(solution).max()
        and abs(iterations - wanted_iterations) <= 1
    )
