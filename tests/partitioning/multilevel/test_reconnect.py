import effort
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.partitioning.connectivity import distinct_rows
from meshprep.partitioning.multilevel.balancing.reconnect import (
    count_components,
    near_blocks,
    reconnect,
    reconnect_groups,
)
from meshprep.partitioning.neighbourhood import facet_graph


def slow_components(table, block, n_blocks):
    """Pieces of every block, by merging sets of points until none can be merged."""
    found = []
    for b in range(n_blocks):
        components = []
        for row in table[block == b]:
            points = {int(t) for t in row if t >= 0}
            touching = [p for p in components if p & points]
            components = [p for p in components if not p & points]
            components.append(points.union(*touching))
        found.append(len(components))
    return found


@settings(deadline=None, max_examples=effort.examples(60))
@given(data=st.data())
def test_fewer_blocks_are_in_pieces_and_the_cap_holds(data, tables):
    table, n_points = data.draw(tables())
    n, n_blocks = len(table), data.draw(st.integers(1, 6))
    block = np.array(
        data.draw(st.lists(st.integers(0, n_blocks - 1), min_size=n, max_size=n)), np.int32
    )
    rows, weight = distinct_rows(table), np.ones(n_points, np.int32)
    before = slow_components(table, block, n_blocks)
    assert before == count_components(rows, n_points, block, n_blocks).tolist()
    cap = max(-(-n // n_blocks), int(np.bincount(block, minlength=1).max())) + 1
    start = block.copy()
    components = reconnect(rows.copy(), weight, block, n_blocks, cap)
    after = slow_components(table, block, n_blocks)
    if components is None:
        assert (block == start).all()
        return
    assert components.tolist() == after
    assert sum(p > 1 for p in after) < sum(p > 1 for p in before)
    sizes = np.bincount(block, minlength=n_blocks)
    assert sizes.max() <= cap
    assert (sizes > 0).all()


def test_an_islet_goes_to_the_block_around_it(quad_edges):
    table, n_points, where = quad_edges(24, 16)
    block = np.where(where[:, 0] < 11.6, 0, 1).astype(np.int32)
    islet = np.hypot(where[:, 0] - 18, where[:, 1] - 8) < 2
    block[islet] = 0
    groups, weight = np.zeros(2, np.int32), np.ones(n_points, np.int32)
    cap = len(table)
    reconnect_groups(
        table, weight, block, groups, cap, np.array([True, False]), np.ones(2, bool)
    )
    assert (block[islet] == 1).all()
    assert slow_components(table, block, 2) == [1, 1]


def test_groups_without_pieces_stay_as_they_are(quad_edges):
    table, n_points, where = quad_edges(12, 12)
    block = np.where(where[:, 0] < 6, 0, 1).astype(np.int32)
    start = block.copy()
    weight = np.ones(n_points, np.int32)
    none = np.zeros(2, bool)
    reconnect_groups(table, weight, block, np.array([0, 1], np.int32), 200, none, none)
    assert (block == start).all()


def test_only_blocks_nearby_change(quad_edges):
    table, n_points, where = quad_edges(60, 8)
    graph, n_blocks = facet_graph(table, n_points), 10
    block = np.minimum(where[:, 0] // 6, 9).astype(np.int32)
    block[np.hypot(where[:, 0] - 3, where[:, 1] - 4) < 1.5] = 1
    fragmented = count_components(table, n_points, block, n_blocks) > 1
    near = near_blocks(graph, block, fragmented)
    assert np.flatnonzero(fragmented).tolist() == [1]
    assert np.flatnonzero(near).tolist() == [0, 1, 2, 3]
    groups, weight, start = (
        np.zeros(n_blocks, np.int32),
        np.ones(n_points, np.int32),
        block.copy(),
    )
    reconnect_groups(table, weight, block, groups, 100, fragmented, near)
    assert not fragmented.any()
    assert slow_components(table, block, n_blocks) == [1] * n_blocks
    assert (np.bincount(block) <= 100).all()
    far = ~near[start]
    assert (block[far] == start[far]).all()
