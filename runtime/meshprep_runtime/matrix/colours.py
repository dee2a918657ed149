"""Colours of the rows of a matrix: rows of one colour do not see each other [R14 Algorithm 6]."""

import numba
import numpy as np
from numpy.typing import NDArray


@numba.njit(cache=True)
def first_fit_rows(row_ptr: NDArray[np.integer], columns: NDArray[np.int32]) -> NDArray[np.int32]:
    """The lowest colour that no neighbour before has, row after row. O(nonzeros)."""
    rows = row_ptr.size - 1
    colour = np.full(rows, -1, np.int32)
    # the last row that a neighbour of which has the colour
    taken_by = np.full(rows + 1, -1, np.int32)
    for i in range(rows):
        for j in range(row_ptr[i], row_ptr[i + 1]):
            if colour[columns[j]] >= 0:
                taken_by[colour[columns[j]]] = i
        c = 0
        while taken_by[c] == i:
            c += 1
        colour[i] = c
    return colour
