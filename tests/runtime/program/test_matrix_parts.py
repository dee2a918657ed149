"""Matrices on a mesh in parts: the rows, the products and the solution are those of one rank."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from poisson_on_ranks import REQUEST, STIFFNESS, on_one_rank, on_part, stiffness

import meshprep
from meshprep.distribute.check import check_parts
from meshprep.distribute.job import SplitJob, run
from meshprep.distribute.steps import SplitOptions
from meshprep.io import read
from meshprep.loops import LoopRequest
from meshprep.pipeline import workflow
from meshprep_runtime import DistributedPlan, MeshprepError, Program, run_ranks
from meshprep_runtime.matrix import PartAssembly, PartPowers, PartProduct
from meshprep_runtime.program.exchange import Exchange


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("poisson") / "square.msh"
    workflow.generate("delaunay2d", path, values={"cells": 600})
    run(SplitJob(path, path.with_name("square.parts.h5"), (1, 2, 4, 7), (REQUEST,)))
    return path


@pytest.fixture(scope="module")
def x(path):
    return np.ascontiguousarray(read(path).coordinates[:, :2])


@pytest.fixture(scope="module")
def alone(path):
    return on_one_rank(read(path))


def parts_of(path):
    return path.with_name("square.parts.h5")


@pytest.mark.parametrize("ranks", [1, 2, 4, 7])
def test_the_matrix_and_the_solution_are_those_of_one_rank(path, x, alone, ranks):
    wanted, solution, iterations = alone

    def main(comm):
        return on_part(DistributedPlan.load(parts_of(path), comm), x)

    found = run_ranks(ranks, main, seed=ranks)
    rows, columns, values = (np.concatenate([one[i] for one in found]) for i in range(3))
    made = scipy.sparse.coo_array((values, (rows, columns)), wanted.shape).tocsr()
    assert abs(made - wanted).max() < 1e-13 * abs(wanted).max()
    # no entry twice, and none that one rank has not but for zeros of fixed dofs
    assert made.nnz == rows.size
    assert abs(wanted).count_nonzero() <= made.nnz <= wanted.nnz
    assert {one[3].iterations for one in found} <= {iterations - 1, iterations, iterations + 1}
    ours = np.empty(len(x))
    for *_, one, numbers in found:
        ours[numbers] = one.x
    assert abs(ours - solution).max() < 1e-6 * abs(solution).max()


def test_the_parts_of_a_matrix_are_proved(path, tmp_path):
    assert check_parts(parts_of(path)).findings == []
    meshprep.prepare(read(path), [REQUEST]).plan.save(tmp_path / "free.plan.h5")
    run(SplitJob(tmp_path / "free.plan.h5", tmp_path / "free.parts.h5", (2,)))
    assert check_parts(tmp_path / "free.parts.h5").findings == []


def test_what_ranks_cannot_have_is_refused(path, tmp_path):
    values = STIFFNESS.to_dict()
    matrix = values["args"][1] | {"fixed": "boundary"}
    request = LoopRequest("stiffness", values | {"args": [values["args"][0], matrix]}, "stiffness")
    with pytest.raises(MeshprepError, match="'K' has fixed dofs, which a mesh in parts does not"):
        run(SplitJob(path, tmp_path / "a.parts.h5", (2,), (request,)))
    meshprep.prepare(read(path), [request]).plan.save(tmp_path / "fixed.plan.h5")
    with pytest.raises(MeshprepError, match="'K' has fixed dofs, which a mesh in parts does not"):
        run(SplitJob(tmp_path / "fixed.plan.h5", tmp_path / "a.parts.h5", (2,)))
    how = SplitOptions(increments="reverse")
    with pytest.raises(MeshprepError, match="'K' through a map otherwise than by increments of a"):
        run(SplitJob(path, tmp_path / "a.parts.h5", (2,), (REQUEST,), how))

    def main(comm):
        plan = DistributedPlan.load(parts_of(path), comm)
        with pytest.raises(MeshprepError, match="no program on ranks has"):
            Program(plan).loop(stiffness, "stiffness")
        with pytest.raises(MeshprepError, match="must be a dat on 'nodes'"):
            PartAssembly(stiffness, plan, "stiffness", fixed=plan.dat("cells"))
        matrix = PartAssembly(stiffness, plan, "stiffness")(x=plan.dat("nodes", 2))
        with pytest.raises(MeshprepError, match=r"a matrix on 'cells' has shape .* must be"):
            PartProduct(matrix, plan, "cells")
        for multiply in (PartProduct(matrix, plan, "nodes"), PartPowers(matrix, plan, "nodes", 2)):
            with pytest.raises(MeshprepError, match=r"x is float64 of shape \(3,\), must be"):
                multiply(np.zeros(3))

    run_ranks(2, main)


@pytest.mark.parametrize("ranks", [1, 2, 4, 7])
def test_powers_are_products_and_send_once(path, ranks, monkeypatch):
    """Whole numbers, bit for bit; rings that other ranks own in turn."""
    n = len(read(path).coordinates)
    started = []
    start = Exchange.start

    def noted(self, *given):
        started.append(self.part.part)
        return start(self, *given)

    def main(comm):
        plan = DistributedPlan.load(parts_of(path), comm)
        number = plan.dat("nodes", 1, "i8", values=plan.numbers("nodes")).array.reshape(-1)
        pattern = PartAssembly(stiffness, plan, "stiffness")(x=plan.dat("nodes", 2))
        row = np.repeat(plan.numbers("nodes"), np.diff(pattern.row_ptr))
        values = ((row * 7 + number[pattern.columns]) % 5).astype("f8")
        matrix = replace(pattern, values=values)
        x = plan.numbers("nodes") % 3 + 1.0
        product = PartProduct(matrix, plan, "nodes")
        wanted, y = [], x
        for _ in range(4):
            y = product @ y
            wanted.append(y)
        comm.Barrier()
        for count in (1, 2, 3, 4):
            powers = PartPowers(matrix, plan, "nodes", count)
            assert len(powers.ends) == count + 1
            started.clear()
            comm.Barrier()
            found = powers(x)
            comm.Barrier()
            assert started.count(comm.rank) == 1
            assert [v.tolist() for v in found] == [v.tolist() for v in wanted[:count]]
        return powers.ends

    monkeypatch.setattr(Exchange, "start", noted)
    for ends in run_ranks(ranks, main):
        assert (ends[-1] == n) if ranks == 1 else (ends == sorted(ends) and ends[1] > ends[0])


def test_powers_need_a_matrix_of_the_part(path):
    def main(comm):
        plan = DistributedPlan.load(parts_of(path), comm)
        matrix = PartAssembly(stiffness, plan, "stiffness")(x=plan.dat("nodes", 2))
        for of_set, count in (("nodes", 0), ("cells", 2)):
            with pytest.raises(MeshprepError, match=f"{count} products with a matrix of shape"):
                PartPowers(matrix, plan, of_set, count)

    run_ranks(2, main)
