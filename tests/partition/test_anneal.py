"""The moves: what is tracked is what is, caps hold, groups are independent of threads."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import get_num_threads, set_num_threads

from meshprep.partition.anneal import allowances, anneal
from meshprep.partition.blocks_of import sort_by
from meshprep.partition.connectivity import connect, distinct_rows
from meshprep.partition.groups import refine_groups
from meshprep.partition.loads import weighted_loads_of

ROUND = settings(deadline=None, max_examples=60)


def objective(table, weight, block):
    """Weight of the distinct (point, block) pairs, from sets."""
    pairs = {(int(t), int(b)) for row, b in zip(table, block, strict=True) for t in row}
    return sum(int(weight[t]) for t, _ in pairs)


def drawn(data, tables):
    table, n_points = data.draw(tables())
    n_blocks = data.draw(st.integers(1, 6))
    block = np.arange(len(table), dtype=np.int32) % n_blocks
    weight = data.draw(st.lists(st.integers(0, 9), min_size=n_points, max_size=n_points))
    return table, np.array(weight, dtype=np.int32), block, n_blocks


@ROUND
@given(data=st.data(), heat=st.sampled_from([0.0, 0.4, 3.0]))
def test_what_the_sweeps_say_they_gained_is_what_the_objective_lost(data, heat, tables):
    table, weight, start, n_blocks = drawn(data, tables)
    cap = -(-len(table) // n_blocks) + 2
    state = connect(distinct_rows(table), weight, start.copy(), n_blocks)
    gained = anneal(state, cap, 2.0, heat, 0, 9, 6, 1)
    assert gained == objective(table, weight, start) - objective(table, weight, state.block)
    assert (np.bincount(state.block, minlength=n_blocks) == state.size).all()
    assert state.size.max(initial=0) <= cap
    if len(table) >= n_blocks:
        assert state.size.min() >= 1
    if heat == 0.0:
        assert gained >= 0


@ROUND
@given(data=st.data())
def test_groups_together_gain_what_the_objective_loses(data, tables):
    table, weight, start, n_blocks = drawn(data, tables)
    groups = data.draw(st.lists(st.integers(0, 2), min_size=n_blocks, max_size=n_blocks))
    groups = np.unique(groups, return_inverse=True)[1].astype(np.int32)
    cap = -(-len(table) // n_blocks) + 1
    block = start.copy()
    rows = distinct_rows(table)
    gained = refine_groups(rows, weight, block, groups, cap, (0.5, 0, 9, 6), 3)
    assert gained == objective(table, weight, start) - objective(table, weight, block)
    if len(table):
        assert (groups[block] == groups[start]).all()
        assert np.bincount(block).max() <= cap


def test_refinement_does_not_depend_on_the_number_of_threads(quad_edges):
    table, n_points, _ = quad_edges(60, 50)
    weight = np.ones(n_points, dtype=np.int32)
    start = (np.arange(len(table)) // 60).astype(np.int32)
    groups = (np.arange(start.max() + 1) // 8).astype(np.int32)
    found = []
    threads = get_num_threads()
    for count in (threads, 1):
        set_num_threads(count)
        block = start.copy()
        refine_groups(table, weight, block, groups, 62, (0.4, 0, 20, 15), 5)
        found.append(block)
    set_num_threads(threads)
    assert (found[0] == found[1]).all()
    assert (found[0] != start).any()


@ROUND
@given(data=st.data())
def test_weighted_loads_are_the_objective(data, tables):
    table, weight, block, n_blocks = drawn(data, tables)
    expected = objective(table, weight, block)
    assert weighted_loads_of(distinct_rows(table), weight, block, n_blocks) == expected


def test_allowances_are_the_exponential_distribution():
    drawn = allowances()
    assert abs(drawn.mean() - 1) < 1e-3
    assert abs((drawn > 1).mean() - np.exp(-1)) < 1e-3


def test_sort_by_lists_the_members_of_each_key_ascending():
    offset, member = sort_by(np.array([2, 0, 2, 2, 0], dtype=np.int32), 4)
    assert offset.tolist() == [0, 2, 2, 5, 5]
    assert member.tolist() == [1, 4, 0, 2, 3]
