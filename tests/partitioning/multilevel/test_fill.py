"""Blocks filled up to a cap of bytes: counts that stay true, caps, gains, and any threads."""

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import get_num_threads, set_num_threads
from scipy.spatial import Delaunay

from meshprep.kernels.compiled import from_python
from meshprep.partitioning import BlockProblem, partition
from meshprep.partitioning.connectivity import distinct_rows
from meshprep.partitioning.multilevel.balancing import fill
from meshprep.partitioning.multilevel.coarsening.grouping import Grouping
from meshprep.partitioning.multilevel.initial.geometry import Geometry
from meshprep.partitioning.neighbourhood import facet_graph

missing_weight = from_python(fill.missing_weight)


def slow_bytes(table, weight, block, n_blocks):
    """The weight of the distinct points of each block, from sets; -1 is no point."""
    return [
        sum(int(weight[t]) for t in set(table[block == b].ravel().tolist()) - {-1})
        for b in range(n_blocks)
    ]


def triangulation(n, size):
    """A mesh with unit weights and blocks of about ``size`` triangles in squares."""
    points = np.random.default_rng(2).random((n, 2))
    cells = Delaunay(points).simplices.astype(np.int32)
    middles = points[cells].mean(axis=1)
    side = round((len(cells) / size) ** 0.5)
    column, row = np.minimum(side - 1, (middles * side).astype(int)).T
    table = distinct_rows(cells)
    weight = np.ones(n, np.int32)
    known = Geometry.of(table=table, weight=weight, coordinates=middles, known=True)
    return known, facet_graph(table, n), (column * side + row).astype(np.int32), side**2


@settings(deadline=None, max_examples=effort.examples(40))
@given(data=st.data())
def test_bytes_and_sizes_are_those_of_the_blocks_after_all_moves(data, tables):
    table, n_points = data.draw(tables())
    if not len(table):
        return
    table = distinct_rows(table)
    weight = np.array(
        data.draw(st.lists(st.integers(0, 9), min_size=n_points, max_size=n_points)),
        np.int32,
    )
    graph = facet_graph(table, n_points)
    at_point = fill.transpose(table, n_points)
    around = fill.Surroundings(
        table, weight, at_point.offset, at_point.index, graph.offset, graph.index
    )
    block = (np.arange(len(table)) // 5).astype(np.int32)
    n_blocks = int(block.max()) + 1
    # Odd and even blocks are groups of their own.
    group = (np.arange(n_blocks) % 2).astype(np.int32)
    before = block.copy()
    filling = fill.Filling(
        block=block,
        size=np.bincount(block),
        staged=np.array(slow_bytes(table, weight, block, n_blocks)),
        group_of_block=group,
        score=np.full(len(table), np.inf, np.float32),
        cap=6,
        limit=data.draw(st.integers(1, 40)),
    )
    grouping = Grouping.of(block, group)
    cooling = fill.Cooling(0, 9, 9, 1.0, 1.0, 1, fill.acceptance_thresholds())
    fill._fill_groups(
        around,
        filling,
        grouping.cluster_offset,
        grouping.clusters,
        np.arange(grouping.groups),
        cooling,
    )
    assert filling.staged.tolist() == slow_bytes(table, weight, block, n_blocks)
    assert filling.size.tolist() == np.bincount(block, minlength=n_blocks).tolist()
    assert filling.size.min() >= 1
    assert filling.size.max() <= 6
    assert (group[block] == group[before]).all()
    # What a move would free or add, from sets.
    for element in range(0, len(table), 7):
        for b in range(n_blocks):
            others = np.flatnonzero(block == b)
            others = others[others != element]
            new = set(table[element].tolist()) - set(table[others].ravel().tolist()) - {-1}
            expected = sum(int(weight[t]) for t in new)
            assert missing_weight(around, block, element, b) == expected


def test_blocks_give_elements_away_until_all_fit():
    known, graph, block, n_blocks = triangulation(2000, 90)
    before = np.array(slow_bytes(known.table, known.weight, block, n_blocks))
    limit = int(before.mean())
    assert (before > limit).sum() > n_blocks // 4
    filled = fill.fill_blocks(known, graph, block, n_blocks, 126, limit, 1.0, seed=0)
    after = np.array(slow_bytes(known.table, known.weight, filled, n_blocks))
    assert after.max() <= limit
    assert after.sum() < before.sum()
    assert np.bincount(filled).max() <= 126


def test_blocks_that_fit_stay_as_they_are():
    known, graph, block, n_blocks = triangulation(500, 90)
    limit = max(slow_bytes(known.table, known.weight, block, n_blocks))
    assert fill.fill_blocks(known, graph, block, n_blocks, 126, limit, 1.0, 0) is block


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr(fill, "GROUP_SIZE", 800)
    monkeypatch.setattr(fill, "GROUP_BLOCKS", 4)
    known, graph, block, n_blocks = triangulation(2000, 90)
    threads = get_num_threads()
    found = []
    for count in (1, threads):
        set_num_threads(count)
        found.append(fill.fill_blocks(known, graph, block, n_blocks, 126, 60, 1.0, 0))
    set_num_threads(threads)
    assert (found[0] == found[1]).all()
    assert (found[0] != block).any()


@pytest.mark.parametrize("known", [True, False])
def test_filled_blocks_are_fewer_and_load_less(check_blocks, known):
    geometry, _, _, _ = triangulation(2000, 90)
    where = geometry.coordinates if known else None
    problem = BlockProblem(geometry.table, 2000, 126, coordinates=where)
    count = {}
    for filled in (False, True):
        options = {"staged_bytes": 64, "fill": filled}
        blocks = partition(problem, "blocks", options)
        check_blocks(blocks, len(geometry.table), 126)
        block = blocks.block_of_element
        staged = slow_bytes(geometry.table, geometry.weight, block, blocks.n_blocks)
        assert max(staged) <= 64
        count[filled] = blocks.n_blocks, sum(staged)
    assert count[True][0] < 0.98 * count[False][0]
    assert count[True][1] < count[False][1]
