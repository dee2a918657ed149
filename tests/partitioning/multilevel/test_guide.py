"""Where centroids mislead, nothing pulls: a trial tells, and layers over a ball gain by it.

Where elements are far finer than beside them, a centroid pulls as one that is far, no harder.
"""

import numpy as np
import pytest
from scipy.spatial import ConvexHull, Delaunay

from meshprep.partitioning import BlockProblem, partition
from meshprep.partitioning.connectivity import distinct_rows
from meshprep.partitioning.multilevel.partitioner import geometry_of
from meshprep.partitioning.multilevel.search import Search, misled
from meshprep.partitioning.multilevel.tuning import SearchTuning
from meshprep.partitioning.neighbourhood import facet_graph
from meshprep_runtime.types.maps import read_only


def ball_of_layers(triangles, layers):
    """Wedges in thin layers over a ball: table, number of points, places of the wedges."""
    points = np.random.default_rng(1).normal(size=(triangles // 2, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    surface, n = ConvexHull(points).simplices, len(points)
    wedges = [np.hstack([surface + k * n, surface + (k + 1) * n]) for k in range(layers)]
    places = np.concatenate([points * (1 + 0.015 * k) for k in range(layers + 1)])
    table = np.concatenate(wedges).astype(np.int32)
    return table, len(places), places[table].mean(axis=1)


def test_layers_over_a_ball_are_cut_without_centroids(check_blocks):
    table, n_points, where = ball_of_layers(2_500, 12)
    blocks = partition(BlockProblem(table, n_points, 256, coordinates=where), "blocks")
    check_blocks(blocks, len(table), 256)
    # 26,065 where centroids pull
    assert blocks.notes["loads"] < 25_850


@pytest.mark.parametrize("seed", [0, 1])
def test_a_ball_of_far_finer_tetrahedra_does_not_draw_in_those_around_it(
    check_blocks, seed
):
    random = np.random.default_rng(seed)
    inner = random.normal(size=(750, 3))
    inner *= (
        random.uniform(size=(750, 1)) ** (1 / 3) / np.linalg.norm(inner, axis=1)[:, None]
    )
    points = np.concatenate([random.uniform(size=(750, 3)), 0.5 + 0.62e-4 * inner])
    table = Delaunay(points).simplices.astype(np.int32)
    problem = BlockProblem(table, 1500, 128, coordinates=points[table].mean(axis=1))
    blocks = partition(problem, "blocks")
    check_blocks(blocks, len(table), 128)
    # 3,849 and 3,883 where it does
    assert blocks.notes["loads"] < 3_500


def trial(table, n_points, where, folded):
    """The outcome of a trial on clusters of a search that has just begun."""
    rows = distinct_rows(table)
    graph = facet_graph(rows, n_points)
    ones = np.ones(n_points, np.int32)
    geometry = geometry_of(rows, ones, where, graph).placed()
    search = Search(geometry, graph, -(-len(table) // 64), 64, 0, 1.0)
    todo, labels, blocks = search._begin(0.0)
    (level, phase), block = todo[1], blocks[0][labels[-1]]
    metric, pressure = search._metric(level, phase, block), np.zeros(search.n_blocks)
    if folded:
        place = level.place + 6 * np.sin(level.place[:, [1, 2, 0]])
        level = level._replace(place=read_only(place))
    groups, before = (
        np.arange(search.n_blocks, dtype=np.int32) // (search.n_blocks // 2 + 1),
        block.copy(),
    )
    schedule = search._schedule(phase, 20, False)
    found = misled(
        level, geometry.weight, metric, block, groups, schedule, pressure, SearchTuning()
    )
    assert (block == before).all()
    assert not pressure.any()
    return found


def test_places_that_fold_mislead_and_real_ones_do_not(hex_nodes):
    table, n_points, where = hex_nodes(20)
    where = where + np.random.default_rng(1).uniform(-0.3, 0.3, where.shape)
    assert not trial(table, n_points, where, folded=False)
    assert trial(table, n_points, where, folded=True)
