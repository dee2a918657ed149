"""Both bisections: equal sizes, compact parts, thin layers, and no dependence on threads."""

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import get_num_threads, set_num_threads

from meshprep.kernels.compiled import from_python
from meshprep.partitioning.connectivity import distinct_rows
from meshprep.partitioning.multilevel.coarsening.levels import stand_in_places
from meshprep.partitioning.multilevel.initial.bisection import (
    bisect,
    point_positions,
    select,
)
from meshprep.partitioning.multilevel.initial.geometry import Geometry, rotated
from meshprep.partitioning.multilevel.initial.pivots import pivot_coordinates
from meshprep.partitioning.neighbourhood import facet_graph

# Python cannot call helpers as they are.
select = from_python(select)

ROUND = settings(deadline=None, max_examples=effort.examples(60))


def geometry_of(table, n_points, where):
    weight = np.ones(n_points, dtype=np.int32)
    rows = distinct_rows(table)
    if where is None:
        where = stand_in_places(facet_graph(rows, n_points))
        return Geometry.of(rows, weight, where, known=False)
    return Geometry.of(rows, weight, where)


def loads_of(table, part):
    return sum(np.unique(table[part == p]).size for p in range(part.max() + 1))


@ROUND
@given(data=st.data())
def test_parts_differ_by_two_elements_at_most_and_none_is_missing(data, tables):
    table, n_points = data.draw(tables(max_rows=60))
    n = len(table)
    n_blocks = data.draw(st.integers(1, max(1, n)))
    where = np.random.default_rng(data.draw(st.integers(0, 99))).normal(size=(n, 2))
    for geometry in (
        geometry_of(table, n_points, where),
        geometry_of(table, n_points, None),
    ):
        sizes = np.bincount(geometry.cut(0.3, n_blocks), minlength=n_blocks)
        if n:
            assert sizes.size == n_blocks
            assert sizes.min() >= 1
            assert sizes.max() - sizes.min() <= 2
            assert sizes.max() <= -(-n // n_blocks) + 1


@ROUND
@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.data())
def test_select_puts_the_smallest_keys_first(values, data):
    key = np.array(values, dtype=np.float64)
    weight = st.lists(st.integers(1, 4), min_size=key.size, max_size=key.size)
    weight = np.array(data.draw(st.one_of(weight, st.just([1] * key.size))), dtype=np.int32)
    wanted = data.draw(st.integers(0, int(weight.sum())))
    order, moved = np.arange(key.size, dtype=np.int32), key.copy()
    place = select(moved, order, weight, 0, key.size, wanted)
    assert (moved == key[order]).all()
    assert sorted(order) == list(range(key.size))
    assert moved[:place].max(initial=-1) <= moved[place:].min(initial=9)
    assert abs(weight[order[:place]].sum() - wanted) <= weight.max() / 2
    if (weight == 1).all():
        again, none = np.arange(key.size, dtype=np.int32), np.empty(0, dtype=np.int32)
        assert select(key, again, none, 0, key.size, wanted) == place
        assert (again == order).all()


def test_points_stand_at_the_mean_of_their_elements():
    table = np.array([[0, 1], [1, 3], [1, -1]], dtype=np.int32)
    where = np.array([[0.0, 0.0], [2.0, 4.0], [4.0, 2.0]], dtype=np.float64)
    found = point_positions(table, 4, where)
    np.testing.assert_allclose(found, [[0, 0], [2, 2], [0, 0], [2, 4]])


@pytest.mark.parametrize("stretch", [1.0, 1e-3])
def test_thin_layers_are_cut_into_blocks_as_wide_as_high_in_elements(quad_edges, stretch):
    table, n_points, where = quad_edges(64, 64)
    part = geometry_of(table, n_points, where * [1.0, stretch]).cut(0.013, 16)
    assert loads_of(table, part) < 1.1 * n_points


def test_a_frame_on_edge_cuts_quads_into_diamonds(quad_edges):
    table, n_points, where = quad_edges(120, 120)
    geometry = geometry_of(table, n_points, where)
    straight, slanted = (
        loads_of(table, geometry.cut(rotation, 64)) for rotation in (0.013, 0.8)
    )
    assert slanted < 0.99 * straight


def test_turned_directions_are_orthogonal():
    for d in (1, 2, 3, 4):
        directions = rotated(d, 0.7)
        np.testing.assert_allclose(directions @ directions.T, np.eye(d), atol=1e-12)
    np.testing.assert_array_equal(rotated(3, 0.0), np.eye(3))


def test_coordinates_that_all_coincide_are_cut_all_the_same(quad_edges):
    table, n_points, where = quad_edges(10, 10)
    sizes = np.bincount(geometry_of(table, n_points, where * 0).cut(0.3, 7))
    assert sizes.min() >= 25
    assert sizes.max() <= 27


def test_graph_distances_cut_hexes_nearly_as_well_as_coordinates_do(hex_nodes):
    table, n_points, where = hex_nodes(16)
    by_place = loads_of(table, geometry_of(table, n_points, where).cut(0.013, 16))
    by_distance = loads_of(table, geometry_of(table, n_points, None).cut(0.013, 16))
    assert by_distance < 1.15 * by_place


def test_parts_that_do_not_touch_are_cut_from_each_other_first():
    line = np.stack([np.arange(30), np.arange(1, 31)], axis=1)
    table = np.concatenate([line, line + 31])[np.random.default_rng(0).permutation(60)]
    part = geometry_of(table.astype(np.int32), 62, None).cut(0.0, 6)
    for p in range(6):
        rows = np.sort(table[part == p][:, 0])
        assert (np.diff(rows) == 1).all()


def test_pivot_coordinates_go_along_a_line_as_it_does():
    line = np.stack([np.arange(300), np.arange(1, 301)], axis=1).astype(np.int32)
    where = pivot_coordinates(facet_graph(line, 301))
    assert where.shape == (300, 3)
    step = np.diff(where[:, 0])
    assert (np.sign(step) == np.sign(step[0])).all()
    # All ten distances change by one in a step, but for the pivots in the middle.
    assert 1.0 < np.abs(step).mean() <= np.sqrt(10)


def test_pivot_coordinates_keep_components_apart():
    line = np.stack([np.arange(9), np.arange(1, 10)], axis=1)
    twice = np.concatenate([line, line + 10]).astype(np.int32)
    where = pivot_coordinates(facet_graph(twice, 20))
    assert where[:9, 0].max() < where[9:, 0].min()


def test_hubs_do_not_make_everything_near():
    line = np.stack([np.arange(3000), np.arange(1, 3001), np.full(3000, 3001)], axis=1)
    table = line.astype(np.int32)
    where = stand_in_places(facet_graph(table, 3002))
    step = np.diff(where[:, 0])
    assert (np.sign(step) == np.sign(step[0])).mean() > 0.98


@pytest.mark.parametrize("known", [True, False])
def test_parts_do_not_depend_on_the_number_of_threads(quad_edges, known):
    table, n_points, where = quad_edges(60, 50)
    geometry = geometry_of(table, n_points, where if known else None)
    many = geometry.cut(0.3, 37)
    threads = get_num_threads()
    set_num_threads(1)
    try:
        one = geometry.cut(0.3, 37)
    finally:
        set_num_threads(threads)
    assert (one == many).all()


def test_no_parts_of_nothing():
    nothing = np.empty((0, 2), dtype=np.float64)
    table = np.empty((0, 3), dtype=np.int32)
    assert bisect(table, nothing, nothing, np.eye(2), 5).size == 0
    assert pivot_coordinates(facet_graph(table, 0)).shape == (0, 3)
