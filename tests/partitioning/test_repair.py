"""The repair: caps hold from any start, little moves, gains are what they are said to be."""

import effort
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.kernels.compiled import from_python
from meshprep.partitioning.connectivity import (
    best_target,
    connect,
    distinct_rows,
    move_element,
)
from meshprep.partitioning.repair import repair

# Python cannot call helpers as they are.
best_target = from_python(best_target)
connect = from_python(connect)
move_element = from_python(move_element)

ROUND = settings(deadline=None, max_examples=effort.examples(80))


def objective(table, weight, block):
    """Weight of the distinct (point, block) pairs, from sets."""
    pairs = {(int(t), int(b)) for row, b in zip(table, block, strict=True) for t in row}
    return sum(int(weight[t]) for t, _ in pairs)


def weighted_loads(state):
    """The objective as the counts have it: the weight of every (point, block) pair."""
    return int((state.weight.astype(np.int64) * state.used).sum())


def drawn(data, tables, n_blocks):
    table, n_points = data.draw(tables())
    number = st.integers(0, n_blocks - 1)
    block = data.draw(st.lists(number, min_size=len(table), max_size=len(table)))
    weight = data.draw(st.lists(st.integers(0, 9), min_size=n_points, max_size=n_points))
    return table, np.array(weight, dtype=np.int32), np.array(block, dtype=np.int32)


@ROUND
@given(data=st.data())
def test_the_best_move_gains_what_the_objective_loses(data, tables):
    table, weight, block = drawn(data, tables, 5)
    state = connect(distinct_rows(table), weight, block.copy(), 5)
    assert weighted_loads(state) == objective(table, weight, block)
    cap = data.draw(st.integers(1, 12))
    for i in range(len(table)):
        target, gain = best_target(state, i, cap, -1)
        gains = {}
        for b in {
            int(state.block[k]) for k in range(len(table)) if set(table[k]) & set(table[i])
        }:
            trial = state.block.copy()
            trial[i] = b
            if b != state.block[i] and state.size[b] < cap:
                before = objective(table, weight, state.block)
                gains[b] = before - objective(table, weight, trial)
        assert (target in gains) == bool(gains)
        if gains:
            assert gain == gains[target] == max(gains.values())
            move_element(state, i, target)
            assert weighted_loads(state) == objective(table, weight, state.block)
    assert (state.size == np.bincount(state.block, minlength=5)).all()


@ROUND
@given(data=st.data())
def test_any_start_ends_within_the_cap(data, tables):
    block_size = data.draw(st.integers(1, 8))
    table, n_points = data.draw(tables())
    n_asked = max(1, -(-len(table) // block_size)) + data.draw(st.integers(0, 3))
    number = st.integers(0, n_asked - 1)
    start = data.draw(st.lists(number, min_size=len(table), max_size=len(table)))
    start = np.array(start, dtype=np.int32)
    kept = start.copy()
    block, _n_blocks, notes = repair(table, n_points, start, n_asked, block_size)
    sizes = np.bincount(block, minlength=1)
    assert sizes.max() <= block_size
    assert (sizes > 0).sum() <= n_asked + max(1, n_asked // 100)
    assert (start == kept).all()
    assert notes["moved"] >= (block != start).sum()


def line(n):
    return np.stack([np.arange(n), np.arange(1, n + 1)], axis=1).astype(np.int32)


def test_blocks_within_the_cap_are_left_alone():
    start = np.arange(40, dtype=np.int32) // 10
    block, _n_blocks, notes = repair(line(40), 41, start, 4, 10)
    assert (block == start).all()
    assert notes == {"moved": 0, "split": 0, "merged": 0}


def test_one_element_over_goes_to_the_neighbour_at_the_end():
    start = np.repeat([0, 1, 2], [10, 12, 9]).astype(np.int32)
    block, _n_blocks, notes = repair(line(31), 32, start, 3, 11)
    assert np.bincount(block).tolist() == [11, 11, 9]
    assert (np.diff(block) >= 0).all()
    assert notes["moved"] == 1


def test_a_chain_passes_elements_on_to_the_room_at_its_end():
    start = np.repeat([0, 1, 2, 3], [12, 10, 10, 8]).astype(np.int32)
    block, _n_blocks, notes = repair(line(40), 41, start, 4, 10)
    assert np.bincount(block).tolist() == [10, 10, 10, 10]
    assert (np.diff(block) >= 0).all()
    assert notes == {"moved": 6, "split": 0, "merged": 0}


def test_a_block_without_room_around_it_is_split_evenly():
    start = np.zeros(30, dtype=np.int32)
    block, _n_blocks, notes = repair(line(30), 31, start, 3, 10)
    assert np.bincount(block).tolist() == [10, 10, 10]
    assert np.abs(np.diff(block)).astype(bool).sum() == 2
    assert notes["split"] == 1


def test_elements_without_neighbours_fill_up_what_is_there():
    apart = np.arange(20, dtype=np.int32).reshape(20, 1)
    block, _n_blocks, _notes = repair(apart, 20, np.zeros(20, dtype=np.int32), 2, 10)
    sizes = np.bincount(block)
    assert sizes.max() <= 10
    assert (sizes > 0).sum() <= 3


def test_a_sliver_goes_to_the_neighbours_that_have_room():
    start = np.repeat([0, 1, 2], [17, 3, 17]).astype(np.int32)
    block, _n_blocks, notes = repair(line(37), 38, start, 3, 20)
    assert sorted(np.bincount(block, minlength=3).tolist()) in ([0, 17, 20], [0, 18, 19])
    assert notes["merged"] == 1


def test_a_sliver_stays_whole_where_its_neighbours_lack_room():
    start = np.repeat([0, 1, 2], [19, 4, 19]).astype(np.int32)
    block, _n_blocks, notes = repair(line(42), 43, start, 3, 20)
    assert (block == start).all()
    assert notes["merged"] == 0


def test_quads_thrown_at_random_into_blocks_come_within_the_cap(quad_edges):
    table, n_points, _ = quad_edges(60, 40)
    start = np.random.default_rng(0).integers(0, 50, len(table)).astype(np.int32)
    block, _n_blocks, _notes = repair(table, n_points, start, 50, 96)
    assert np.bincount(block).max() <= 96


def test_points_named_twice_count_once():
    table = np.array([[3, 3, 1], [0, 1, 2], [5, 5, 5]], dtype=np.int32)
    assert distinct_rows(table).tolist() == [[3, -1, 1], [0, 1, 2], [5, -1, -1]]
    plain = table[1:2]
    assert distinct_rows(plain) is plain
