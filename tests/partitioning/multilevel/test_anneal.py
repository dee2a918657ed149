"""Annealing: what is tracked is what is, on every level; groups are independent of threads."""

from dataclasses import dataclass

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import get_num_threads, set_num_threads

from meshprep.kernels import kernel
from meshprep.kernels.arrays import sort_by
from meshprep.kernels.compiled import from_python
from meshprep.kernels.parallel import each
from meshprep.partitioning.blocks_of import staged_bytes
from meshprep.partitioning.connectivity import distinct_rows
from meshprep.partitioning.multilevel.coarsening.grouping import Grouping
from meshprep.partitioning.multilevel.coarsening.levels import (
    coarsen,
    element_level,
    facets_between,
)
from meshprep.partitioning.multilevel.refinement.centroids import (
    FAR,
    OWN,
    Centroids,
    block_metrics,
    centroid_term,
    find_centroids,
    squared_radius,
    update_centroids,
)
from meshprep.partitioning.multilevel.refinement.counts import (
    COUNT_BITS,
    FIRST,
    ROOM,
    USED,
    WEIGHT,
    Counts,
    count_blocks,
    move_cluster,
    no_block,
)
from meshprep.partitioning.multilevel.refinement.groups import (
    AnnealingSchedule,
    _extract,
    anneal_groups,
)
from meshprep.partitioning.multilevel.refinement.sweep import acceptance_thresholds
from meshprep.partitioning.neighbourhood import facet_graph
from meshprep_runtime.types.maps import read_only

# Python cannot call helpers as they are.
find_centroids = from_python(find_centroids)
update_centroids = from_python(update_centroids)
centroid_term = from_python(centroid_term)
facets_between = from_python(facets_between)

ROUND = settings(deadline=None, max_examples=effort.examples(60))


def objective(table, weight, block):
    """Weight of the distinct (point, block) pairs, from sets."""
    pairs = {(int(t), int(b)) for row, b in zip(table, block, strict=True) for t in row}
    return sum(int(weight[t]) for t, _ in pairs)


@dataclass
class Drawn:
    """A random map, a level of it and random blocks of its clusters."""

    table: np.ndarray
    weight: np.ndarray
    level: object
    cluster: np.ndarray
    block: np.ndarray
    n_blocks: int
    groups: np.ndarray

    @property
    def sizes(self):
        return np.bincount(self.block[self.cluster], minlength=self.n_blocks)


def drawn(data, tables):
    table, n_points = data.draw(tables())
    weight = data.draw(st.lists(st.integers(0, 9), min_size=n_points, max_size=n_points))
    rows = distinct_rows(table)
    where = np.random.default_rng(7).normal(size=(len(table), data.draw(st.integers(1, 3))))
    level, cluster = (
        element_level(rows, facet_graph(rows, n_points), where),
        np.arange(len(table)),
    )
    for most in data.draw(st.lists(st.integers(2, 6), max_size=2)):
        level, label = coarsen(level, n_points, most)
        cluster = label[cluster]
    n_blocks = data.draw(st.integers(1, 6))
    block = np.arange(level.weight.size, dtype=np.int32) % n_blocks
    groups = data.draw(st.lists(st.integers(0, 2), min_size=n_blocks, max_size=n_blocks))
    groups = np.unique(groups, return_inverse=True)[1].astype(np.int32)
    weight = read_only(np.array(weight, dtype=np.int32))
    return Drawn(table, weight, level, cluster, block, n_blocks, groups)


def schedule(cap, temperature=0.5, pull=0.2, end=9, total=6, seed=1):
    return AnnealingSchedule(
        begin=0,
        end=end,
        total=total,
        cap=cap,
        least=0 * cap,
        settled=0.9,
        temperature=(float(temperature), 0.0),
        excess=(0.1, 0.0),
        pull=(float(pull), 0.0),
        facet=0.3,
        over=(0.5, 2.0),
        even=0.3,
        rate=0.2,
        halved=0.3,
        per_unit=0.5,
        seed=seed,
        quantile=acceptance_thresholds(),
    )


def anneal(level, weight, metric, block, groups, plan):
    """Anneal all groups; by how much the loads fell."""
    grouping = Grouping.of(block, groups)
    own, pressure = (level, weight, metric, block, grouping), np.zeros(groups.size)
    shares = [(*own, share, plan, pressure) for share in grouping.shares()]
    return sum(each(anneal_groups, shares))


@ROUND
@given(
    data=st.data(),
    temperature=st.sampled_from([0.0, 0.4, 3.0]),
    pull=st.sampled_from([0.0, 0.5]),
)
def test_what_annealing_says_it_gained_is_what_the_objective_lost(
    data, temperature, pull, tables
):
    case = drawn(data, tables)
    extra = data.draw(
        st.lists(st.integers(2, 9), min_size=case.n_blocks, max_size=case.n_blocks)
    )
    cap, start = -(-len(case.table) // case.n_blocks) + np.array(extra), case.block.copy()
    first = case.sizes
    metric = np.random.default_rng(3).random((case.n_blocks, 6)) * [1, 1, 1, 0, 0, 0]
    plan = schedule(cap, temperature, pull)
    gained = anneal(case.level, case.weight, metric, case.block, case.groups, plan)
    before = objective(case.table, case.weight, start[case.cluster])
    assert gained == before - objective(case.table, case.weight, case.block[case.cluster])
    assert (case.groups[case.block] == case.groups[start]).all()
    assert (case.sizes <= np.maximum(first, cap + (0.1 * cap).astype(int))).all()
    assert ((case.sizes > 0) == (first > 0)).all()


def total_price(case, block, plan):
    """What a search of fixed prices lowers: loads, facets cut, and unequal sizes of blocks."""
    loads = objective(case.table, case.weight, block[case.cluster])
    facets = 0
    for i in range(block.size):
        for s in range(case.level.offset[i], case.level.offset[i + 1]):
            if block[i] != block[case.level.neighbours[s]]:
                facets += facets_between(case.level, s)
    sizes = np.bincount(block[case.cluster], minlength=case.n_blocks)
    uneven = (sizes.astype(np.float64) ** 2 / (2 * plan.cap)).sum()
    # every facet stands in the rows of both its sides
    return loads * plan.per_unit + plan.facet * facets / 2 + plan.even * uneven


@ROUND
@given(data=st.data(), facet=st.sampled_from([0.0, 0.3]), even=st.sampled_from([0.0, 0.3]))
def test_cold_annealing_of_fixed_prices_lowers_their_sum(data, facet, even, tables):
    # Within equal caps that no block may pass, without pull and pressure, each move is made for a
    # score above 0, which is what the sum of all prices falls by.
    case = drawn(data, tables)
    largest = case.sizes.max(initial=1)
    cap = np.full(case.n_blocks, largest + data.draw(st.integers(0, 9)))
    plan = schedule(cap, temperature=0.0, pull=0.0)
    plan = plan._replace(excess=(0.0, 0.0), rate=0.0, facet=facet, even=even)
    start = case.block.copy()
    gained = anneal(
        case.level, case.weight, np.zeros((case.n_blocks, 6)), case.block, case.groups, plan
    )
    fell = total_price(case, start, plan) - total_price(case, case.block, plan)
    assert (case.sizes <= cap).all()
    # but for rounding, where a score above 0 is none
    assert fell > -1e-9
    if facet == even == 0.0:
        assert gained >= 0


@kernel
def _moved(level, weight, group, block, number, moves, plan):
    pressure, (clusters, targets) = np.zeros(group.blocks.size), moves
    state = _extract(level, weight, group, block, number, plan, pressure)
    count_blocks(state)
    for k in range(clusters.size):
        if state.block[clusters[k]] != targets[k]:
            move_cluster(state, clusters[k], targets[k])
    fresh_state = Counts(
        state.point_offset,
        state.points,
        state.offset,
        state.neighbours,
        state.facets,
        state.weight,
        state.block,
        np.zeros_like(state.size),
        state.cap,
        state.least,
        state.begin,
        np.full(state.lists.size, no_block(group.blocks.size), np.int32),
        state.pressure,
    )
    for p in state.begin:
        fresh_state.lists[p + WEIGHT], fresh_state.lists[p + USED] = (
            state.lists[p + WEIGHT],
            0,
        )
    count_blocks(fresh_state)
    return state, fresh_state


@ROUND
@given(data=st.data())
def test_counts_after_moves_are_those_counted_afresh(data, tables):
    case = drawn(data, tables)
    n = case.level.weight.size
    moves = data.draw(
        st.lists(
            st.tuples(st.integers(0, 99), st.integers(0, case.n_blocks - 1)), max_size=30
        )
    )
    clusters = np.array([c % max(1, n) for c, _ in moves if n], dtype=np.int32)
    targets = np.array([b for _, b in moves if n], dtype=np.int32)
    grouping = Grouping.of(case.block, np.zeros(case.n_blocks, np.int32))
    number = np.full(len(case.weight), -1, np.int32)
    state, fresh = _moved(
        case.level, case.weight, grouping.group(0), case.block, number, (clusters, targets),
        schedule(np.full(case.n_blocks, 10)),
    )  # fmt: skip
    assert (number == -1).all()
    assert (state.size == fresh.size).all()
    ends = [*state.begin.tolist(), state.lists.size][1:]
    for begin, end in zip(state.begin.tolist(), ends, strict=True):
        assert end - begin >= FIRST + ROOM
        found, wanted = state.lists[begin:end], fresh.lists[begin:end]
        assert (found[:FIRST] == wanted[:FIRST]).all()
        # entries that are not in use name no block, so that they may be read as well
        assert (found[FIRST + found[USED] :] == case.n_blocks << COUNT_BITS).all()
        assert sorted(found[FIRST:]) == sorted(wanted[FIRST:])


def test_a_pull_is_nearness_in_radii():
    # of a plane, and in another order than the clusters of the group
    place, row = np.array([[1.0, 0.0], [9.0, 9.0], [0.0, 0.0], [4.0, 0.0]]), [2, 3, 0]
    metric = np.repeat([[0.25, 1.0, 1.0, 0.0, 0.0, 0.0]], 2, axis=0)
    centroids = Centroids(place, np.array(row, np.int32), metric, np.empty((2, 3)))
    weight, block = np.array([1, 2, 1], dtype=np.int32), np.array([0, 1, 0], dtype=np.int32)
    find_centroids(centroids, weight, block, np.array([2, 2]))
    assert centroids.centroid.tolist() == [[0.5, 0.0, 0.0], [4.0, 0.0, 0.0]]
    assert np.isclose(centroid_term(centroids, 0, 0, 1), 0.25 * (0.5**2 - 4**2))
    assert np.isclose(centroid_term(centroids, 2, 0, 1), 0.25 * (0.5**2 - 3**2))
    update_centroids(centroids, np.array([2, 2]), 2, 1, 0, 1)
    assert np.allclose(centroids.centroid, [[0.0, 0.0, 0.0], [3.0, 0.0, 0.0]])


def test_a_block_of_far_finer_elements_pulls_no_harder_than_one_that_is_far():
    # a cluster of the second block beside the first, whose elements are 10^4 times as fine
    place, width = np.array([[0.0], [0.5], [1.5]]), np.array([1e-4, 1.0])
    metric = np.zeros((2, 6))
    metric[:, 0] = 1 / width**2
    centroids = Centroids(place, np.arange(3, dtype=np.int32), metric, np.empty((2, 3)))
    weight, block = np.ones(3, np.int32), np.array([0, 1, 1], np.int32)
    find_centroids(centroids, weight, block, np.array([1, 2]))
    squared = np.array([[((0.5 - c) / w) ** 2 for w in width] for c in (0.0, 1.0)])
    near = np.minimum(FAR, squared)
    wanted = OWN * (near[1, 1] - near[0, 0]) + (1 - OWN) * (near[1, 0] - near[0, 1])
    assert np.isclose(centroid_term(centroids, 1, 1, 0), wanted)
    assert -FAR < wanted < 0


@pytest.mark.parametrize("growth", [0.002, 0.01])
def test_a_border_between_equal_blocks_of_widening_elements_is_at_rest(growth):
    # Elements at e^(growth * s) for whole s, in two discs that touch at s = 0.
    side = np.arange(-40.0, 41.0)
    along, across = (a.ravel() for a in np.meshgrid(side, side[20:61]))
    radius, scale = 20.0, np.exp(growth * along)
    where = np.stack([scale / growth, across * scale, 0 * scale], axis=1)
    block = np.where(along < 0, 0, 1).astype(np.int32)
    inside = np.hypot(np.abs(along) - radius, across) <= radius
    block, where, scale = block[inside], where[inside], scale[inside]
    metric = np.zeros((2, 6))
    for b in range(2):
        metric[b, :3] = 1 / (scale[block == b] ** 2).mean() / radius**2
    at_border = np.append(where, [[1 / growth, 0.0, 0.0]], axis=0)
    row = np.arange(len(at_border), dtype=np.int32)
    centroids = Centroids(at_border, row, metric, np.empty((2, 3)))
    find_centroids(centroids, np.ones(len(block), np.int32), block, np.bincount(block))
    skewed = 2 * 1.25 * growth * radius
    assert abs(centroid_term(centroids, len(where), 0, 1)) < 0.1 * skewed


def test_a_width_is_measured_along_and_across():
    table = np.array([[0, 1, 2, 3]], dtype=np.int32)
    position = np.array([[-3.0, 0.0], [3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    where, block = np.zeros((1, 2)), np.zeros(1, dtype=np.int32)
    metric = block_metrics(table, position, where, block, block, 1, 1e-6)[0]
    # Mean squares are 4.5 and 0.5.
    assert np.allclose(metric, [1 / 4.5, 1 / 0.5, 0, 0, 0, 0])
    # a width whose square is no number: no centroid term
    for wide in (1e300, 1e200, 1e-200):
        with np.errstate(all="raise", over="ignore"):
            found = block_metrics(table, wide * position, where, block, block, 1, 1e-6)
        assert not found.any()


@pytest.mark.parametrize("d", [2, 3])
def test_widths_of_many_blocks_are_those_of_each_on_any_number_of_threads(d):
    random, n_blocks = np.random.default_rng(d), 200
    table = random.integers(-1, 500, (3000, 4)).astype(np.int32)
    position, where = random.normal(size=(500, d)), random.normal(size=(3000, d))
    example = random.permutation(3000)[:1500].astype(np.int32)
    block = random.integers(0, n_blocks - 1, 1500).astype(np.int32)
    found, threads = [], get_num_threads()
    for count in (threads, 1):
        set_num_threads(count)
        found.append(block_metrics(table, position, where, example, block, n_blocks, 1e-6))
    set_num_threads(threads)
    assert np.array_equal(*found)
    assert not found[0][-1].any()
    for b in range(0, n_blocks - 1, 20):
        off = [
            position[t] - where[i] for i in example[block == b] for t in table[i] if t >= 0
        ]
        width = np.mean([np.outer(v, v) for v in off], axis=0)
        expected = np.linalg.inv(width + 1e-12 * np.trace(width) * np.eye(d))
        assert np.allclose(found[0][b, :d], np.diag(expected))
        assert np.isclose(found[0][b, 3], 2 * expected[0, 1])


def test_a_radius_is_that_of_the_elements_about_their_centroid():
    place = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0], [9.0, 4.0, 0.0]])
    weight, block = np.array([2, 1, 5], dtype=np.int32), np.array([0, 0, 1], dtype=np.int32)
    metric = np.repeat([[2.0, 1.0, 1.0, 0.0, 0.0, 0.0]], 2, axis=0)
    # Two elements are 1 away and one is 2; the other block is a point.
    assert np.isclose(squared_radius(place, weight, block, metric), 2 * (2 * 1 + 4) / 8)


def test_refinement_does_not_depend_on_the_number_of_threads(quad_edges):
    table, n_points, where = quad_edges(60, 50)
    level = element_level(table, facet_graph(table, n_points), where)
    start = (np.arange(len(table)) // 60).astype(np.int32)
    groups = (np.arange(start.max() + 1) // 8).astype(np.int32)
    weight = read_only(np.ones(n_points, dtype=np.int32))
    found = []
    threads = get_num_threads()
    for count in (threads, 1):
        set_num_threads(count)
        block = start.copy()
        metric = np.zeros((groups.size, 6))
        plan = schedule(np.full(groups.size, 62), 0.4, 0.0, end=20, total=15, seed=5)
        anneal(level, weight, metric, block, groups, plan)
        found.append(block)
    set_num_threads(threads)
    assert (found[0] == found[1]).all()
    assert (found[0] != start).any()


@ROUND
@given(data=st.data())
def test_weighted_loads_are_the_objective(data, tables):
    case = drawn(data, tables)
    block = case.block[case.cluster].astype(np.int32)
    expected = objective(case.table, case.weight, block)
    rows = distinct_rows(case.table)
    assert staged_bytes(rows, case.weight, block, case.n_blocks).sum() == expected


def test_allowances_are_the_exponential_distribution():
    drawn = acceptance_thresholds()
    assert abs(drawn.mean() - 1) < 1e-3
    assert abs((drawn > 1).mean() - np.exp(-1)) < 1e-3


def test_sort_by_lists_the_members_of_each_key_ascending():
    offset, member = sort_by(np.array([2, 0, 2, 2, 0], dtype=np.int32), 4)
    assert offset.tolist() == [0, 2, 2, 5, 5]
    assert member.tolist() == [1, 4, 0, 2, 3]
