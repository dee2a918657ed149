"""Assembly in every store and strategy against sums by scipy, exactly for whole numbers."""

from dataclasses import replace

import numba
import numpy as np
import pytest
import scipy.sparse

from meshprep.io.generate import generate
from meshprep.loops.requests import LoopRequest
from meshprep.pipeline.steps import Options, prepare
from meshprep_runtime import MeshprepError, ParLoop, Program
from meshprep_runtime.matrix import Assembly, CsrMatrix, Product, ellpack
from meshprep_runtime.matrix.solve import diagonal

ARGS = [
    {"dat": "x", "map": "cells->nodes"},
    {"dat": "w"},
    {"mat": "K", "rows": "cells->dofs2", "columns": "cells->dofs2", "access": "inc"},
]


def local_matrix(a, b, c, w, K):
    """Whole numbers for whole numbers, and not symmetric."""
    for i in range(6):
        for j in range(6):
            K[6 * i + j] += (a[0] + i) * (b[0] - j) + c[0] * w[0]


@pytest.fixture(scope="module")
def full_plan():
    args = [*ARGS[:2], ARGS[2] | {"fixed": "boundary"}]
    request = LoopRequest("assemble", {"over": "cells", "args": args}, "test")
    mesh = generate("delaunay2d", cells=900, seed=3)
    return prepare(mesh, [request], Options(block_size=64)).plan


@pytest.fixture(scope="module")
def plan(full_plan):
    return full_plan["assemble"]


@pytest.fixture(scope="module")
def whole(plan):
    """Arrays of whole numbers, as floats."""
    rng = np.random.default_rng(2)
    sizes = plan.sizes
    x, w = rng.integers(-9, 9, sizes["nodes"]), rng.integers(-9, 9, sizes["cells"])
    return {"x": x.astype(float), "w": w.astype(float)}


def summed(plan, arrays):
    """The matrix by scipy: all entries of all elements, added up."""
    table, dofs = plan.maps["cells->nodes"].table, plan.matrices["K"].row_of
    dofs = dofs[plan.maps["cells->dofs2"].table]
    values = np.zeros((len(dofs), 36))
    a, b, c = arrays["x"][table].T[:, :, None]
    i, j = np.divmod(np.arange(36), 6)
    values += (a + i) * (b - j) + c * arrays["w"][:, None]
    r, s = dofs[:, i], dofs[:, j]
    kept = (r >= 0) & (s >= 0)
    shape = plan.matrices["K"].shape
    return scipy.sparse.coo_array((values[kept], (r[kept], s[kept])), shape).toarray()


@pytest.mark.parametrize("store", ["csr", "lazy-ellpack", "local"])
def test_a_kernel_that_does_not_add_is_found(plan, whole, store):
    def sets(a, b, c, w, K):
        K[7] = a[0]

    def misfit(a, b, c, w, K):
        K += np.ones((6, 6))  # numba adds to some entries, and to memory behind others

    before = {name: array.copy() for name, array in whole.items()}
    Assembly(local_matrix, plan, store=store).check_access(**whole)
    for name, array in before.items():
        np.testing.assert_array_equal(whole[name], array)
    with pytest.raises(MeshprepError, match=r"'K': kernel 'sets' .* only added to"):
        Assembly(sets, plan, store=store).check_access(**whole)
    with pytest.raises(MeshprepError, match="the kernel raised ValueError"):
        Assembly(misfit, plan, store=store).check_access(**whole)


def test_indices_past_the_matrix_of_an_element(plan, whole):
    def outside(a, b, c, w, K):
        K[36] += a[0]

    with pytest.raises(MeshprepError, match="reaches component 36 of a row of dim 36"):
        Assembly(outside, plan, boundscheck=True)


STRATEGIES = [
    *("sequential", "hierarchical", "two-step"),
    pytest.param("global-colouring", marks=pytest.mark.slow),
    *(
        pytest.param(name, marks=pytest.mark.long)
        for name in ("block-permute", "full-permute")
    ),
]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_assembles_exactly_and_anew(plan, whole, strategy):
    assemble = Assembly(local_matrix, plan, strategy=strategy)
    made = assemble(**whole)
    made.check()
    assert np.array_equal(made.to_scipy().toarray(), summed(plan, whole))
    other = {**whole, "w": whole["w"] + 1}
    assert np.array_equal(assemble(**other).to_scipy().toarray(), summed(plan, other))


@pytest.mark.parametrize("strategy", [None, "two-step"])
def test_the_bits_do_not_depend_on_the_threads(plan, strategy):
    rng = np.random.default_rng(4)
    arrays = {"x": rng.random(plan.sizes["nodes"]), "w": rng.random(plan.sizes["cells"])}
    found = []
    for threads in (1, 2):
        numba.set_num_threads(threads)
        found.append(Assembly(local_matrix, plan, strategy=strategy)(**arrays).values)
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    assert found[0].tobytes() == found[1].tobytes()
    wanted = summed(plan, arrays)
    assert (
        abs(CsrMatrix(*_pattern(plan), found[0]).to_scipy().toarray() - wanted).max()
        < 1e-11
    )


def _pattern(plan):
    csr = plan.matrices["K"].csr()
    return csr.row_ptr, csr.columns


def test_a_kernel_of_tuples_assembles_the_same_matrix(plan, whole):
    def by_argument(corners, w, K):
        a, b, c = corners
        for i in range(6):
            for j in range(6):
                K[6 * i + j] += (a[0] + i) * (b[0] - j) + c[0] * w[0]

    made = Assembly(by_argument, plan)(**whole)
    assert np.array_equal(made.to_scipy().toarray(), summed(plan, whole))


@pytest.mark.parametrize("store", ["ellpack", "lazy-ellpack", "local"])
def test_every_store_holds_the_same_matrix(plan, whole, store):
    made = Assembly(local_matrix, plan, store=store)(**whole)
    made.check()
    assert made.shape == plan.matrices["K"].shape
    assert np.array_equal(made.to_scipy().toarray(), summed(plan, whole))


def test_lazy_rows_have_an_entry_for_each_of_their_elements(plan, whole):
    """Nothing is summed: the entries of a row are those of its elements, one by one."""
    made = Assembly(local_matrix, plan, store="lazy-ellpack")(**whole)
    dofs = plan.matrices["K"].row_of[plan.maps["cells->dofs2"].table]
    entries = [[] for _ in range(made.shape[0])]
    for cell in dofs:
        for row in cell[cell >= 0]:
            entries[row] += cell[cell >= 0].tolist()
    assert made.columns.shape[0] == max(map(len, entries))
    for row, columns in enumerate(entries):
        stored = made.columns[:, row]
        assert stored[: len(columns)].tolist() == columns
        assert (stored[len(columns) :] == -1).all()
    x = np.arange(made.shape[1], dtype=float)
    assert np.array_equal(Product(made) @ x, summed(plan, whole) @ x)
    assert np.array_equal(diagonal(made), np.diag(summed(plan, whole)))


@pytest.mark.parametrize("store", ["ellpack", "lazy-ellpack"])
def test_padding_past_what_places_can_say_is_refused(plan, store, monkeypatch):
    monkeypatch.setattr(ellpack, "INDEX_LIMIT", 1000)
    with pytest.raises(MeshprepError, match=r"'K' is past 2\^31-1 values with padding"):
        Assembly(local_matrix, plan, store=store)


def count_and_add(a, b, c, K):
    """Sets what it reaches, one element after the other, beside the matrix."""
    for node in (a, b, c):
        node[0] = node[0] + 1
    for k in range(9):
        K[k] += k + 1


@pytest.mark.parametrize(
    "strategy", ["sequential", pytest.param("hierarchical", marks=pytest.mark.long)]
)
def test_a_matrix_beside_points_that_elements_set_in_turn(strategy):
    args = [
        {"dat": "visits", "map": "cells->nodes", "access": "rw"},
        {"mat": "K", "rows": "cells->nodes", "columns": "cells->nodes", "access": "inc"},
    ]
    request = LoopRequest("visit", {"over": "cells", "args": args}, "test")
    mesh = generate("delaunay2d", cells=200, seed=3)
    plan = prepare(mesh, [request], Options(block_size=32)).plan["visit"]
    visits, csr = np.zeros(plan.sizes["nodes"]), plan.matrices["K"].csr()
    ParLoop(count_and_add, plan, strategy=strategy)(visits=visits, K=csr.values)
    table = plan.maps["cells->nodes"].table
    assert np.array_equal(visits, np.bincount(table.ravel()))
    i, j = np.divmod(np.arange(9), 3)
    ones = np.broadcast_to(np.arange(1.0, 10), (len(table), 9))
    pairs = (table[:, i].ravel(), table[:, j].ravel())
    wanted = scipy.sparse.coo_array((ones.ravel(), pairs), csr.shape).toarray()
    assert np.array_equal(csr.to_scipy().toarray(), wanted)


def test_a_par_loop_adds_to_what_there_is(plan, whole):
    csr = plan.matrices["K"].csr()
    loop = ParLoop(local_matrix, plan, strategy="hierarchical")
    loop(**whole, K=csr.values)
    loop(**whole, K=csr.values)
    assert np.array_equal(csr.to_scipy().toarray(), 2 * summed(plan, whole))
    with pytest.raises(
        MeshprepError, match=r"'K' has shape \(3,\).*an element of 'nonzeros of K'"
    ):
        loop(**whole, K=np.zeros(3))


def test_a_program_adds_to_a_matrix_at_once_and_in_chains(full_plan, plan, whole):
    program = Program(full_plan)
    x, w = program.dat("nodes", values=whole["x"]), program.dat("cells", values=whole["w"])
    K, loop = program.matrix("K"), program.loop(local_matrix, "assemble")
    loop(x=x, w=w, K=K)
    wanted = summed(plan, whole)
    assert np.array_equal(full_plan.matrices["K"].csr(values=K.values()).values, K.values())
    with program.chain(length=4):
        loop(x=x, w=w, K=K)
        assert loop.times.calls == 1
        made = full_plan.matrices["K"].csr(values=K.values())
    assert np.array_equal(made.to_scipy().toarray(), 2 * wanted)
    # dofs and cells are read, nonzeros read and written
    sizes, nonzeros = plan.sizes, made.values.size
    assert loop.times.useful_bytes == 8 * (sizes["nodes"] + sizes["cells"] + 2 * nonzeros)
    assert loop.times.calls == 2
    with pytest.raises(
        MeshprepError, match="'w' is a dat on 'nonzeros of K', must be one on 'ce"
    ):
        loop(x=x, w=K, K=K)
    with pytest.raises(MeshprepError, match="matrix 'M' is unknown: use K"):
        program.matrix("M")
    with pytest.raises(MeshprepError, match=r"'nonzeros of K' has values of shape \(3,\)"):
        program.matrix("K", values=np.zeros(3))
    with (
        pytest.raises(
            MeshprepError, match="adds to matrix 'K', so its chain runs loop by loop"
        ),
        program.chain(length=1, tile_size=64),
    ):
        loop(x=x, w=w, K=K)


def load(x1, x2, x3, w, rhs1, rhs2, rhs3):
    for row in (rhs1, rhs2, rhs3):
        row[0] += w[0] + x1[0] + x2[0] + x3[0]


def grow(x):
    x[0] += 1


@pytest.mark.slow
def test_a_chain_that_adds_to_a_matrix_runs_loop_by_loop():
    rhs = {"dat": "rhs", "map": "cells->nodes", "access": "inc"}
    described = {
        "assemble": {"over": "cells", "args": [*ARGS[:2], ARGS[2] | {"fixed": "boundary"}]},
        "load": {"over": "cells", "args": [*ARGS[:2], rhs]},
        "grow": {"over": "nodes", "args": [{"dat": "x", "access": "rw"}]},
    }
    requests = [LoopRequest(name, one, "test") for name, one in described.items()]
    mesh = generate("delaunay2d", cells=400, seed=3)
    plan = prepare(mesh, requests, Options(block_size=32)).plan
    rng, found = np.random.default_rng(0), []
    start = {s: rng.integers(0, 9, plan.sizes[s]).astype(float) for s in ("nodes", "cells")}
    chains = []
    for tiles in ({}, {"tile_size": "auto"}):
        program = Program(plan)
        x, w = (program.dat(s, values=start[s].copy()) for s in start)
        K, rhs = program.matrix("K"), program.dat("nodes")
        kernels = {"assemble": local_matrix, "load": load, "grow": grow}
        loops = {n: program.loop(k, n, strategy="sequential") for n, k in kernels.items()}
        with program.chain(length=4, **tiles) as chain:
            loops["assemble"](x=x, w=w, K=K)
            loops["load"](x=x, w=w, rhs=rhs)
            loops["grow"](x=x)
            loops["assemble"](x=x, w=w, K=K)
        found.append([d.values().tolist() for d in (K, rhs, x)])
        chains += chain.tiled.values()
    (measured,) = chains
    assert list(measured._ways) == ["loops"]
    assert found[0] == found[1]
    assert np.any(found[0][0])


@pytest.mark.parametrize("every", [1e9, 0.0])
def test_a_checkpoint_keeps_a_matrix(full_plan, whole, tmp_path, every):
    """The second run takes what the first one saved: asked for, or at a call of a period."""

    def run(calls):
        program = Program(full_plan, checkpoint=tmp_path / "state.h5", every=every)
        x, w = (
            program.dat("nodes", values=whole["x"]),
            program.dat("cells", values=whole["w"]),
        )
        K, loop = program.matrix("K"), program.loop(local_matrix, "assemble")
        for call in range(calls):
            if call == 1 and every:
                program.checkpoint_here()
            loop(x=x, w=w, K=K)
        return K.values().copy(), loop.times.calls

    first, again = run(4), run(4)
    assert np.array_equal(first[0], again[0])
    assert first[1] == 4 > again[1]


def test_what_cannot_be_assembled_is_refused(plan):
    with pytest.raises(MeshprepError, match="'dense' is unknown: use csr, ellpack"):
        Assembly(local_matrix, plan, store="dense")
    args = tuple(a for a in plan.loop.args if a.columns is None)
    bare = replace(plan, loop=replace(plan.loop, args=args), matrices={})
    with pytest.raises(MeshprepError, match="adds to 0 matrices"):
        Assembly(local_matrix, bare)
    assert Assembly(local_matrix, plan).loop.strategy == "ordered"
    no_blocks = replace(plan, variants={}, default="")
    assert Assembly(local_matrix, no_blocks).loop.strategy == "ordered"
    with pytest.raises(MeshprepError, match="its plan has no matrix"):
        Assembly(local_matrix, replace(plan, matrices={}))
    with pytest.raises(
        MeshprepError, match="has 4 parameters, but loop 'assemble' hands it 5"
    ):
        Assembly(lambda a, b, c, w: None, plan)
    with pytest.raises(
        MeshprepError, match=r"'staged-gather' cannot run it: .* 'K' cannot wait"
    ):
        ParLoop(local_matrix, plan, strategy="staged-gather")
