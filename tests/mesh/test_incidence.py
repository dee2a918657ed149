"""The transpose and the graphs of elements and points against sets of Python integers."""

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import get_num_threads, set_num_threads

from meshprep.mesh.incidence import (
    as_csr,
    element_graph,
    point_graph,
    renumber_table,
    stack,
    transpose,
)
from meshprep_runtime.errors import MeshprepError


@st.composite
def tables(draw):
    """A random map; rows may name a point twice, points may be unused, sizes may be 0."""
    n, arity = draw(st.integers(0, 12)), draw(st.integers(1, 4))
    n_points = draw(st.integers(1, 10))
    values = draw(
        st.lists(st.integers(0, n_points - 1), min_size=n * arity, max_size=n * arity)
    )
    return np.array(values, dtype=np.int32).reshape(n, arity), n_points


def rows_of(csr):
    bounds = zip(csr.offset[:-1], csr.offset[1:], strict=True)
    return [csr.index[a:b].tolist() for a, b in bounds]


@settings(deadline=None, max_examples=effort.examples(60))
@given(tables())
def test_transpose_lists_the_elements_of_every_point(case):
    table, n_points = case
    found = transpose(table, n_points)
    expected = [
        [i for i, row in enumerate(table) for t in row if t == p] for p in range(n_points)
    ]
    assert rows_of(found) == expected
    assert found.n_rows == n_points
    assert found.offset.dtype == np.int64
    assert found.index.dtype == np.int32


@settings(deadline=None, max_examples=effort.examples(60))
@given(tables())
def test_element_graph_joins_elements_that_share_a_point(case):
    table, n_points = case
    sets = [set(row.tolist()) for row in table]
    expected = [
        [k for k, other in enumerate(sets) if k != i and own & other]
        for i, own in enumerate(sets)
    ]
    assert rows_of(element_graph(table, n_points)) == expected


@settings(deadline=None, max_examples=effort.examples(60))
@given(tables())
def test_point_graph_joins_points_of_one_element(case):
    table, n_points = case
    expected = [set() for _ in range(n_points)]
    for row in table.tolist():
        for t in row:
            expected[t] |= set(row) - {t}
    assert rows_of(point_graph(table, n_points)) == [sorted(s) for s in expected]


def test_graphs_of_two_triangles_that_share_an_edge():
    table = np.array([[0, 1, 2], [2, 1, 3]], dtype=np.int32)
    assert rows_of(element_graph(table, 4)) == [[1], [0]]
    assert rows_of(point_graph(table, 4)) == [[1, 2], [0, 2, 3], [0, 1, 3], [1, 2]]


@pytest.mark.parametrize("shape", [(0, 2), (3, 0)])
def test_graphs_of_nothing_are_empty(shape):
    table = np.empty(shape, dtype=np.int32)
    assert element_graph(table, 4).offset.tolist() == [0] * (shape[0] + 1)
    assert point_graph(table, 4).offset.tolist() == [0] * 5
    assert transpose(table, 4).index.size == 0


def test_as_csr_shares_the_memory_of_the_table():
    table = np.array([[3, 1], [0, 2], [1, 1]], dtype=np.int32)
    csr = as_csr(table)
    assert rows_of(csr) == table.tolist()
    assert np.shares_memory(csr.index, table)


def test_stack_shifts_each_map_past_the_points_of_those_before():
    nodes = np.array([[0, 1], [1, 2]], dtype=np.int32)
    cells = np.array([[0], [4]], dtype=np.int32)
    table, n_points = stack([nodes, cells, nodes], [3, 5, 3])
    assert n_points == 11
    assert table.tolist() == [[0, 1, 3, 8, 9], [1, 2, 7, 9, 10]]
    assert table.dtype == np.int32
    assert table.flags.c_contiguous


def test_stack_of_one_map_is_the_map_itself():
    nodes = np.array([[0, 1], [1, 2]], dtype=np.int32)
    table, n_points = stack([nodes], [3])
    assert table is nodes
    assert n_points == 3


def test_stack_refuses_more_points_than_an_index_can_name():
    nodes = np.zeros((1, 1), dtype=np.int32)
    with pytest.raises(MeshprepError, match="past 2"):
        stack([nodes, nodes], [2**30, 2**30 + 5])


def test_graphs_do_not_depend_on_the_number_of_threads():
    table = np.random.default_rng(1).integers(0, 300, (500, 3)).astype(np.int32)
    many = element_graph(table, 300)
    threads = get_num_threads()
    set_num_threads(1)
    try:
        one = element_graph(table, 300)
    finally:
        set_num_threads(threads)
    assert (one.offset == many.offset).all()
    assert (one.index == many.index).all()


@pytest.mark.parametrize("n", [0, 7, 70_001])
def test_a_table_is_renumbered_on_either_side_or_both(n):
    random = np.random.default_rng(n)
    table = random.integers(0, 50, (n, 3)).astype(np.int32)
    rows = random.permutation(n).astype(np.int32)
    numbers = random.permutation(50).astype(np.int32)
    assert (renumber_table(table, rows, None) == table[rows]).all()
    assert (renumber_table(table, None, numbers) == numbers[table]).all()
    assert (renumber_table(table, rows, numbers) == numbers[table[rows]]).all()
