import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.mesh.incidence import point_graph

from .graphs import Envelope, envelope, graph, slow_envelope, tables


def test_a_chain_in_order():
    chain = np.array([[0, 1], [1, 2], [2, 3]], dtype=np.int32)
    assert envelope(chain) == Envelope(bandwidth=1, profile=3)


def test_two_triangles_and_their_reverse():
    # 0 - 1 - 2 all joined, then 1 - 2 - 4; point 3 is unused
    table = np.array([[0, 1, 2], [2, 1, 4]], dtype=np.int32)
    assert envelope(table) == Envelope(bandwidth=3, profile=1 + 2 + 3)
    assert envelope(table, np.arange(5, dtype=np.int32)[::-1]) == Envelope(3, 2 + 3 + 2)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_complete_graph_is_the_worst_case(n):
    table = np.arange(n, dtype=np.int32)[None]
    assert envelope(table) == Envelope(n - 1, n * (n - 1) // 2)


def test_no_elements_no_points_and_loops():
    assert envelope(np.empty((0, 3), dtype=np.int32)) == Envelope(0, 0)
    assert envelope(graph(0, [])) == Envelope(0, 0)
    assert envelope(graph(3, [(1, 1)])) == Envelope(0, 0)
    assert envelope(np.array([[2, 2]], dtype=np.int32)) == Envelope(0, 0)


def test_profile_of_a_large_star_does_not_wrap():
    n = 100_000
    star = np.stack([np.zeros(n - 1, np.int32), np.arange(1, n, dtype=np.int32)], 1)
    found = envelope(star)
    assert found == Envelope(n - 1, n * (n - 1) // 2)
    assert found.cost == (n - 1) * n * (n - 1) // 2


@given(tables(), st.integers(0, 99))
@settings(deadline=None, max_examples=effort.examples(80))
def test_table_graph_and_slow_version_agree(case, seed):
    table, n = case
    place = np.random.default_rng(seed).permutation(n).astype(np.int32)
    points = point_graph(table, n)
    expected = Envelope(*slow_envelope(points, place))
    assert envelope(table, place) == expected
    assert envelope(points, place) == expected
    assert envelope(table) == envelope(points) == Envelope(*slow_envelope(points))
