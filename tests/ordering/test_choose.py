import re
from dataclasses import replace

import numpy as np
import pytest

from meshprep.mesh.incidence import point_graph
from meshprep.ordering import METHODS, LocalityProblem, locality_order
from meshprep.registry.orders import tried_by_auto
from meshprep_runtime import MeshprepError

from .graphs import slow_envelope


def triangles(n, seed=None):
    """n x n squares cut in two; the points shuffled when there is a seed."""
    corner = np.arange((n + 1) ** 2).reshape(n + 1, n + 1)
    a, b, c, d = (
        x.ravel()
        for x in (corner[:-1, :-1], corner[:-1, 1:], corner[1:, 1:], corner[1:, :-1])
    )
    table = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)]).astype(
        np.int32
    )
    where = np.stack(np.divmod(np.arange((n + 1) ** 2), n + 1), 1).astype(float)
    if seed is None:
        return LocalityProblem(table, (n + 1) ** 2, where)
    number = np.random.default_rng(seed).permutation((n + 1) ** 2).astype(np.int32)
    moved = np.empty_like(where)
    moved[number] = where
    return LocalityProblem(number[table], (n + 1) ** 2, moved)


def figures_of(found):
    return found.bandwidth, found.profile


@pytest.mark.parametrize("method", [name for name in METHODS if name != "none"])
def test_a_shuffled_mesh_gains(method):
    problem = triangles(12, seed=1)
    found = locality_order(problem, method)
    assert found.applied
    place = found.ordering.old_to_new
    assert figures_of(found.before) == slow_envelope(problem.graph)
    assert figures_of(found.after) == slow_envelope(problem.graph, place)
    assert found.after.cost < found.before.cost
    assert re.fullmatch(
        rf"{method} gains: bandwidth \d+ -> \d+, profile [\d,]+ -> [\d,]+, lines \d+ -> \d+",
        found.reason,
    )


def test_gps_finds_the_narrow_side_of_a_strip():
    problem = triangles(12, seed=1)
    assert locality_order(problem, "gps").after.bandwidth <= 25


def test_an_order_that_does_not_gain_is_not_applied():
    problem = replace(triangles(12), target="cpu")
    found = locality_order(problem, "hilbert")
    assert not found.applied
    assert found.ordering.is_identity
    # row by row: 12 steps back of 1, then in each of 12 rows one of 13 and twelve of 14
    assert figures_of(found.before) == (14, 12 + 12 * (13 + 12 * 14))
    assert found.after.cost >= found.before.cost
    assert found.reason.startswith(
        "the order of the input is kept, hilbert would not gain: band"
    )


def test_none_keeps_the_order():
    found = locality_order(triangles(3, seed=0), "none")
    assert (found.applied, found.ordering.is_identity) == (False, True)
    assert found.before == found.after
    assert METHODS["none"].function(triangles(1)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("method", list(METHODS))
def test_no_elements_isolated_points_and_no_points(method):
    for n in (0, 3):
        problem = LocalityProblem(np.empty((0, 2), np.int32), n, np.zeros((n, 2)))
        found = locality_order(problem, method)
        assert not found.applied
        assert found.ordering.new_to_old.tolist() == list(range(n))


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method_gives_an_int32_permutation(method):
    problem = triangles(4, seed=2)
    order = METHODS[method].function(problem)
    assert order.dtype == np.int32
    assert sorted(order.tolist()) == list(range(25))


def test_unknown_method():
    told = f"'king' is unknown: use auto, {', '.join(METHODS)}"
    with pytest.raises(MeshprepError, match=told):
        locality_order(triangles(1), "king")


def test_the_graph_is_made_once_and_is_the_clique_graph():
    problem = triangles(2)
    expected = point_graph(problem.table, 9)
    assert problem.graph is problem.graph
    assert problem.graph.index.tolist() == expected.index.tolist()


@pytest.mark.parametrize(
    ("table", "n", "where", "told"),
    [
        (np.zeros(3, np.int32), 1, None, "must be int32 of shape"),
        (np.zeros((1, 3), np.int64), 1, None, "must be int32 of shape"),
        (np.array([[0, 3]], np.int32), 3, None, "names points 0..3, but there are 3"),
        (np.array([[-1, 0]], np.int32), 3, None, "names points -1..0"),
        (
            np.array([[0, 1]], np.int32),
            3,
            np.zeros((2, 2)),
            r"shape \(2, 2\), must be \(3, d\)",
        ),
    ],
)
def test_a_problem_that_does_not_fit_is_refused(table, n, where, told):
    with pytest.raises(MeshprepError, match=told):
        LocalityProblem(table, n, where)


def test_auto_keeps_the_narrowest_for_the_cpu():
    problem = replace(triangles(12, seed=1), target="cpu")
    found = locality_order(problem, "auto")
    alone = {name: locality_order(problem, name) for name in tried_by_auto("cpu")}
    assert found.applied
    assert found.after.cost == min(one.after.cost for one in alone.values())
    assert found.method == found.candidates[0].method
    assert (found.ordering.new_to_old == alone[found.method].ordering.new_to_old).all()
    assert {c.method: c.figures for c in found.candidates} == {
        name: one.after for name, one in alone.items()
    }
    assert all(c.seconds >= 0 and not c.note for c in found.candidates)


def test_auto_keeps_the_fewest_lines_for_the_gpu():
    problem = replace(triangles(60, seed=1), block_size=128, point_bytes=64)
    found = locality_order(problem, "auto")
    lines = {c.method: c.figures.lines for c in found.candidates}
    assert found.after.lines == min(lines.values()) < found.before.lines
    assert found.method == "hilbert"
    assert lines["gps"] > 1.1 * lines["hilbert"]


@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_auto_never_applies_what_is_worse_than_the_input(target):
    problem = replace(triangles(40, seed=1), target=target, block_size=32)
    once = locality_order(problem, "auto").ordering
    moved = once.old_to_new[problem.table]
    second = replace(
        problem,
        table=moved[problem.follow(moved)],
        coordinates=once.apply(problem.coordinates),
    )
    found = locality_order(second, "auto")
    figure = "lines" if target == "gpu" else "cost"
    if found.applied:
        assert getattr(found.after, figure) <= getattr(found.before, figure)
    else:
        assert found.ordering.is_identity
        assert found.reason.startswith("the order of the input is kept")
    best_possible = triangles(12)
    assert not locality_order(replace(best_possible, target="cpu"), "hilbert").applied


def test_auto_tells_what_it_did_not_try():
    problem = triangles(6, seed=3)
    bare = replace(problem, coordinates=None)
    notes = {c.method: c.note for c in locality_order(bare, "auto").candidates}
    assert notes == {
        name: "needs coordinates" if METHODS[name].needs_coordinates else ""
        for name in tried_by_auto("gpu")
    }
    assert notes["hilbert"] == "needs coordinates"
    hurried = locality_order(replace(problem, target="cpu"), "auto", seconds=0.0)
    assert hurried.method == "rcm"
    assert [c.note for c in hurried.candidates[1:]] == ["not tried: 0 seconds were up"] * (
        len(tried_by_auto("cpu")) - 1
    )
    broken = replace(problem, coordinates=np.full((49, 2), np.nan))
    notes = {c.method: c.note for c in locality_order(broken, "auto").candidates}
    assert notes["hilbert"] == "needs finite coordinates"
    many = replace(problem, coordinates=np.zeros((49, 4)))
    notes = {c.method: c.note for c in locality_order(many, "auto").candidates}
    assert notes["hilbert"] == "needs coordinates of three dimensions at most"


@pytest.mark.parametrize("n", [0, 3])
def test_auto_where_there_is_nothing_to_order(n):
    problem = LocalityProblem(np.empty((0, 2), np.int32), n, np.zeros((n, 2)))
    assert not locality_order(problem, "auto").applied
