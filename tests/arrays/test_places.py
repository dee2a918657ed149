"""Patterns and places, beside sums of SciPy and of np.add.at."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given as on
from hypothesis import strategies as st

import meshprep
from meshprep import MeshprepError


@st.composite
def contributions(draw):
    """Rows and columns of elements, some of them negative, and the shape."""
    n_rows = draw(st.integers(1, 9))
    n_columns = draw(st.integers(1, 9))
    n = draw(st.integers(0, 12))
    k = draw(st.integers(1, 3))
    width = draw(st.integers(1, 3))
    chance = np.random.default_rng(draw(st.integers(0, 999)))
    rows = chance.integers(-1, n_rows, (n, k))
    columns = chance.integers(-1, n_columns, (n, width))
    return rows, columns, (n_rows, n_columns)


@on(contributions(), st.integers(0, 99))
def test_sums_are_those_of_every_pair(given, seed):
    rows, columns, shape = given
    found = meshprep.places(rows, columns, n_rows=shape[0], n_columns=shape[1])
    values = np.random.default_rng(seed).integers(-9, 9, found.place.shape)
    expected = np.zeros(shape, values.dtype)
    touched = set()
    for e, i, j in np.ndindex(values.shape):
        r, c = rows[e, i], columns[e, j]
        if r >= 0 and c >= 0:
            expected[r, c] += values[e, i, j]
            touched.add((r, c))
    matrix = found.matrix(values)
    assert (matrix.toarray() == expected).all()
    assert found.columns.size == len(touched)
    for r in range(shape[0]):
        row = found.columns[found.row_ptr[r] : found.row_ptr[r + 1]]
        assert (np.diff(row) > 0).all()


@on(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=40))
def test_pairs_one_by_one(pairs):
    rows, columns = np.array(pairs, int).reshape(-1, 2).T
    found = meshprep.places(rows, columns, n_rows=6, n_columns=6)
    values = np.arange(len(pairs)) + 1.0
    expected = sp.coo_array((values, (rows, columns)), shape=(6, 6)).toarray()
    assert (found.matrix(values).toarray() == expected).all()


def test_floats_are_summed_in_their_order():
    table = np.random.default_rng(0).integers(0, 50, (400, 3))
    found = meshprep.places(table)
    values = np.random.default_rng(1).standard_normal(found.place.shape)
    expected = np.zeros(found.columns.size)
    np.add.at(expected, found.place.ravel(), values.ravel())
    assert (found.sums(values) == expected).all()
    assert "3,600 contributions" in repr(found)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"rows": [0, 1]}, "give the column of each contribution, too"),
        ({"rows": [0, 1], "columns": [0]}, r"rows have shape \(2,\), columns \(1,\)"),
        ({"rows": [0.5], "columns": [0]}, "must be whole numbers"),
        ({"rows": [[0, 7]], "n_rows": 7}, "rows name 7, but there are 7 rows"),
    ],
)
def test_what_is_refused(how, said):
    with pytest.raises(MeshprepError, match=said):
        meshprep.places(**how)
    with pytest.raises(MeshprepError, match="must have 4 values"):
        meshprep.places([[0, 1]]).sums(np.zeros(3))
