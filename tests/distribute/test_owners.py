"""Parts of the leading set: sizes, shares, short borders, the same for any number of threads."""

import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import get_num_threads, set_num_threads

from meshprep.distribute.owners import cuts
from meshprep.distribute.owners import search as own_cut
from meshprep.distribute.owners.cuts import CutProblem, _rows_at, owners_of_leading_set
from meshprep.distribute.owners.search import (
    _renumbered,
    part_of_element,
    within_caps,
)
from meshprep.distribute.owners.sizes import part_sizes
from meshprep.distribute.subject import SplitSubject, subject_of_mesh
from meshprep.io.generate import generate
from meshprep.loops.request_maps import plan_request_maps
from meshprep.loops.requests import LoopSpec, simple_request
from meshprep.mesh.geometry import centroids
from meshprep.mesh.incidence import Csr, point_graph
from meshprep.partitioning.multilevel.initial import geometry
from meshprep.partitioning.multilevel.initial.bisection import point_positions
from meshprep.partitioning.multilevel.search import Search
from meshprep.partitioning.neighbourhood import facet_graph
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.loops import Arg, Loop
from meshprep_runtime.types.maps import SetMap


def cells_of(kind, **options):
    """The facet graph, nodes and centroids of the cells of a generated mesh."""
    mesh = generate(kind, **options)
    table = mesh.map("cells->nodes").table
    return facet_graph(table, mesh.size("nodes")), table, centroids(mesh, "cells")


@pytest.fixture(scope="module")
def tetrahedra():
    return cells_of("delaunay3d", cells=12_000, seed=3)


def figures(graph, table, part, parts):
    """Cut facets and node copies, counted by sets."""
    row = np.repeat(np.arange(graph.n_rows), np.diff(graph.offset))
    cut = int((part[row] != part[graph.index]).sum()) // 2
    pairs = {(int(p), int(part[i])) for i, points in enumerate(table) for p in points}
    return cut, len(pairs) - len(np.unique(table))


def bisected(where, part, parts):
    """Halves along the longest axis, again and again: what anybody writes first."""
    found, waiting = np.zeros(len(where), np.int32), [(np.arange(len(where)), 0, parts)]
    while waiting:
        members, first, count = waiting.pop()
        if count == 1:
            found[members] = first
            continue
        axis = np.ptp(where[members], axis=0).argmax()
        members = members[np.argsort(where[members, axis])]
        middle = len(members) * (count // 2) // count
        waiting.append((members[:middle], first, count // 2))
        waiting.append((members[middle:], first + count // 2, count - count // 2))
    return found


@pytest.mark.parametrize("parts", [2, 7, 40])
def test_parts_are_even_and_their_borders_shorter_than_those_of_bisection(
    tetrahedra, parts
):
    graph, table, where = tetrahedra
    part = part_of_element(graph, parts, table=table, coordinates=where)
    sizes = np.bincount(part, minlength=parts)
    assert sizes.size == parts
    assert sizes.min() > 0
    assert sizes.max() <= 1.03 * len(table) / parts
    cut, copies = figures(graph, table, part, parts)
    plain_cut, plain_copies = figures(graph, table, bisected(where, part, parts), parts)
    assert cut < 0.93 * plain_cut
    assert copies < 0.88 * plain_copies


def test_without_coordinates_or_nodes_borders_are_nearly_as_short(tetrahedra):
    graph, table, where = tetrahedra
    best = figures(
        graph, table, part_of_element(graph, 12, table=table, coordinates=where), 12
    )
    for known in ({"coordinates": where}, {"table": table}, {}):
        part = part_of_element(graph, 12, **known)
        assert np.bincount(part).max() <= 1.03 * len(table) / 12
        cut, copies = figures(graph, table, part, 12)
        assert cut < 1.12 * best[0], known
        assert copies < 1.15 * best[1], known


def test_a_grid_is_cut_along_its_lines():
    graph, table, where = cells_of(
        "box", nx=16, ny=16, nz=16, type="hexahedron", shuffle=True
    )
    part = part_of_element(graph, 8, table=table, coordinates=where)
    cut, _ = figures(graph, table, part, 8)
    assert cut <= 1.02 * 3 * 16 * 16


@pytest.mark.parametrize(
    "shares", [[1, 4.2], [0.001, 0.999], [1, 1, 1, 5, 5, 5, 5], range(1, 21)]
)
def test_parts_hold_their_shares(tetrahedra, shares):
    graph, table, where = tetrahedra
    shares = np.array(shares, np.float64)
    part = part_of_element(
        graph, len(shares), table=table, coordinates=where, shares=shares
    )
    target = len(table) * shares / shares.sum()
    sizes = np.bincount(part, minlength=len(shares))
    assert (sizes <= np.maximum(1.03 * target, np.ceil(target))).all()
    assert (sizes >= np.minimum(0.9 * target, target - 2)).all()


def test_parts_hold_even_weights(tetrahedra):
    graph, table, where = tetrahedra
    weights = np.where(where[:, 0] < 0.5, 5, 1)
    part = part_of_element(graph, 9, table=table, coordinates=where, weights=weights)
    of_part = np.bincount(part, weights)
    assert of_part.max() <= 1.03 * of_part.mean()
    assert np.bincount(part).max() > 2 * np.bincount(part).min()
    fractions = part_of_element(
        graph, 9, table=table, coordinates=where, weights=weights / 7
    )
    of_part = np.bincount(fractions, weights)
    assert of_part.max() <= 1.031 * of_part.mean()


def test_a_lower_tolerance_holds(tetrahedra):
    graph, table, where = tetrahedra
    part = part_of_element(graph, 6, table=table, coordinates=where, tolerance=1.0)
    assert np.bincount(part).max() <= -(-len(table) // 6)


def test_the_parts_do_not_depend_on_the_number_of_threads():
    graph, table, where = cells_of("delaunay2d", cells=45_000, seed=1)
    found, threads = [], get_num_threads()
    try:
        for count in (threads, 1):
            set_num_threads(count)
            found.append(part_of_element(graph, 40, table=table, coordinates=where, seed=5))
    finally:
        set_num_threads(threads)
    assert (found[0] == found[1]).all()
    other = part_of_element(graph, 40, table=table, coordinates=where, seed=6)
    assert (found[0] != other).any()


def test_a_mesh_in_pieces_is_cut_evenly(tetrahedra):
    graph, table, where = tetrahedra
    n, pairs = len(table), len(graph.index)
    twice = Csr(
        np.concatenate([graph.offset, graph.offset[1:] + pairs]),
        np.concatenate([graph.index, graph.index + n]).astype(np.int32),
    )
    tables = np.concatenate([table, table + table.max() + 1]).astype(np.int32)
    places = np.concatenate([where, where + np.array([5.0, 0.0, 0.0])])
    for known in (places, None):
        part = part_of_element(twice, 3, table=tables, coordinates=known)
        assert np.bincount(part, minlength=3).max() <= 1.03 * 2 * n / 3
        halves = part_of_element(twice, 2, table=tables, coordinates=known)
        assert figures(twice, tables, halves, 2) == (0, 0)


def path_graph(n):
    """Elements in a row."""
    ends = np.clip(np.arange(n)[:, None] + [-1, 1], 0, n - 1)
    rows = [[j for j in row if j != i] for i, row in enumerate(ends)]
    offset = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
    return Csr(offset, np.array([j for r in rows for j in r], np.int32))


@given(
    n=st.integers(0, 30),
    shares=st.lists(st.sampled_from([0.0, 0.001, 0.5, 1.0, 3.0]), min_size=1, max_size=40),
    known=st.booleans(),
)
def test_few_elements_and_many_parts(n, shares, known):
    if not any(shares):
        shares[0] = 1.0
    where = np.arange(n, dtype=np.float64)[:, None] if known else None
    part = part_of_element(path_graph(n), len(shares), coordinates=where, shares=shares)
    assert part.shape == (n,)
    assert part.dtype == np.int32
    sizes = np.bincount(part, minlength=len(shares))
    assert sizes.size == len(shares)
    wanted = np.array(shares)
    assert not sizes[wanted == 0].any()
    if np.count_nonzero(wanted) <= n:
        assert (sizes[wanted > 0] > 0).all()
        target = n * wanted / wanted.sum()
        # rounded as the caps are
        assert (sizes <= np.maximum(1.03 * target + 1e-6, np.ceil(target - 1e-6))).all()
    else:
        assert sizes.max(initial=0) <= 1
        assert n == 0 or wanted[sizes == 0].max(initial=0) <= wanted[sizes > 0].min()


@given(data=st.data())
def test_no_part_is_over_its_cap(data):
    n, parts = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 6))
    weights = data.draw(st.lists(st.integers(1, 5), min_size=n, max_size=n))
    sizes = part_sizes(n, min(parts, n), weights, None, 1.0).sizes
    part = np.array(
        data.draw(st.lists(st.integers(0, sizes.cap.size - 1), min_size=n, max_size=n))
    )
    found = within_caps(path_graph(n), part.astype(np.int32), sizes)
    before = np.bincount(part, weights, sizes.cap.size)
    after = np.bincount(found, weights, sizes.cap.size)
    assert (after <= sizes.cap).all()
    kept = np.isin(part, np.flatnonzero(before <= sizes.cap))
    assert (found[kept] == part[kept]).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"parts": 0}, "0 parts"),
        ({"shares": [1, -1]}, "part 1 has -1.0"),
        ({"shares": [0, 0]}, "all shares are 0"),
        ({"shares": [1, 2, 3]}, "shares have shape (3,)"),
        ({"weights": [1, 2]}, "weights have shape (2,)"),
        ({"weights": [1, 2, np.nan, 1]}, "element 2 has nan"),
        ({"tolerance": 0.9}, "tolerance is 0.9"),
        ({"coordinates": np.zeros((3, 2))}, "coordinates have shape (3, 2)"),
        ({"coordinates": np.full((4, 2), np.inf)}, "element 0 are not finite"),
        ({"table": np.zeros((4, 2))}, "dtype float64"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_line(change, words):
    given_ = {"parts": 2} | change
    with pytest.raises(
        MeshprepError, match=words.replace("(", r"\(").replace(")", r"\)")
    ) as raised:
        part_of_element(path_graph(4), given_.pop("parts"), **given_)
    assert "\n" not in str(raised.value)


@given(seed=st.integers(0, 10**6))
def test_rows_at_elements_and_neighbours_in_another_order(seed):
    rng = np.random.default_rng(seed)
    table, n = rng.integers(0, 9, (int(rng.integers(0, 20)), 2)).astype(np.int32), 9
    rows = [[r for r, row in enumerate(table) for e in row if e == i] for i in range(n)]
    found = _rows_at(table, n)
    assert [[r for r in row if r >= 0] for row in found.tolist()] == rows
    assert found.shape == (n, max(map(len, rows)))
    graph, order = point_graph(table, n), rng.permutation(n).astype(np.int32)
    place = np.argsort(order)
    again = _renumbered(graph, order)
    for i, old in enumerate(order):
        row = graph.index[graph.offset[old] : graph.offset[old + 1]]
        assert (
            again.index[again.offset[i] : again.offset[i + 1]].tolist()
            == place[row].tolist()
        )


def test_the_search_has_the_memory_of_the_graph_and_the_table_it_came_with(monkeypatch):
    mesh = generate("delaunay2d", cells=500, seed=2)
    requests = [simple_request("edges->cells")]
    subject = subject_of_mesh(mesh, *plan_request_maps(mesh, requests))
    came, held = [], []

    def followed(make):
        def made(*arguments):
            found = make(*arguments)
            came.append(weakref.ref(found))
            return found

        return made

    def found(search, sizes):
        held.extend(one() for one in came)
        return np.zeros(search.graph.n_rows, np.int32)

    monkeypatch.setattr(cuts, "point_graph", followed(point_graph))
    monkeypatch.setattr(cuts, "_rows_at", followed(_rows_at))
    monkeypatch.setattr(own_cut, "_search_parts", found)
    owners_of_leading_set(CutProblem(subject, np.full(2, 0.5)), "annealed")
    assert held == [None, None]


def test_a_lean_search_finds_the_same_parts_with_less_memory(tetrahedra, monkeypatch):
    graph, _, where = tetrahedra
    waiting, placed, found = [], [], {}
    came, held, tables = [], [], []

    def facets(graph):
        table = usual_facets(graph)
        came.append(weakref.ref(table))
        return table

    def groupings(search, todo, blocks, pressure):
        held.append(came[-1]() is not None)
        # arrays without strides have no memory
        waiting.append([level.weight.strides[0] for level, _ in todo])
        return usual(search, todo, blocks, pressure)

    def examples(search, level):
        tables.append(search.geometry.table.size)
        return usual_examples(search, level)

    def positions(table, n_points, coordinates):
        placed.append(n_points)
        return point_positions(table, n_points, coordinates)

    def searched(lean):
        return lambda *given, **named: Search(*given, **{**named, "lean": lean})

    usual, usual_facets = Search._groupings, own_cut._facets_as_points
    usual_examples = Search._examples
    monkeypatch.setattr(Search, "_examples", examples)
    monkeypatch.setattr(own_cut, "_facets_as_points", facets)
    monkeypatch.setattr(Search, "_groupings", groupings)
    monkeypatch.setattr(geometry, "point_positions", positions)
    for lean in (False, True):
        waiting.clear()
        placed.clear()
        tables.clear()
        held.clear()
        monkeypatch.setattr(own_cut, "Search", searched(lean))
        found[lean] = part_of_element(graph, 7, coordinates=where)
    assert (found[True] == found[False]).all()
    assert waiting[0] == [4] * (len(waiting[0]) - 2) + [0, 4]
    assert all(0 not in one for one in waiting[-2:])
    assert not any(held)
    assert len(tables) > 3
    assert not any(tables)
    assert max(placed) < graph.index.size / 4


@pytest.mark.parametrize(
    ("kind", "options", "loops", "most"),
    [
        ("delaunay3d", {"cells": 8000}, ["faces->cells", "cells->nodes"], 1.03),
        ("delaunay2d", {"cells": 8000}, ["edges->cells"], 1.03),
        ("delaunay3d", {"cells": 20_000}, ["cells->nodes"], 1.03),
        (
            "box",
            {"nx": 18, "ny": 18, "nz": 18, "type": "hexahedron"},
            ["cells->nodes"],
            0.9,
        ),
        (
            "mixed3d",
            {"nx": 14, "ny": 14, "nz": 14, "shuffle": True},
            ["faces->cells"],
            1.05,
        ),
    ],
)
@pytest.mark.parametrize("parts", [5, 16])
def test_fewer_rows_of_the_leading_map_are_cut_than_by_metis(
    kind, options, loops, most, parts
):
    mesh = generate(kind, seed=2, **options)
    requests = [simple_request(one) for one in loops]
    subject = subject_of_mesh(mesh, *plan_request_maps(mesh, requests))
    problem = CutProblem(subject, np.full(parts, 1 / parts))
    copies = {}
    for cut in ("annealed", "metis"):
        owner = owners_of_leading_set(problem, cut)
        assert np.bincount(owner, minlength=parts).max() <= 1.035 * problem.size / parts
        rows = np.sort(owner[subject.leading_map.table], axis=1)
        copies[cut] = np.count_nonzero(np.diff(rows, axis=1))
    assert copies["annealed"] <= most * copies["metis"]


@pytest.mark.parametrize("n", [500, 600, 777])
def test_shares_reach_the_search_and_a_high_degree_is_no_trouble(n):
    # a hub: one node that all cells of a fan have, so that no distance tells the others apart
    fan = np.stack([np.zeros(n), np.arange(1, n + 1), np.arange(1, n + 1) % n + 1], 1)
    loop = LoopSpec(
        Loop("flux", "cells", (Arg("x", "inc", 1, "f8", "cells->nodes", (0, 1, 2)),))
    )
    subject = SplitSubject(
        {"cells": n, "nodes": n + 1},
        {"cells->nodes": SetMap("cells->nodes", "cells", "nodes", fan.astype(np.int32))},
        (loop,),
    )
    owner = owners_of_leading_set(CutProblem(subject, np.array([0.25, 0.75])), "annealed")
    assert np.bincount(owner)[0] == pytest.approx((n + 1) / 4, rel=0.1)
    rows = owner[fan.astype(int)[:, 1:]]
    assert np.count_nonzero(rows[:, 0] != rows[:, 1]) == 2
