"""The parts that thread colours are made of, each against a slow version."""

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.colouring.greedy import bit, first_colours, first_fit, lowest
from meshprep.colouring.saturation import saturate
from meshprep.kernels.compiled import from_python
from meshprep.mesh.incidence import elements_of_points, number_points

# Python cannot call helpers as they are.
elements_of_points = from_python(elements_of_points)
number_points = from_python(number_points)
bit = from_python(bit)
first_colours = from_python(first_colours)
lowest = from_python(lowest)
first_fit = from_python(first_fit)
saturate = from_python(saturate)

random_table = st.builds(
    lambda n, k, points, seed: np.random.default_rng(seed).integers(
        0, points, (n, k), dtype=np.int32
    ),
    *(st.integers(1, 60), st.integers(1, 4), st.integers(1, 30), st.integers(0, 10**6)),
)


@pytest.mark.parametrize("i", [0, 1, 7, 8, 31, 32, 63])
def test_words_of_bits(i):
    assert int(bit(i)) == 1 << i
    assert int(first_colours(i + 1)) == (1 << (i + 1)) - 1
    assert lowest(np.uint64((1 << i) | (1 << 63))) == i


@settings(deadline=None, max_examples=effort.examples(100))
@given(random_table)
def test_numbering_of_a_block(table):
    table = table * np.int32(70_000_001 % 65_537)
    points, local = number_points(table)
    assert (points[local] == table).all()
    assert sorted(points.tolist()) == np.unique(table).tolist()
    offset, element = elements_of_points(local, points.size)
    for i, p in enumerate(points):
        on = np.flatnonzero((table == p).any(axis=1))
        assert element[offset[i] : offset[i + 1]].tolist() == on.tolist()


def _slow_first_fit(table: np.ndarray, order: np.ndarray) -> list[int]:
    colour = [-1] * len(table)
    for e in order:
        mine = set(table[e].tolist())
        near = {colour[f] for f in range(len(table)) if mine & set(table[f].tolist())}
        colour[e] = next(c for c in range(len(table) + 1) if c not in near)
    return colour


@settings(deadline=None, max_examples=effort.examples(100))
@given(random_table, st.integers(0, 10**6))
def test_first_fit_is_first_fit_in_the_order_given(table, seed):
    order = np.random.default_rng(seed).permutation(len(table)).astype(np.int32)
    colour = np.full(len(table), -1, np.int32)
    first_fit(table, 30, order, colour, 0)
    assert colour.tolist() == _slow_first_fit(table, order)


@pytest.mark.parametrize("n", [65, 200])
def test_first_fit_in_the_order_given_past_64_colours(n):
    """The element of number 0 waits for the last round."""
    colour = np.full(n, -1, np.int32)
    order = np.arange(n, dtype=np.int32)[::-1].copy()
    first_fit(np.zeros((n, 1), np.int32), 1, order, colour, 0)
    assert colour.tolist() == list(range(n))[::-1]


def test_first_fit_leaves_those_with_a_colour_alone():
    table = np.zeros((3, 1), np.int32)
    colour = np.array([-1, 5, -1], dtype=np.int32)
    first_fit(table, 1, np.arange(3, dtype=np.int32), colour, 64)
    assert colour.tolist() == [64, 5, 65]


@settings(deadline=None, max_examples=effort.examples(100))
@given(random_table, st.integers(0, 59), st.integers(1, 64), st.booleans())
def test_saturation_stays_proper(proper, table, start, palette, vote):
    points, local = number_points(table)
    offset, element = elements_of_points(local, points.size)
    block = np.array([0, len(table)])
    colour = saturate(local, offset, element, start % len(table), palette, vote)
    assert colour.min() >= 0
    assert proper(table, block, colour)
