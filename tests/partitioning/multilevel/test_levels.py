"""Clusters: bounded, complete, with the points and neighbours that their elements have."""

from itertools import pairwise

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import get_num_threads, set_num_threads

from meshprep.partitioning.connectivity import distinct_rows
from meshprep.partitioning.multilevel.coarsening import levels
from meshprep.partitioning.multilevel.coarsening.levels import (
    cluster_sizes,
    coarsen,
    element_level,
    in_other_places,
    in_space,
    places_of_clusters,
    smoothed_places,
)
from meshprep.partitioning.multilevel.tuning import SearchTuning
from meshprep.partitioning.neighbourhood import facet_graph
from meshprep_runtime.types.maps import read_only

ROUND = settings(deadline=None, max_examples=effort.examples(60))


def rows_of(offset, index):
    return [index[a:b].tolist() for a, b in pairwise(offset)]


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_places_are_not_copied_and_facets_are_not_counted(d):
    rows, graph = np.zeros((5, 1), np.int32), facet_graph(np.zeros((5, 1), np.int32), 1)
    where = np.random.default_rng(0).normal(size=(5, d))
    for came in (where, read_only(where)):
        level = element_level(rows, graph, came)
        assert np.array_equal(level.place, where[:, :3])
        assert np.shares_memory(level.place, came) == (d < 4)
    assert (level.neighbours.size, level.facets.size) == (20, 0)
    assert np.array_equal(in_space(where[:, :3])[:, :d], where[:, :3])
    assert in_space(where[:, :3])[:, d:].tolist() == [[0.0] * max(0, 3 - d)] * 5


def levels_of(data, tables):
    table, n_points = data.draw(tables())
    where = np.random.default_rng(1).normal(size=(len(table), 2))
    rows = distinct_rows(table)
    graph = facet_graph(rows, n_points)
    return table, n_points, where, graph, element_level(rows, graph, where)


@ROUND
@given(data=st.data())
def test_a_cluster_is_the_sum_of_its_elements_on_every_level(data, tables):
    table, n_points, where, graph, level = levels_of(data, tables)
    cluster = np.arange(len(table))
    for most in data.draw(st.lists(st.integers(2, 7), min_size=1, max_size=3)):
        level, label = coarsen(level, n_points, most)
        cluster = label[cluster]
        count = level.weight.size
        assert sorted(set(cluster.tolist())) == list(range(count))
        assert level.weight.tolist() == np.bincount(cluster, minlength=count).tolist()
        points = rows_of(level.point_offset, level.points)
        beside = rows_of(level.offset, level.neighbours)
        facets = rows_of(level.offset, level.facets)
        holders = [
            {c for c in range(count) if t in table[cluster == c]} for t in range(n_points)
        ]
        for c in range(count):
            own = np.flatnonzero(cluster == c)
            shared = {t for t in range(n_points) if c in holders[t] and len(holders[t]) > 1}
            assert sorted(points[c]) == sorted(shared)
            found = {}
            for i in own:
                for j in graph.index[graph.offset[i] : graph.offset[i + 1]]:
                    if cluster[j] != c:
                        found[cluster[j]] = found.get(cluster[j], 0) + 1
            assert dict(zip(beside[c], facets[c], strict=True)) == found
            assert level.example[c] in own
            np.testing.assert_allclose(level.place[c, :2], where[own].mean(axis=0))


@ROUND
@given(data=st.data())
def test_clusters_keep_their_bound(data, tables):
    _, n_points, _, _, level = levels_of(data, tables)
    for most in (2, 5):
        level, _ = coarsen(level, n_points, most)
        assert level.weight.max(initial=0) <= most


@pytest.mark.parametrize("cap", [1, 16, 17, 64, 256, 1024, 100_000])
def test_the_largest_clusters_are_a_sixth_of_a_block(cap):
    sizes = cluster_sizes(cap, SearchTuning())
    assert sizes == sorted(set(sizes))
    assert all(size >= 3 for size in sizes)
    assert not sizes or abs(sizes[-1] - cap / 6.4) <= 0.5
    assert bool(sizes) == (cap > 17)


def test_runs_give_the_same_clusters_on_any_number_of_threads(quad_edges, monkeypatch):
    monkeypatch.setattr(levels, "RUN", 500)
    table, n_points, where = quad_edges(60, 50)
    fine = element_level(table, facet_graph(table, n_points), where)
    found, threads = [], get_num_threads()
    for count in (threads, 1):
        set_num_threads(count)
        found.append(coarsen(fine, n_points, 8))
    set_num_threads(threads)
    (level, label), (again, same) = found
    assert (label == same).all()
    assert all((a == b).all() for a, b in zip(level, again, strict=True))
    assert level.weight.sum() == len(table)
    assert level.weight.mean() > 3


def test_clusters_stay_where_their_elements_are_moved_to(quad_edges):
    table, n_points, where = quad_edges(40, 30)
    weight = np.random.default_rng(0).integers(1, 5, len(table)).astype(np.int32)
    found = [element_level(table, facet_graph(table, n_points), where, weight)]
    labels = []
    for most in (8, 30):
        level, label = coarsen(found[-1], n_points, most)
        found.append(level)
        labels.append(label)
    other = read_only(np.random.default_rng(1).normal(size=(len(table), 3)))
    moved = in_other_places(found, labels, other)
    cluster = np.arange(len(table))
    assert moved[0] == found[0]._replace(place=other)
    for level, label in zip(moved[1:], labels, strict=True):
        cluster = label[cluster]
        for c in range(0, level.weight.size, 7):
            own = cluster == c
            expected = np.average(other[own], axis=0, weights=weight[own])
            assert np.allclose(level.place[c], expected)
    for before, level in zip(found, moved, strict=True):
        assert all(a is b for a, b in zip(before[:6], level[:6], strict=True))


@pytest.mark.parametrize("least", [10, 10_000])
def test_places_of_clusters_tell_their_distances(quad_edges, monkeypatch, least):
    # of few clusters, distances are taken between these; of many, between clusters of them
    monkeypatch.setattr(levels, "STOP_BELOW", least)
    table, n_points, where = quad_edges(40, 30)
    elements = element_level(table, facet_graph(table, n_points), where)
    level, label = coarsen(elements, n_points, 8)
    place = places_of_clusters(level)
    assert place.shape == (level.weight.size, 3)
    pairs = np.random.default_rng(0).integers(0, level.weight.size, (2, 500))
    real, found = (
        np.linalg.norm(p[pairs[0]] - p[pairs[1]], axis=1) for p in (level.place, place)
    )
    assert np.corrcoef(real, found)[0, 1] > 0.9
    everywhere = smoothed_places([elements, level], [label], place)
    assert everywhere.shape == (len(table), 3)
    near = np.linalg.norm(everywhere - place[label], axis=1)
    assert near.mean() < 0.1 * found.mean()
