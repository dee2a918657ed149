"""Elements sorted along a curve: in any order, blocks are those of the curve."""

import numpy as np
import pytest

from meshprep.io.generate import generate
from meshprep.mesh.geometry import centroids
from meshprep.ordering import LocalityProblem, from_set_order, locality_order
from meshprep.partitioning import BlockProblem, loads, partition
from meshprep.partitioning.blocks_of import blocks_of
from meshprep.partitioning.multilevel.partitioner import along_curve, back
from meshprep.topology import derive


@pytest.fixture(scope="module")
def edges():
    """Edges of squares and halves of squares, with the cells beside them and their places."""
    mesh = derive(generate("mixed2d", nx=60, ny=60, shuffle=False), ["edges->cells"])
    table = mesh.map("edges->cells").table
    inside = (table >= 0).all(axis=1)
    return table[inside], centroids(mesh, "cells"), centroids(mesh, "edges")[inside]


def in_order(edges, method):
    """The edges in the order of their cells."""
    table, cells, where = edges
    order = locality_order(LocalityProblem(table, len(cells), cells), method).ordering
    rows = from_set_order(order.old_to_new[table])
    return BlockProblem(table[rows], len(cells), 64, coordinates=where[rows])


def test_an_order_along_the_curve_is_kept_and_others_are_sorted(edges):
    other = in_order(edges, "gps")
    found, order = along_curve(other)
    assert np.array_equal(np.sort(order), np.arange(other.n))
    assert np.array_equal(found.table, other.table[order])
    assert np.array_equal(found.coordinates, other.coordinates[order])
    assert along_curve(found) == (found, None)
    nowhere = BlockProblem(other.table, other.n_points, 64)
    assert along_curve(nowhere) == (nowhere, None)


@pytest.mark.parametrize(("displaced", "kept"), [(0.0, True), (0.3, True), (0.9, False)])
def test_an_order_that_follows_the_curve_on_the_whole_is_kept(displaced, kept):
    rng, n = np.random.default_rng(0), 5000
    table = np.arange(n, dtype=np.int32)[:, None]
    problem = BlockProblem(table, n, 64, coordinates=rng.random((n, 3)))
    there, order = along_curve(problem)
    assert order is not None
    rows, some = np.arange(n), rng.permutation(n)[: int(displaced * n)]
    rows[some] = rng.permutation(rows[some])
    moved = BlockProblem(table, n, 64, coordinates=there.coordinates[rows])
    assert (along_curve(moved)[1] is None) == kept


def test_one_element_far_from_the_others_does_not_hide_the_order(edges):
    """The curve is that of all places, not of those that are looked at."""
    table, cells, where = edges
    far = np.concatenate([where, [[3.7, 2.3]]])
    problem = BlockProblem(
        np.concatenate([table, table[:1]]), len(cells), 64, coordinates=far
    )
    found, order = along_curve(problem)
    assert order is not None
    assert along_curve(found) == (found, None)


def test_blocks_come_back_to_the_elements_that_they_hold():
    rng = np.random.default_rng(0)
    block, order = rng.integers(0, 9, 200), rng.permutation(200).astype(np.int32)
    found = back(blocks_of(block[order], 9, {"loads": 3}, keep_numbers=True), order)
    assert np.array_equal(found.block_of_element, block)
    assert found.notes == {"loads": 3}


def test_reuse_does_not_depend_on_the_order_of_elements(edges):
    reuse = []
    for method in ("hilbert", "gps"):
        problem = in_order(edges, method)
        found = partition(problem, "blocks", {})
        rows = np.ascontiguousarray(problem.table[found.new_to_old])
        reuse.append(rows.size / loads(rows, problem.n_points, found.block_offset))
    assert reuse[1] > 0.995 * reuse[0]
