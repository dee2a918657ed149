"""The moves: what is tracked is what is, caps hold, groups are independent of threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import get_num_threads, set_num_threads

from meshprep.kernels.compiled import from_python
from meshprep.partition.blocks.anneal import AnnealingSchedule, acceptance_thresholds, anneal
from meshprep.partition.blocks.centroids import (
    BlockMetrics,
    Centroids,
    block_metrics,
    centroid_term,
    find_centroids,
    update_centroids,
)
from meshprep.partition.blocks.groups import PointTable, refine_groups
from meshprep.partition.blocks.point_degrees import colour_bounds, count_degrees
from meshprep.partition.blocks_of import sort_by
from meshprep.partition.connectivity import connect, distinct_rows
from meshprep.partition.loads import weighted_loads_of

# Python cannot call helpers as they are.
acceptance_thresholds = from_python(acceptance_thresholds)
anneal = from_python(anneal)
connect = from_python(connect)
count_degrees = from_python(count_degrees)
find_centroids = from_python(find_centroids)
update_centroids = from_python(update_centroids)
centroid_term = from_python(centroid_term)

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


def everywhere(table, n_points, block, n_blocks, cap):
    """Random places of elements, each block with its own measure."""
    random = np.random.default_rng(7)
    position, where = random.normal(size=(n_points, 2)), random.normal(size=(len(table), 2))
    return block_metrics(distinct_rows(table), position, where, block, n_blocks, cap, 1e-6)


@ROUND
@given(
    data=st.data(),
    temperature=st.sampled_from([0.0, 0.4, 3.0]),
    centroid_weight=st.sampled_from([0.0, 0.5]),
    colour=st.sampled_from([0.0, 1.5]),
)
def test_what_the_sweeps_say_they_gained_is_what_the_objective_lost(
    data, temperature, centroid_weight, colour, tables
):
    table, weight, start, n_blocks = drawn(data, tables)
    cap = -(-len(table) // n_blocks) + 2
    state = connect(distinct_rows(table), weight, start.copy(), n_blocks)
    metrics = everywhere(table, len(weight), start, n_blocks, cap)
    centroids = Centroids(*metrics, np.empty((n_blocks, 2)))
    count = len(weight)
    written = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    degrees = count_degrees(state, written, cap) if colour > 0 else None
    gained = anneal(
        state,
        centroids,
        degrees,
        cap,
        2.0,
        AnnealingSchedule(temperature, centroid_weight, colour, 0, 9, 6),
        1,
    )
    if colour:
        fresh = count_degrees(state, written, cap)
        assert (degrees.degree_count[:, 1:] == fresh.degree_count[:, 1:]).all()
        assert (degrees.most == fresh.most).all()
        bounds = colour_bounds(distinct_rows(table), written, state.block, n_blocks)
        assert (bounds == slow_bounds(table, written, state.block, n_blocks)).all()
        assert (bounds == degrees.most).all()
    assert gained == objective(table, weight, start) - objective(table, weight, state.block)
    assert (np.bincount(state.block, minlength=n_blocks) == state.size).all()
    assert state.size.max(initial=0) <= cap
    if len(table) >= n_blocks:
        assert state.size.min() >= 1
    if temperature == centroid_weight == colour == 0.0:
        assert gained >= 0


def slow_bounds(table, written, block, n_blocks):
    """The most elements of each block on one written point, from sets."""
    bound = [0] * n_blocks
    for b in range(n_blocks):
        rows = [set(row.tolist()) for row, own in zip(table, block, strict=True) if own == b]
        for t in np.flatnonzero(written):
            bound[b] = max(bound[b], sum(t in row for row in rows))
    return np.array(bound)


def test_a_pull_is_nearness_in_radii():
    where = np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 0.0]])
    metric = np.repeat(np.diag([0.25, 1.0])[None], 2, axis=0)
    centroids = Centroids(where, metric, np.empty((2, 2)))
    find_centroids(centroids, np.array([0, 1, 0], dtype=np.int32), np.array([2, 1]))
    assert centroids.centroid.tolist() == [[0.5, 0.0], [4.0, 0.0]]
    assert np.isclose(centroid_term(centroids, 0, 0, 1), 0.25 * (0.5**2 - 4**2))
    assert np.isclose(centroid_term(centroids, 2, 0, 1), 0.25 * (0.5**2 - 3**2))
    update_centroids(centroids, np.array([2, 1]), 2, 0, 1)
    assert centroids.centroid.tolist() == [[0.0, 0.0], [2.5, 0.0]]


@pytest.mark.parametrize("growth", [0.002, 0.01])
def test_a_border_between_equal_blocks_of_widening_elements_is_at_rest(growth):
    # Elements at e^(growth * s) for whole s, in two discs that touch at s = 0.
    side = np.arange(-40.0, 41.0)
    along, across = (a.ravel() for a in np.meshgrid(side, side[20:61]))
    radius, scale = 20.0, np.exp(growth * along)
    where = np.stack([scale / growth, across * scale], axis=1)
    block = np.where(along < 0, 0, 1).astype(np.int32)
    inside = np.hypot(np.abs(along) - radius, across) <= radius
    block, where, scale = block[inside], where[inside], scale[inside]
    metric = np.empty((2, 2, 2))
    for b in range(2):
        metric[b] = np.eye(2) / (scale[block == b] ** 2).mean() / radius**2
    at_border = np.append(where, [[1 / growth, 0.0]], axis=0)
    centroids = Centroids(at_border, metric, np.empty((2, 2)))
    find_centroids(centroids, block, np.bincount(block))
    skewed = 2 * 1.25 * growth * radius
    assert abs(centroid_term(centroids, len(where), 0, 1)) < 0.1 * skewed


def test_a_width_is_measured_along_and_across():
    table = np.array([[0, 1, 2, 3]], dtype=np.int32)
    position = np.array([[-3.0, 0.0], [3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    where, block = np.zeros((1, 2)), np.zeros(1, dtype=np.int32)
    metric = block_metrics(table, position, where, block, 1, 100, 1e-6).metric[0]
    # Mean squares are 4.5 and 0.5; a block of 100 has a squared radius of 100 elements.
    assert np.allclose(metric, np.diag([1 / 450, 1 / 50]))


@ROUND
@given(data=st.data())
def test_groups_together_gain_what_the_objective_loses(data, tables):
    table, weight, start, n_blocks = drawn(data, tables)
    groups = data.draw(st.lists(st.integers(0, 2), min_size=n_blocks, max_size=n_blocks))
    groups = np.unique(groups, return_inverse=True)[1].astype(np.int32)
    cap = -(-len(table) // n_blocks) + 1
    block = start.copy()
    rows = distinct_rows(table)
    written = np.ones(n_blocks and len(weight), dtype=bool)
    metrics = everywhere(table, len(weight), start, n_blocks, cap)
    schedule = [AnnealingSchedule(0.5, 0.2, 0.0, 0, 9, 6)]
    gained = refine_groups(
        PointTable(rows, weight, written), metrics, block, groups, cap, schedule, 3
    )
    assert gained.sum() == objective(table, weight, start) - objective(table, weight, block)
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
        schedule = [AnnealingSchedule(0.4, 0.0, 0.0, 0, 20, 15)]
        metrics = BlockMetrics(np.empty((len(table), 0)), np.empty((len(groups), 0, 0)))
        refine_groups(
            PointTable(table, weight, weight > 0), metrics, block, groups, 62, schedule, 5
        )
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
    drawn = acceptance_thresholds()
    assert abs(drawn.mean() - 1) < 1e-3
    assert abs((drawn > 1).mean() - np.exp(-1)) < 1e-3


def test_sort_by_lists_the_members_of_each_key_ascending():
    offset, member = sort_by(np.array([2, 0, 2, 2, 0], dtype=np.int32), 4)
    assert offset.tolist() == [0, 2, 2, 5, 5]
    assert member.tolist() == [1, 4, 0, 2, 3]
