import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.ordering import Figures, LocalityProblem, figures
from meshprep_runtime import Ordering

from .graphs import neighbours, slow_envelope, tables


def slow_wavefront(graph, place):
    """At each step, the points not yet behind that have or are a point already reached."""
    n, squares = graph.n_rows, 0
    at = np.argsort(place)
    for i in range(n):
        reached = {int(p) for p in at[: i + 1]}
        front = {q for p in reached for q in [p, *neighbours(graph, p)] if place[q] >= i}
        squares += len(front) ** 2
    return (squares / n) ** 0.5


def slow_lines(table, point_bytes, block_size):
    total = 0
    for begin in range(0, len(table), block_size):
        touched = table[begin : begin + block_size].ravel().tolist()
        total += len({b // 128 for p in touched for b in span(p, point_bytes)})
    return total


def span(p, point_bytes):
    return range(p * point_bytes, (p + 1) * point_bytes)


@given(
    tables(),
    st.sampled_from([8, 24, 200]),
    st.integers(1, 12),
    st.sampled_from(["cpu", "gpu"]),
    st.integers(0, 2**31),
)
@settings(deadline=None, max_examples=effort.examples(100))
def test_against_the_slow_versions(case, point_bytes, block_size, target, seed):
    table, n = case
    problem = LocalityProblem(
        table, n, target=target, block_size=block_size, point_bytes=point_bytes
    )
    ordering = Ordering.from_new_to_old(np.random.default_rng(seed).permutation(n))
    for place in (None, ordering.old_to_new):
        found = figures(problem, place)
        rows = table if place is None else place[table]
        if place is not None:
            key = sorted if target == "gpu" else lambda row: (min(row), max(row))
            order = sorted(range(len(rows)), key=lambda i: key(rows[i].tolist()))
            rows = rows[order]
        where = np.arange(n) if place is None else place
        assert (found.bandwidth, found.profile) == slow_envelope(problem.graph, where)
        assert found.rms_wavefront == pytest.approx(slow_wavefront(problem.graph, where))
        assert found.lines == slow_lines(rows, point_bytes, block_size)


def test_a_chain():
    problem = LocalityProblem(np.array([[0, 1], [1, 2], [2, 3]], np.int32), 4, block_size=1)
    # fronts of 2, 2, 2 and 1 points; every run of one element lies on one line
    assert figures(problem) == Figures(1, 3, (13 / 4) ** 0.5, 3)


def test_no_points():
    assert figures(LocalityProblem(np.empty((0, 3), np.int32), 0)) == Figures(0, 0, 0.0, 0)


def test_the_rows_of_a_map_into_its_own_set_stand_with_their_points():
    ring = np.array([[0, 2], [1, 3], [2, 1], [3, 0]], np.int32)
    problem = LocalityProblem(ring, 4, rows_are_points=True)
    place = np.array([3, 0, 2, 1], np.int32)
    assert problem.follow(place[ring]).tolist() == [1, 3, 2, 0]
