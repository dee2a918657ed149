from dataclasses import replace

import numpy as np
import pytest

from meshprep.io.generate import generate
from meshprep.partitioning.multilevel.coarsening.levels import element_level
from meshprep.partitioning.multilevel.refinement.annealing import in_two, phases
from meshprep.partitioning.multilevel.tuning import GROUP_SIZE, PRESETS, Phase, SearchTuning
from meshprep.partitioning.neighbourhood import facet_graph
from meshprep.topology import derive


def elements_of(kind, loop):
    """The level of the elements of a loop."""
    mesh = derive(generate(kind, cells=400, seed=1), [loop])
    known = mesh.map(loop)
    n_points = mesh.sets[known.to_set].size
    graph = facet_graph(known.table, n_points)
    return element_level(known.table, graph, np.zeros((len(known.table), 1)))


@pytest.mark.parametrize(
    ("kind", "loop", "d", "wanted"),
    [
        ("delaunay2d", "edges->cells", 2, SearchTuning().plane_edges),
        ("delaunay2d", "edges->nodes", 2, SearchTuning().plane_elements),
        ("delaunay2d", "cells->nodes", 2, SearchTuning().plane_elements),
        ("delaunay3d", "faces->cells", 3, SearchTuning().elements),
    ],
)
def test_only_edges_between_cells_of_a_plane_are_annealed_cooler(kind, loop, d, wanted):
    ((_, phase),) = phases([elements_of(kind, loop)], d, SearchTuning(), 100)
    assert phase == wanted


@pytest.mark.parametrize(
    ("d", "n_blocks", "times"),
    [(2, 400, 1.0), (2, 1600, 4**0.3), (2, 10**6, 2.0), (3, 10**6, 1.0)],
)
def test_many_blocks_of_a_plane_get_more_sweeps_up_to_a_limit(d, n_blocks, times):
    level = elements_of("delaunay2d", "cells->nodes")
    usual, more = (
        [phase.sweeps for _, phase in phases([level] * 4, d, SearchTuning(), n)]
        for n in (400, n_blocks)
    )
    assert more == pytest.approx([times * sweeps for sweeps in usual])


@pytest.mark.parametrize(("count", "cooler"), [(1, 0.75**2), (2, 0.75), (3, 1.0)])
def test_fewer_levels_of_clusters_are_annealed_cooler(count, cooler):
    level = elements_of("delaunay3d", "cells->nodes")
    found = [
        phase.temperature
        for _, phase in phases([level] * (count + 1), 3, SearchTuning(), 100)
    ][:-1]
    wanted = [phase.temperature for phase in SearchTuning().clusters[:count]]
    assert np.array(found) == pytest.approx(cooler * np.array(wanted))


def of_long_search(level, d, n_blocks):
    """The power of the effort by which each phase of a long search has more sweeps."""
    usual, long = (
        np.array(
            [
                phase.sweeps
                for _, phase in phases([level] * 4, d, SearchTuning.of(effort), n_blocks)
            ]
        )
        for effort in (1.0, 8.0)
    )
    return 1.0 + np.log(long / usual) / np.log(8.0)


@pytest.mark.parametrize(
    ("n_blocks", "points", "powers"),
    [
        (100, 4, (0.9, 1.27)),
        (800, 4, (0.9, 1.27 + 0.067 * np.log(2))),
        (10**6, 4, (0.9, 1.4)),
        (100, 2, (0.9, 1.27)),
        (100, 8, (0.9 - 0.48 * np.log(2), 1.27 - 0.48 * np.log(2))),
        (100, 64, (0.5, 0.5)),
    ],
)
def test_a_long_search_in_space_sweeps_more_where_that_gains_and_is_cheap(
    n_blocks, points, powers
):
    level = elements_of("delaunay3d", "cells->nodes")
    level = level._replace(points=np.resize(level.points, points * level.weight.size))
    assert of_long_search(level, 3, n_blocks) == pytest.approx(np.repeat(powers, 2))


def test_the_end_of_a_phase_begins_where_the_first_part_of_it_would_have_come_to():
    level = elements_of("delaunay2d", "cells->nodes")
    phase = Phase(
        sweeps=40,
        groupings=2,
        settled=0.9,
        temperature=(1.0, 0.5),
        facet=0.3,
        excess=(0.1, 0.0),
        pull=(0.4, 0.0),
        over=(1.0, 3.0),
        rate=0.4,
    )
    first, last = in_two(level, phase, level, SearchTuning())
    assert first == (level, replace(phase, sweeps=24))
    begun = [
        last[1].sweeps,
        *last[1].temperature,
        *last[1].excess,
        *last[1].pull,
        *last[1].over,
    ]
    assert begun == pytest.approx([12, 0.65, 0.5, 0.03, 0.0, 0.12, 0.0, 2.4, 3.0])
    assert (last[1].groupings, last[1].facet, last[1].rate) == (1, 0.3, 0.4)


@pytest.mark.parametrize(
    ("d", "size", "powers"),
    [
        (2, 256, (0.85, 0.85)),
        (2, 1024, (0.85 - 0.1 * np.log(4),) * 2),
        (3, 100, (0.9, 1.27)),
        (3, 1024, (0.9 - 0.2 * np.log(4), 1.27 - 0.2 * np.log(4))),
        (3, 10**5, (0.5, 0.5)),
    ],
)
def test_a_long_search_sweeps_large_blocks_less(d, size, powers):
    level = elements_of("delaunay3d", "cells->nodes")
    level = level._replace(weight=np.ones(100 * size, np.int32))
    level = level._replace(points=np.zeros(400 * size, np.int32))
    assert of_long_search(level, d, 100) == pytest.approx(np.repeat(powers, 2))


def test_only_short_searches_in_space_have_larger_groups():
    level = elements_of("delaunay3d", "cells->nodes")
    for d, effort, larger in [(3, 0.3, True), (3, 1.0, False), (2, 0.3, False)]:
        found = {
            phase.group for _, phase in phases([level] * 4, d, SearchTuning.of(effort), 100)
        }
        assert all((group > GROUP_SIZE) == larger for group in found)


@pytest.mark.parametrize(
    ("effort", "preset"),
    [(0.01, "fast"), (0.3, "fast"), (1.0, "default"), (3.9, "default"), (4.0, "strong")],
)
def test_any_effort_is_searched_like_the_preset_of_its_range(effort, preset):
    assert SearchTuning.of(effort) == replace(PRESETS[preset], effort=effort)
    assert SearchTuning.of(PRESETS[preset].effort) == PRESETS[preset]
