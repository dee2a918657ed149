"""Products on ranks while messages travel, and several with one exchange."""

from dataclasses import replace

import effort
import numpy as np
import pytest
import scipy.sparse as sparse
from poisson_on_ranks import REQUEST, make_square, stiffness

from meshprep.distribute.job.run import SplitJob, run
from meshprep.distribute.job.split import SplitOptions
from meshprep_runtime import DistributedPlan, MeshprepError, run_ranks
from meshprep_runtime.matrix import PartAssembly, PartPowers, PartProduct, part_products
from meshprep_runtime.matrix.code import row_schedule
from meshprep_runtime.program.exchange import Exchange, Transfer


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("products") / "square.msh"
    make_square(path)
    run(SplitJob(path, path.with_name("square.parts.h5"), (1, 2, 4, 7), (REQUEST,)))
    none = SplitOptions(weights=(1.0, 0.0))
    run(SplitJob(path, path.with_name("none.parts.h5"), (2,), (REQUEST,), none))
    return path


def with_values(plan, whole_numbers=False):
    """A rank's matrix with other values, and the number of each column in the mesh file."""
    pattern = PartAssembly(stiffness, plan, "stiffness")(x=plan.dat("nodes", 2))
    number = plan.dat("nodes", 1, "i8", values=plan.numbers("nodes")).array.reshape(-1)
    row = np.repeat(number[: pattern.shape[0]], np.diff(pattern.row_ptr))
    values = ((row * 7 + number[pattern.columns]) % 5).astype("f8")
    if not whole_numbers:
        values = np.sin(values + row)
    return replace(pattern, values=values), number


@pytest.mark.parametrize("ranks", effort.first([4, 2, 7]))
def test_rows_without_copies_run_while_messages_travel(path, ranks, monkeypatch):
    monkeypatch.setattr(part_products, "STEP_NONZEROS", 100)
    tests = []
    monkeypatch.setattr(
        Transfer, "test", lambda transfer: tests.append(transfer._ranks.rank)
    )

    def main(comm):
        plan = DistributedPlan.load(path.with_name("square.parts.h5"), comm)
        matrix, number = with_values(plan)
        x = np.cos(number[: matrix.shape[0]])
        first = PartProduct(matrix, plan, "nodes", overlap=False)
        both = PartProduct(matrix, plan, "nodes", overlap=True)
        assert (first.overlap, both.overlap) == (False, True)
        before = tests.count(comm.rank)
        y = np.full(matrix.shape[0], np.nan)
        assert both(x, out=y) is y
        assert tests.count(comm.rank) == before + len(both._steps) > before
        assert np.array_equal(y, first(x))
        # Values change between calls.
        matrix.values[:] *= 2
        assert np.array_equal(both @ x, 2 * y)
        chosen = PartProduct(matrix, plan, "nodes")
        assert np.array_equal(chosen @ x, 2 * y)
        return chosen.overlap

    assert len(set(run_ranks(ranks, main))) == 1


@pytest.mark.parametrize("seed", range(3))
def test_ranges_of_chosen_rows(seed):
    """Every chosen row runs once, and no other."""
    rng = np.random.default_rng(seed)
    row_ptr = np.append(0, np.cumsum(rng.integers(0, 9, 50)))
    chosen = rng.random(50) < 0.5
    times = np.zeros(50, int)
    for start, stop, *_ in row_schedule(row_ptr, 20, chosen).turns:
        times[start:stop] += 1
    assert np.array_equal(times, chosen)
    assert row_schedule(row_ptr, 20, np.zeros(50, bool)).n_turns == 0


@pytest.mark.parametrize("ranks", effort.first([4, 1, 2, 7]))
def test_powers_send_once_and_are_products(path, ranks, monkeypatch):
    """In whole numbers those of scipy, and the bits of single products."""
    started = []
    start = Exchange.start

    def note(exchange, *given):
        started.append(exchange.part.part)
        return start(exchange, *given)

    monkeypatch.setattr(Exchange, "start", note)

    def main(comm):
        plan = DistributedPlan.load(path.with_name("square.parts.h5"), comm)
        found = {}
        for whole_numbers in (True, False):
            matrix, number = with_values(plan, whole_numbers)
            own = number[: matrix.shape[0]]
            x = own % 3 + 1.0
            for count in (1, 2, 4):
                rings = PartPowers(matrix, plan, "nodes", count, one_exchange=True)
                each = PartPowers(matrix, plan, "nodes", count, one_exchange=False)
                assert len(rings.ends) == count + 1
                comm.Barrier()
                started.clear()
                comm.Barrier()
                powers = rings(x)
                comm.Barrier()
                assert started.count(comm.rank) == 1
                assert [p.tolist() for p in powers] == [p.tolist() for p in each(x)]
            if whole_numbers:
                found = (own, number, matrix, powers)
        chosen = PartPowers(matrix, plan, "nodes", 2)
        assert np.array_equal(chosen(x)[1], each(x)[1])
        return found, chosen.one_exchange, rings.ends

    (*results,) = run_ranks(ranks, main)
    n = sum(own.size for (own, *_), _, _ in results)
    entries = [
        (np.repeat(own, np.diff(m.row_ptr)), number[m.columns], m.values)
        for (own, number, m, _), _, _ in results
    ]
    row, column, values = (np.concatenate(of) for of in zip(*entries, strict=True))
    A = sparse.coo_array((values, (row, column)), (n, n)).tocsr()
    wanted = np.arange(n) % 3 + 1.0
    for power in range(4):
        wanted = A @ wanted
        for (own, _, _, powers), _, _ in results:
            assert np.array_equal(powers[power], wanted[own])
    assert len({chosen for _, chosen, _ in results}) == 1
    for _, _, ends in results:
        assert (ends[-1] == n) if ranks == 1 else ends[1] > ends[0]


def test_a_rank_without_rows_takes_part(path):
    def main(comm):
        plan = DistributedPlan.load(path.with_name("none.parts.h5"), comm)
        matrix, _ = with_values(plan)
        x = np.ones(matrix.shape[0])
        product = PartProduct(matrix, plan, "nodes", overlap=True)
        powers = PartPowers(matrix, plan, "nodes", 3, one_exchange=True)(x)
        assert np.array_equal(powers[0], product @ x)
        return x.size

    assert run_ranks(2, main)[1] == 0


def test_powers_that_do_not_fit_are_refused(path):
    def main(comm):
        plan = DistributedPlan.load(path.with_name("square.parts.h5"), comm)
        matrix, _ = with_values(plan)
        with pytest.raises(MeshprepError, match="a matrix on 'cells' has shape"):
            PartPowers(matrix, plan, "cells", 2)
        with pytest.raises(
            MeshprepError, match="count is 0, must be a whole number from 1"
        ):
            PartPowers(matrix, plan, "nodes", 0)
        powers = PartPowers(matrix, plan, "nodes", 2)
        with pytest.raises(MeshprepError, match=r"x is float64 of shape \(3,\), must be"):
            powers(np.zeros(3))
        with pytest.raises(MeshprepError, match="x is a list, must be a NumPy array"):
            PartProduct(matrix, plan, "nodes")([1.0])

    run_ranks(2, main)
