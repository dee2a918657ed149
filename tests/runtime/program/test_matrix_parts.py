"""Matrices on a mesh in parts: the rows, the products and the solution are those of one rank."""

from dataclasses import replace

import effort
import numpy as np
import pytest
from poisson_on_ranks import (
    FORMS,
    REQUEST,
    STIFFNESS,
    fixed_nodes,
    is_as_alone,
    make_square,
    on_one_rank,
    on_part,
    places,
    stiffness,
)

import meshprep
from meshprep.distribute.job.check import check_parts
from meshprep.distribute.job.run import SplitJob, run
from meshprep.distribute.job.split import SplitOptions
from meshprep.io import read
from meshprep.loops.requests import LoopRequest
from meshprep_runtime import (
    Access,
    Arg,
    DistributedPlan,
    Loop,
    MeshprepError,
    Program,
    run_ranks,
)
from meshprep_runtime.matrix import (
    PartAssembly,
    PartProduct,
    Product,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("poisson") / "square.msh"
    make_square(path)
    run(SplitJob(path, path.with_name("square.parts.h5"), (1, 2, 4, 7), (REQUEST,)))
    return path


@pytest.fixture(scope="module")
def x(path):
    return places(read(path))


@pytest.fixture(scope="module", params=FORMS)
def alone(request, path):
    return request.param, on_one_rank(read(path), request.param)


def parts_of(path):
    return path.with_name("square.parts.h5")


@pytest.mark.parametrize("ranks", effort.first([4, 1, 2, 7]))
def test_the_matrix_and_the_solution_are_those_of_one_rank(path, x, alone, ranks):
    form, wanted = alone

    def main(comm):
        return on_part(DistributedPlan.load(parts_of(path), comm), x, form)

    found = run_ranks(ranks, main, seed=ranks)
    assert all(is_as_alone(one, wanted) for one in found)
    rows = np.concatenate([one[0] for one in found])
    assert np.array_equal(np.sort(rows), np.arange(len(x)))


def test_a_rank_without_dofs(path, x, alone, tmp_path):
    form, wanted = alone
    parts = tmp_path / "all.parts.h5"
    run(SplitJob(path, parts, (2,), (REQUEST,), SplitOptions(weights=(1.0, 0.0))))

    def main(comm):
        plan = DistributedPlan.load(parts, comm)
        return plan.set_part("nodes").size, on_part(plan, x, form)

    (all_nodes, first), (none, second) = run_ranks(2, main)
    assert (all_nodes, none) == (len(x), 0)
    assert is_as_alone(first, wanted)
    assert second[0].size == 0


def test_fixed_nodes_are_all_that_some_cells_have(path, x):
    """Else the test above would prove less than it says."""
    cells = read(path).maps["cells->nodes"].table
    assert sorted(set(fixed_nodes(x)[cells].sum(axis=1))) == [0, 1, 2, 3]


def test_the_parts_of_a_matrix_are_proved(path, tmp_path):
    assert check_parts(parts_of(path)).findings == []
    meshprep.prepare(read(path), [REQUEST]).plan.save(tmp_path / "free.plan.h5")
    run(SplitJob(tmp_path / "free.plan.h5", tmp_path / "free.parts.h5", (2,)))
    assert check_parts(tmp_path / "free.parts.h5").findings == []


def test_what_ranks_cannot_have_is_refused(path, tmp_path):
    values = STIFFNESS.to_dict()
    matrix = values["args"][1] | {"fixed": "boundary"}
    request = LoopRequest(
        "stiffness", values | {"args": [values["args"][0], matrix]}, "stiffness"
    )
    with pytest.raises(
        MeshprepError, match="'K' has fixed dofs, which a mesh in parts does not"
    ):
        run(SplitJob(path, tmp_path / "a.parts.h5", (2,), (request,)))
    meshprep.prepare(read(path), [request]).plan.save(tmp_path / "fixed.plan.h5")
    with pytest.raises(
        MeshprepError, match="'K' has fixed dofs, which a mesh in parts does not"
    ):
        run(SplitJob(tmp_path / "fixed.plan.h5", tmp_path / "a.parts.h5", (2,)))
    how = SplitOptions(increments="reverse")
    with pytest.raises(
        MeshprepError, match="'K' through a map otherwise than by increments of a"
    ):
        run(SplitJob(path, tmp_path / "a.parts.h5", (2,), (REQUEST,), how))

    def main(comm):
        plan = DistributedPlan.load(parts_of(path), comm)
        with pytest.raises(MeshprepError, match="no program on ranks has"):
            Program(plan).loop(stiffness, "stiffness")
        with pytest.raises(MeshprepError, match="must be a dat on 'nodes'"):
            PartAssembly(stiffness, plan, "stiffness", fixed=plan.dat("cells"))
        with pytest.raises(
            MeshprepError, match="'x' is a dat on 'cells', must be one on 'nodes'"
        ):
            PartAssembly(stiffness, plan, "stiffness")(x=plan.dat("cells", 2))
        matrix = PartAssembly(stiffness, plan, "stiffness")(x=plan.dat("nodes", 2))
        with pytest.raises(
            MeshprepError, match=r"a matrix on 'cells' has shape .* must be"
        ):
            PartProduct(matrix, plan, "cells")
        with pytest.raises(MeshprepError, match="threads is 0"):
            PartProduct(matrix, plan, "nodes", 0)
        with pytest.raises(MeshprepError, match=r"x is float64 of shape \(3,\), must be"):
            PartProduct(matrix, plan, "nodes")(np.zeros(3))

    run_ranks(2, main)


def test_products_have_the_bits_of_the_rows_with_all_of_x_there(path):
    x = np.random.default_rng(5).standard_normal(len(read(path).coordinates))

    def main(comm):
        plan = DistributedPlan.load(parts_of(path), comm)
        pattern = PartAssembly(stiffness, plan, "stiffness")(x=plan.dat("nodes", 2))
        values = np.random.default_rng(comm.rank).standard_normal(pattern.values.size)
        matrix = replace(pattern, values=values)
        all_of_x = plan.dat("nodes", values=x[plan.numbers("nodes")]).array.reshape(-1)
        rows, y = matrix.shape[0], np.full(matrix.shape[0], np.nan)
        product = PartProduct(matrix, plan, "nodes")
        assert product(all_of_x[:rows], out=y) is y
        copies = np.add.reduceat(matrix.columns >= rows, matrix.row_ptr[:-1]) > 0
        assert 0 < copies.sum() < rows
        assert np.array_equal(y, Product(matrix) @ all_of_x)

    run_ranks(4, main)


ENDS = ("cells->nodes", (0, 1, 2))
SYSTEM = Loop(
    "system",
    "cells",
    (
        Arg("load", Access.INC, 1, "i8", *ENDS),
        Arg("K", Access.INC, 3, "i8", *ENDS, columns=ENDS[0]),
    ),
)
SPREAD = Loop(
    "spread",
    "cells",
    (Arg("load", Access.READ, 1, "i8", *ENDS), Arg("sum", Access.INC, 1, "i8", *ENDS)),
)


def system(a, b, c, K):
    a[0] += 1
    b[0] += 2
    c[0] += 3
    for k in range(9):
        K[k] += k


def spread(a, b, c, sum_a, sum_b, sum_c):
    sum_a[0] += b[0]
    sum_b[0] += c[0]
    sum_c[0] += a[0]


def test_copies_of_what_is_assembled_beside_a_matrix_are_stale(path, tmp_path):
    """The load of a matrix is a dat like any other: a later loop reads it on other ranks."""
    requests = tuple(
        LoopRequest(one.name, one.to_dict(), one.name) for one in (SYSTEM, SPREAD)
    )
    run(SplitJob(path, tmp_path / "system.parts.h5", (3,), requests))
    cells = read(path).maps["cells->nodes"].table
    load, expected = np.zeros((2, cells.max() + 1), np.int64)
    for _ in range(2):
        for column in range(3):
            np.add.at(load, cells[:, column], column + 1)
        for column in range(3):
            np.add.at(expected, cells[:, column], load[cells[:, (column + 1) % 3]])

    def main(comm):
        plan = DistributedPlan.load(tmp_path / "system.parts.h5", comm)
        program = Program(plan)
        dats = {name: program.dat("nodes", 1, "i8") for name in ("load", "sum")}
        assemble = PartAssembly(system, plan, "system")
        loop = program.loop(spread, "spread", strategy="sequential")
        for _ in range(2):
            assemble(load=dats["load"])
            loop(**dats)
        return plan.fetch(dats["sum"])

    found = run_ranks(3, main)[0]
    np.testing.assert_array_equal(found.ravel(), expected)
