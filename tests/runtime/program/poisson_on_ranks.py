"""A matrix of linear triangles and its solution, on one rank and on several."""

import numpy as np
import scipy.sparse

import meshprep
from meshprep.loops import LoopRequest
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


def fixed_nodes(x):
    """Those on two sides of the square."""
    return (x[:, 0] < 1e-9) | (x[:, 1] < 1e-9)


def load(x):
    """A right side, without what the fixed nodes would have."""
    return np.where(fixed_nodes(x), 0.0, np.sin(7 * x[:, 0]) + x[:, 1])


def on_part(plan, x):
    """The rows of a rank with global columns, and what conjugate gradients find there."""
    own = x[plan.numbers("nodes")]
    flags = fixed_nodes(own).astype("i4")
    fixed = plan.dat("nodes", 1, "i4", values=flags)
    assemble = PartAssembly(stiffness, plan, "stiffness", fixed=fixed)
    points = plan.dat("nodes", 2, values=own)
    assemble(x=points)
    matrix = assemble(x=points)
    product = PartProduct(matrix, plan, "nodes")
    found = cg(product.__matmul__, load(own), Jacobi(matrix), dot=dot_on(plan))
    # the numbers of the copies, as dats bring them
    number = plan.dat("nodes", 1, "i8", values=plan.numbers("nodes")).array.reshape(-1)
    rows = np.repeat(plan.numbers("nodes"), np.diff(matrix.row_ptr))
    return rows, number[matrix.columns], matrix.values, found, plan.numbers("nodes")


def on_one_rank(mesh):
    """The matrix, the solution in the order of the mesh, and the iterations."""
    plan = meshprep.prepare(mesh, [REQUEST]).plan
    order = plan.ordering["nodes"]
    x = order.apply(np.ascontiguousarray(mesh.coordinates[:, :2]))
    matrix = Assembly(stiffness, plan["stiffness"], strategy="sequential")(x=x)
    fixed = np.flatnonzero(fixed_nodes(x))
    matrix, right = zero_rows_and_columns(matrix, load(x), fixed)
    found = cg(Product(matrix).__matmul__, right, Jacobi(matrix))
    made, old = matrix.to_scipy().tocoo(), order.new_to_old
    of_mesh = scipy.sparse.coo_array((made.data, (old[made.row], old[made.col])), made.shape)
    return of_mesh.tocsr(), order.restore(found.x), found.iterations
