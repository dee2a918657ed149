"""One matrix in every store: the Laplacian on random meshes, with nodes fixed anywhere."""

import numpy as np
import pytest
import scipy.sparse

from meshprep.io.generate import generate
from meshprep.loops.requests import LoopRequest
from meshprep.mesh import ElementSet, Mesh, SetMap, Tag
from meshprep.pipeline.steps import Options, prepare
from meshprep_runtime.matrix import Assembly, ColouredSsor, LocalMatrices, Product

MAP = "cells->nodes"
MESHES = {
    "quad": lambda: generate("box", nx=12, ny=9, nz=0, type="quad", shuffle=True),
    "tetra": lambda: generate("delaunay3d", cells=500, seed=4),
    "triangle": lambda: generate("delaunay2d", cells=300, seed=4),
}
GAUSS = (1 - 3**-0.5) / 2, (1 + 3**-0.5) / 2


def reference(kind):
    """Weights (q,) and gradients (q, n, d) of linear and bilinear elements."""
    if kind != "quad":
        d = 2 if kind == "triangle" else 3
        slopes = np.vstack([-np.ones(d), np.eye(d)])
        return np.array([1 / (2 if d == 2 else 6)]), slopes[None]
    slopes = [
        [[t - 1, s - 1], [1 - t, -s], [t, s], [-t, 1 - s]] for s in GAUSS for t in GAUSS
    ]
    return np.full(4, 0.25), np.array(slopes)


def laplacian(kind, corners):
    """The matrices of all elements from their corners (cells, n, d)."""
    weights, slopes = reference(kind)
    jacobian = np.einsum("qnr,end->eqrd", slopes, corners)
    mapped = np.linalg.solve(jacobian, np.swapaxes(slopes, 1, 2)[None])
    scale = np.abs(np.linalg.det(jacobian)) * weights
    found = np.einsum("eq,eqdi,eqdj->eij", scale, mapped, mapped)
    return np.ascontiguousarray(found.reshape(len(found), -1))


def add16(L, K):
    for k in range(16):
        K[k] += L[k]


def add9(L, K):
    for k in range(9):
        K[k] += L[k]


@pytest.fixture(
    scope="module",
    params=["quad", "tetra", pytest.param("triangle", marks=pytest.mark.long)],
)
def shapes(request):
    """The kind of the cells, their nodes, and where these are."""
    kind, rng = request.param, np.random.default_rng(7)
    mesh = MESHES[kind]()
    x = mesh.coordinates[:, : 3 if kind == "tetra" else 2]
    size = np.ptp(x, axis=0) / len(x) ** (1 / x.shape[1])
    x = x + rng.uniform(-0.2, 0.2, x.shape) * size if kind == "quad" else x
    return kind, mesh.maps[MAP].table, x


@pytest.fixture(scope="module", params=[False, True], ids=["free", "fixed"])
def case(request, shapes):
    """A plan, the matrices of its elements, and the sum of these by scipy."""
    kind, table, x = shapes
    fixed = np.zeros(len(x), np.int64)
    if request.param:
        fixed[np.random.default_rng(8).random(len(x)) < 0.25] = 1
        fixed[table[:2]] = 1
    n = table.shape[1]
    args = [
        {"dat": "L", "dim": n * n},
        {
            "mat": "K",
            "rows": MAP,
            "columns": MAP,
            "access": "inc",
            "fixed": ["held"][: fixed.max()],
        },
    ]
    sets = [ElementSet("cells", len(table)), ElementSet("nodes", len(x))]
    tags = [Tag.from_ids("group", "nodes", fixed, {1: "held"})]
    mesh = Mesh(sets, [SetMap(MAP, "cells", "nodes", table)], tags=tags)
    request = LoopRequest("add", {"over": "cells", "args": args}, "test")
    plan = prepare(mesh, [request], Options(block_size=32)).plan
    new = plan.maps[MAP].table
    values = laplacian(kind, x[plan.ordering["nodes"].new_to_old][new])
    assert np.array_equal(
        plan.matrices["K"].row_of < 0, plan.ordering["nodes"].apply(fixed) > 0
    )
    dofs = plan.matrices["K"].row_of[new]
    row, column = np.repeat(dofs, n, axis=1), np.tile(dofs, n)
    kept = (row >= 0) & (column >= 0)
    shape = plan.matrices["K"].shape
    wanted = scipy.sparse.coo_array(
        (values[kept], (row[kept], column[kept])), shape
    ).tocsr()
    return plan["add"], values, wanted


STORES = {
    "coloured": {},
    "two-step": {"strategy": "two-step"},
    "ellpack": {"store": "ellpack"},
    "lazy ellpack": {"store": "lazy-ellpack"},
    "local": {"store": "local"},
}


def test_every_store_multiplies_as_the_sum_by_scipy(case):
    plan, values, wanted = case
    add = add16 if values.shape[1] == 16 else add9
    x = np.random.default_rng(9).standard_normal(wanted.shape[1])
    scale = (abs(wanted) @ abs(x)).max()
    made = {name: Assembly(add, plan, **how)(L=values) for name, how in STORES.items()}
    local = made["local"]
    n = local.dofs.shape[1]
    i, j = np.triu_indices(n)
    halves = np.ascontiguousarray(local.values[:, i * n + j])
    made["half"] = LocalMatrices(halves, local.dofs, True, local.n_rows)
    for name, store in made.items():
        assert abs(store.to_scipy() - wanted).max() <= 1e-13 * abs(wanted).max(), name
        blocks = plan if isinstance(store, LocalMatrices) else None
        assert abs(Product(store, blocks) @ x - wanted @ x).max() <= 1e-13 * scale, name


def test_the_laplacian_is_symmetric_and_its_rows_sum_to_nothing(case):
    plan, values, wanted = case
    matrix = Assembly(add16 if values.shape[1] == 16 else add9, plan)(L=values)
    largest = abs(wanted).max()
    made = matrix.to_scipy()
    assert abs(made - made.T).max() <= 1e-13 * largest
    some = values.shape[1] ** 0.5
    if made.shape[0] == plan.sizes["nodes"]:
        assert abs(made.sum(axis=1)).max() <= 1e-12 * largest
        # the nodes of a cell see each other
        assert ColouredSsor(matrix).colours >= some
