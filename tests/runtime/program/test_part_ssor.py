"""Coloured sweeps on ranks: the colours, the bits and the iterations of one rank."""

from dataclasses import replace

import effort
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sparse
from poisson_on_ranks import REQUEST, fixed_nodes, load, make_square, places, stiffness

from meshprep.distribute.job.run import SplitJob, run
from meshprep.io import read
from meshprep_runtime import DistributedError, DistributedPlan, MeshprepError, run_ranks
from meshprep_runtime.matrix import (
    ColouredSsor,
    CsrMatrix,
    PartAssembly,
    PartProduct,
    PartSsor,
    Product,
    cg,
    dot_on,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("sweeps") / "square.msh"
    make_square(path)
    run(SplitJob(path, path.with_name("square.parts.h5"), (1, 2, 4, 7), (REQUEST,)))
    return path


@pytest.fixture(scope="module")
def x(path):
    return places(read(path))


def assembled(plan, x):
    """The matrix of a rank, with the rows of fixed nodes as those of the identity."""
    own = x[plan.numbers("nodes")]
    fixed = plan.dat("nodes", 1, "i4", values=fixed_nodes(own).astype("i4"))
    assemble = PartAssembly(stiffness, plan, "stiffness", fixed=fixed)
    return assemble(x=plan.dat("nodes", 2, values=own)), own


def whole_matrix(parts):
    """The matrix of all ranks in the order of their rows, by rows of (numbers, matrix)."""
    n = sum(matrix.shape[0] for _, matrix in parts)
    rows, columns, values = [], [], []
    for numbers, matrix in parts:
        rows.append(np.repeat(numbers[: matrix.shape[0]], np.diff(matrix.row_ptr)))
        columns.append(numbers[matrix.columns])
        values.append(matrix.values)
    entries = (np.concatenate(rows), np.concatenate(columns))
    made = sparse.csr_array(sparse.coo_array((np.concatenate(values), entries), (n, n)))
    made.sort_indices()
    return CsrMatrix.from_scipy(made)


@pytest.mark.parametrize("ranks", effort.first([4, 1, 2, 7]))
def test_sweeps_have_the_bits_of_one_rank(path, x, ranks):
    def main(comm):
        plan = DistributedPlan.load(path.with_name("square.parts.h5"), comm)
        matrix, _ = assembled(plan, x)
        sweeps = PartSsor(matrix, plan, "nodes")
        part = plan.set_part("nodes")
        numbers = np.append(part.owned_start + np.arange(part.owned), part.copies)
        r = np.random.default_rng(comm.rank).standard_normal(part.owned)
        return (numbers, matrix), sweeps.colour, r, sweeps(r), sweeps(r), sweeps.colours

    found = run_ranks(ranks, main, seed=ranks)
    parts, colour, r, z, again, colours = zip(*found, strict=True)
    whole = whole_matrix(parts)
    colour, r = np.concatenate(colour), np.concatenate(r)
    graph = nx.from_scipy_sparse_array(whole.to_scipy())
    graph.remove_edges_from(nx.selfloop_edges(graph))
    greedy = nx.greedy_color(graph, strategy=lambda graph, colours: sorted(graph))
    assert colour.tolist() == [greedy[i] for i in range(len(x))]
    assert set(colours) == {colour.max() + 1}
    wanted = ColouredSsor(whole, colour)(r)
    assert np.array_equal(np.concatenate(z), wanted)
    assert np.array_equal(np.concatenate(again), wanted)


@pytest.mark.parametrize("ranks", effort.first([4, 2, 7]))
def test_the_iterations_are_those_of_one_rank(path, x, ranks):
    def main(comm):
        plan = DistributedPlan.load(path.with_name("square.parts.h5"), comm)
        matrix, own = assembled(plan, x)
        sweeps = PartSsor(matrix, plan, "nodes")
        product = PartProduct(matrix, plan, "nodes")
        solution = cg(product, load(own), sweeps, dot=dot_on(plan))
        part = plan.set_part("nodes")
        numbers = np.append(part.owned_start + np.arange(part.owned), part.copies)
        return (numbers, matrix), load(own), solution, sweeps.colour

    found = run_ranks(ranks, main)
    parts, right, solutions, colour = zip(*found, strict=True)
    whole = whole_matrix(parts)
    sweeps = ColouredSsor(whole, np.concatenate(colour))
    alone = cg(Product(whole), np.concatenate(right), sweeps)
    assert {one.iterations for one in solutions} == {alone.iterations}
    together = np.concatenate([one.x for one in solutions])
    np.testing.assert_allclose(together, alone.x, atol=1e-9)
    without = cg(Product(whole), np.concatenate(right))
    assert alone.iterations < 0.6 * without.iterations


def test_colours_of_ones_own_and_what_is_refused(path, x):
    def main(comm):
        plan = DistributedPlan.load(path.with_name("square.parts.h5"), comm)
        matrix, _ = assembled(plan, x)
        first = PartSsor(matrix, plan, "nodes")
        # Other numbers for the same colours give the same sweeps in another order.
        backwards = PartSsor(matrix, plan, "nodes", first.colours - 1 - first.colour)
        assert np.array_equal(backwards.colour, first.colours - 1 - first.colour)
        with pytest.raises(DistributedError, match="see each other and have one colour"):
            PartSsor(matrix, plan, "nodes", np.zeros(matrix.shape[0], "i4"))
        diagonal = matrix.columns == np.repeat(
            np.arange(matrix.shape[0]), np.diff(matrix.row_ptr)
        )
        singular = replace(matrix, values=np.where(diagonal, 0, matrix.values))
        with pytest.raises(DistributedError, match="the diagonal of row 0 is zero"):
            PartSsor(singular, plan, "nodes")
        with pytest.raises(MeshprepError, match="a matrix on 'cells' has shape"):
            PartSsor(matrix, plan, "cells")
        with pytest.raises(MeshprepError, match=r"r is float64 of shape \(3,\), must be"):
            first(np.zeros(3))

    run_ranks(2, main)
