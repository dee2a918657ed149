"""Rows and columns of prescribed values in a matrix, and its load."""

import numpy as np
import pytest
import scipy.sparse

from meshprep_runtime import MeshprepError
from meshprep_runtime.matrix import CsrMatrix, zero_rows_and_columns


@pytest.mark.parametrize("values", [0.0, [3.0, -2.0]])
def test_prescribed_values_are_those_of_the_solution(values):
    rng = np.random.default_rng(0)
    dense = np.triu(rng.random((5, 5)) * (rng.random((5, 5)) < 0.6))
    dense = dense + dense.T + 9 * np.eye(5)
    given = scipy.sparse.csr_array(dense)
    matrix = CsrMatrix(given.indptr, given.indices, given.data)
    load, rows = rng.random(5), [3, 1]
    made, right = zero_rows_and_columns(matrix, load, rows, values)
    solution = np.linalg.solve(made.to_scipy().toarray(), right)
    assert np.array_equal(made.to_scipy().toarray(), made.to_scipy().toarray().T)
    assert solution[rows] == pytest.approx(np.broadcast_to(values, 2))
    free = [0, 2, 4]
    assert (dense @ solution)[free] == pytest.approx(load[free])
    assert np.array_equal(matrix.to_scipy().toarray(), dense)


def test_a_row_without_a_diagonal_cannot_be_prescribed():
    one = np.array([1], np.int32)
    matrix = CsrMatrix(np.array([0, 1, 1], np.int32), one, np.ones(1))
    with pytest.raises(MeshprepError, match="no diagonal entry"):
        zero_rows_and_columns(matrix, np.ones(2), [0])


@pytest.mark.parametrize("rows", [[-1, 1], [0, 2], [0.5]])
def test_rows_that_the_matrix_has_not_cannot_be_prescribed(rows):
    """-1 is what ``row_of`` has for a constrained dof, and not the last row."""
    columns = np.array([0, 1], np.int32)
    matrix = CsrMatrix(np.array([0, 1, 2], np.int32), columns, np.ones(2))
    with pytest.raises(
        MeshprepError, match=r"rows has (a number outside 0..1|indices of dtype)"
    ):
        zero_rows_and_columns(matrix, np.ones(2), rows)


@pytest.mark.parametrize("load", [np.ones(2, np.int64), np.ones((2, 1)), np.ones(3)])
def test_loads_that_cannot_take_what_is_prescribed_are_refused(load):
    columns = np.array([0, 1], np.int32)
    matrix = CsrMatrix(np.array([0, 1, 2], np.int32), columns, np.ones(2))
    with pytest.raises(
        MeshprepError, match=r"load is .*, must be f4 or f8 of shape \(2,\)"
    ):
        zero_rows_and_columns(matrix, load, [0], 0.5)
