"""The page about matrices, run as it stands, against scikit-fem."""

import re
import sys
import threading
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest
from fake_cupy import FakeCupy
from matrices import ITERATIONS
from pages import DOCS, blocks, steps

import meshprep
from meshprep.io import write
from meshprep.io.generate import generate
from meshprep_runtime import DistributedPlan, MeshprepError, Program, run_ranks
from meshprep_runtime.cuda import device, gpu
from meshprep_runtime.matrix import Assembly, BatchSums
from meshprep_runtime.program import distributed

EXAMPLES = DOCS.parent / "examples"
PAGE, PRODUCTS, FORMS = (
    f"solvers/{name}.md" for name in ("matrices", "products", "scikit-fem")
)


def block(words, language="python"):
    pages = (blocks(page, language) for page in (PAGE, PRODUCTS, FORMS))
    return next(b for page in pages for b in page if words in b)


def kernel_of_the_tutorial():
    program = dict(steps("tutorials/finite-elements.md"))["poisson.py"]
    return re.search(r"^def stiffness.*?(?=\n\n\n)", program, re.MULTILINE | re.DOTALL)[0]


@pytest.fixture
def cupy(monkeypatch, needs_gxx):
    """A stand-in of CuPy, whose kernels run under g++."""
    made = FakeCupy()
    monkeypatch.setitem(sys.modules, "cupy", made)
    monkeypatch.setattr(gpu, "compiled", made.compiled)
    monkeypatch.setattr(device, "_known", {})
    return made


def test_the_assembly_of_the_page_is_that_of_scikit_fem(tmp_path, monkeypatch, cupy):
    skfem = pytest.importorskip("skfem")
    from skfem.models.poisson import laplace

    monkeypatch.chdir(tmp_path)
    Path("loops.toml").write_text(*blocks(PAGE, "toml"))
    mesh = meshprep.from_skfem(skfem.MeshTri().refined(4))
    done = meshprep.prepare(mesh, meshprep.read_requests("loops.toml"))
    done.plan.save("wing.plan.h5")
    order = done.plan.ordering["nodes"]
    scope = {"x": order.apply(np.ascontiguousarray(mesh.coordinates[:, :2]))}
    exec(kernel_of_the_tutorial(), scope)
    exec(block("Assembly"), scope)
    made, matrix = scope["K"].to_scipy(), scope["plan"].matrices["K"]
    program = Program(scope["plan"])
    values = program.matrix("K")
    nodes = program.dat("nodes", dim=2, values=scope["x"])
    with program.chain():
        program.loop(scope["stiffness"], "stiffness")(x=nodes, K=values)
        found = matrix.csr(values=values.values())
    assert abs(found.to_scipy() - made).max() < 1e-12
    exec(block("assemble(x=cupy", "py"), scope)
    assert abs(scope["K"].to_scipy() - made).max() < 1e-12
    basis = skfem.Basis(meshprep.to_skfem(mesh), skfem.ElementTriP1())
    # dof to node of the input: corners of cells, in both
    cells = done.plan.maps["cells->dofs1"].table
    node = np.empty(done.plan.sizes["dofs1"], np.int64)
    node[cells] = order.new_to_old[done.plan.maps["cells->nodes"].table]
    free = node[matrix.row_of >= 0]
    wanted = laplace.assemble(basis)[free][:, free]
    assert abs(made - wanted).max() < 1e-12
    assert sorted(node[matrix.row_of < 0]) == sorted(basis.get_dofs().flatten())


class CommOfThread(threading.local):
    """The communicator of each rank that is a thread."""

    comm = None


def test_the_ranks_of_the_page(tmp_path, monkeypatch):
    """On two ranks: the solution without and with sweeps, and powers of the matrix."""
    monkeypatch.chdir(tmp_path)
    write(generate("delaunay2d", cells=200), "wing.msh")
    x = {"dat": "x", "map": "cells->nodes", "dim": 2}
    maps = {"rows": "cells->nodes", "columns": "cells->nodes"}
    stiffness = {"over": "cells", "args": [x, {"mat": "K", "access": "inc"} | maps]}
    meshprep.split("wing.msh", 2, {"stiffness": stiffness}, output="wing.parts.h5")
    of_rank = CommOfThread()
    monkeypatch.setattr(distributed, "world", lambda: of_rank.comm)
    coordinates = meshprep.read("wing.msh").coordinates[:, :2]
    low, high = coordinates.min(axis=0), coordinates.max(axis=0)
    is_on_boundary = ((coordinates < low + 0.01) | (coordinates > high - 0.01)).any(axis=1)
    kernel = kernel_of_the_tutorial()

    def main(comm):
        of_rank.comm = comm
        plan = DistributedPlan.load("wing.parts.h5", comm)
        own = is_on_boundary[plan.numbers("nodes")]
        scope = {"coordinates": coordinates, "on_boundary": is_on_boundary.astype("i4")}
        scope["load"] = np.where(own, 0.0, 1.0)
        exec(kernel, scope)
        exec(block("import Jacobi, PartAssembly", "py"), scope)
        exec(block("import PartPowers", "py"), scope)
        found, better = scope["found"], scope["better"]
        assert better.iterations < found.iterations
        np.testing.assert_allclose(better.x, found.x, atol=1e-6)
        product = scope["product"]
        assert np.array_equal(scope["third"], product @ (product @ scope["first"]))

    run_ranks(2, main)


def test_the_bandwidths_of_the_page(tmp_path):
    (tmp_path / "loops.toml").write_text(*blocks(PAGE, "toml"))
    requests = meshprep.read_requests(tmp_path / "loops.toml")
    mesh = generate("delaunay2d", cells=20_000)
    text = (DOCS / PAGE).read_text(encoding="utf-8")
    said = re.search(r"`dofs1` is ([\d,]+)\s+after the default order and (\d+)", text)
    for target, figure in zip(("gpu", "cpu"), said.groups(), strict=True):
        table = (
            meshprep.prepare(mesh, requests, target=target).plan.maps["cells->dofs1"].table
        )
        assert np.ptp(table, axis=1).max() == int(figure.replace(",", ""))


def test_the_form_of_the_page_is_that_of_scikit_fem():
    pytest.importorskip("skfem")
    scope = {}
    exec(block("FormAssembly"), scope)
    wanted = scope["laplace"].assemble(scope["basis"])
    assert abs(scope["K"] - wanted).max() < 1e-12


def test_a_kernel_for_dofs_of_scikit_fem():
    skfem = pytest.importorskip("skfem")
    assert block("element_dofs", "py") in (EXAMPLES / "skfem_dofs.py").read_text()
    scope = run_path(str(EXAMPLES / "skfem_dofs.py"))
    from skfem.models.poisson import laplace

    basis, load = scope["basis"], scope["unit_load"].assemble(scope["basis"])
    parts = skfem.condense(laplace.assemble(basis), load, D=basis.get_dofs().flatten())
    np.testing.assert_allclose(scope["u"], skfem.solve(*parts), atol=1e-13)


def test_tables_of_curved_cells_lead_to_their_places_and_dofs():
    skfem = pytest.importorskip("skfem")
    m = skfem.MeshTri2.init_circle(2)
    basis = skfem.Basis(m, skfem.ElementTriP2())
    scope = {"meshprep": meshprep, "m": m, "basis": basis}
    exec(block("m.doflocs.shape", "py"), scope)
    args = [
        {"dat": "x", "map": "cells->points", "dim": 2},
        {"mat": "K", "rows": "cells->dofs", "columns": "cells->dofs", "access": "inc"},
    ]
    plan = meshprep.prepare(scope["mesh"], {"sums": {"over": "cells", "args": args}}).plan

    def sums(a, b, c, d, e, f, K):
        for i in range(6):
            K[7 * i] += a[0] + b[0] + c[0] + d[1] + e[1] + f[1]

    K = Assembly(sums, plan["sums"])(
        x=plan.ordering["points"].apply(m.doflocs.T)
    ).to_scipy()
    places = m.doflocs[:, m.dofs.element_dofs]
    of_cell = places[0, :3].sum(axis=0) + places[1, 3:].sum(axis=0)
    dofs = basis.element_dofs
    wanted = np.bincount(dofs.ravel(), np.tile(of_cell, 6), basis.N)
    np.testing.assert_allclose(
        plan.ordering["dofs"].restore(K.diagonal()), wanted, atol=1e-13
    )


def test_products_and_solvers(cupy):
    import poisson

    problem = poisson.integrate(poisson.square(8, 2))
    scope = {"K": problem.csr(), "load": problem.load()}
    exec(block("import Product\n"), scope)
    np.testing.assert_allclose(scope["y"], scope["K"].to_scipy() @ np.ones(225), atol=1e-12)
    exec(block("import ColouredSsor"), scope)
    assert scope["found"].iterations == pytest.approx(53, abs=1)
    wanted = scope["found"].x
    exec(block("K = to_gpu(K)", "py"), scope)
    np.testing.assert_allclose(
        scope["y"].get(), scope["K"].to_scipy() @ np.ones(225), atol=1e-12
    )
    np.testing.assert_allclose(scope["found"].x.get(), wanted, atol=1e-7)


def test_a_product_without_a_matrix_is_that_with_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(generate("delaunay2d", cells=300), "wing.msh")
    assert block("def product") in (EXAMPLES / "matrix_free.py").read_text()
    scope = run_path(str(EXAMPLES / "matrix_free.py"))
    exec(kernel_of_the_tutorial(), scope)
    matrix = {
        "mat": "K",
        "rows": "cells->nodes",
        "columns": "cells->nodes",
        "access": "inc",
    }
    loops = {"stiffness": {"over": "cells", "args": [scope["args"][0], matrix]}}
    made = meshprep.prepare(meshprep.read("wing.msh"), loops)
    K = Assembly(scope["stiffness"], made.plan["stiffness"])(
        x=np.ascontiguousarray(made.mesh.coordinates[:, :2])
    )
    u = np.random.default_rng(0).standard_normal(K.shape[0])
    # both in the numbering of the input
    (ours, theirs) = (done.plan.ordering["nodes"] for done in (scope["done"], made))
    found = ours.restore(scope["product"](ours.apply(u)))
    np.testing.assert_allclose(
        found, theirs.restore(K.to_scipy() @ theirs.apply(u)), atol=1e-12
    )


def test_the_table_of_iterations_is_the_one_that_is_tested():
    text = (DOCS / "research" / "matrices.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d) \| (\d+) x \d+ \| (.*) \|$", text, re.MULTILINE)
    assert len(rows) == 4
    for degree, n, rest in rows:
        unknowns, iterations, colours, error = ITERATIONS[int(degree), int(n)]
        own = [f"{unknowns:,}", *map(str, iterations), str(colours), f"{error:.2e}"]
        assert rest.split(" | ") == own


@pytest.mark.parametrize("size", [0, 1, 500])
def test_batches_add_up_whole_numbers_exactly(size):
    rng = np.random.default_rng(size)
    place = rng.integers(-1, 40, (size, 3))
    values = rng.integers(-99, 99, (size, 3))
    kept = place >= 0
    wanted = np.zeros(50, np.int64)
    np.add.at(wanted, place[kept], values[kept])
    made = BatchSums(place, 50)(values)
    assert made.dtype == values.dtype
    assert np.array_equal(made, wanted)


@pytest.mark.parametrize(("dtype", "places"), [("u1", 256), ("i1", 128), ("u2", 65536)])
def test_the_last_place_that_a_small_dtype_can_name(dtype, places):
    place = np.array([places - 1, 0, places - 1], dtype)
    found = BatchSums(place, places)(np.array([5, 2, 8]))
    assert (found[0], found[-1], found.sum()) == (2, 13, 15)


@pytest.mark.parametrize(
    ("place", "values", "words"),
    [
        (np.array([0, 1, 2]), np.ones(2), r"values has shape \(2,\), must have 3 values"),
        (np.array([0, 1, 2]), np.ones(4), "must have 3 values"),
        (np.array([0, 1, 3]), np.ones(3), r"must be whole numbers in -1..2"),
        (np.array([0, 1, -2]), np.ones(3), r"must be whole numbers in -1..2"),
        (np.array([0, 1.5, 2]), np.ones(3), r"must be whole numbers in -1..2"),
        (np.array([0, 1, 2]), np.ones(3, ">f8"), "has dtype >f8"),
        (np.array([0, 1, 2]), np.ones(3, "f2"), "has dtype float16"),
        (np.array([0, 1, 2]), np.ones(3, "O"), "has dtype object"),
    ],
)
def test_batches_that_do_not_fit_are_refused(place, values, words):
    with pytest.raises(MeshprepError, match=words):
        BatchSums(place, 3)(values)
