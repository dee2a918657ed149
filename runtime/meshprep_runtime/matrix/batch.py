"""Entries of all elements at once: sorted once, summed as often as there are new values [K11]."""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError

# In NumPy's letters.
DTYPES = "?bhilqBHILQfdFD"


class BatchSums:
    """Adds up what goes to one place, with an order that is found once.

    Parameters
    ----------
    place : array of integers
        Where each value is added, flat; -1 for one that is left out.
    n_places : int

    Raises
    ------
    MeshprepError
        For a place that is no whole number from -1 to ``n_places - 1``.

    Notes
    -----
    O(n log n) when it is made, 4 or 8 bytes a value. Values are summed in the order of ``place``,
    on one thread; numba compiles for each dtype at the first call, and keeps it on disk.

    Examples
    --------
    >>> import numpy as np
    >>> from meshprep_runtime.matrix import BatchSums
    >>> sums = BatchSums(np.array([[2, 0], [-1, 2]]), 4)
    >>> sums(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [2.0, 0.0, 5.0, 0.0]
    """

    def __init__(self, place: NDArray[np.integer], n_places: int) -> None:
        flat = place.reshape(-1)
        whole = flat.dtype.kind in "iu" or not flat.size
        if not whole or (flat.size and not -1 <= int(flat.min()) <= int(flat.max()) < n_places):
            raise MeshprepError(f"BatchSums: places must be whole numbers in -1..{n_places - 1}")
        self._size = flat.size
        left_out = np.count_nonzero(flat < 0)
        order = np.argsort(flat, kind="stable")[left_out:]
        # half the bytes to read at every call
        self._order = order.astype(np.int32) if flat.size <= np.iinfo(np.int32).max else order
        # those that are left out come first
        count = np.bincount(flat.astype(np.int64) + 1, minlength=n_places + 1)
        self._offset = np.cumsum(count) - left_out

    def __call__(self, values: NDArray[Any]) -> NDArray[Any]:
        """The sums of these values, which lie as ``place`` does.

        Parameters
        ----------
        values : array
            C-contiguous, of the size of ``place``.

        Returns
        -------
        (n_places,) array
            0 where nothing is added. O(n).

        Raises
        ------
        MeshprepError
            For another number of values, and a dtype that numba does not add.
        """
        if values.size != self._size:
            raise MeshprepError(
                f"values has shape {values.shape}, must have {self._size} values: one a place"
            )
        if values.dtype.char not in DTYPES or not values.dtype.isnative:
            raise MeshprepError(
                f"values has dtype {values.dtype}: pass bools, whole numbers, or floats or complex "
                "numbers of single or double precision, in this machine's byte order"
            )
        total = np.zeros(self._offset.size - 1, values.dtype)
        _add_up(self._order, self._offset, np.ascontiguousarray(values).reshape(-1), total)
        return total


@numba.njit(cache=True, nogil=True)
def _add_up(
    order: NDArray[Any], offset: NDArray[Any], values: NDArray[Any], total: NDArray[Any]
) -> None:
    for p in range(total.size):
        found = total[p]
        for i in range(offset[p], offset[p + 1]):
            found += values[order[i]]
        total[p] = found
