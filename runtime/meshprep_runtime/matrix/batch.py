"""Entries of all elements at once: sorted once, summed as often as there are new values [K11]."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class BatchSums:
    """Adds up what goes to one place, with an order that is found once.

    Parameters
    ----------
    place : array of integers
        Where each value is added, flat; -1 for one that is left out.
    n_places : int

    Notes
    -----
    O(n log n) when it is made, 4 or 8 bytes a value. Values are summed in the order of ``place``,
    by NumPy: pairwise where many come together.

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
        order = np.argsort(flat, kind="stable")[np.count_nonzero(flat < 0) :]
        # half the bytes to read at every call
        self._order = order.astype(np.int32) if flat.size <= np.iinfo(np.int32).max else order
        there = flat[order]
        new = np.ones(there.size, np.bool_)
        new[1:] = there[1:] != there[:-1]
        self._start = np.flatnonzero(new)
        self._target = there[self._start]
        self._n_places = n_places

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
        """
        ordered = values.reshape(-1).take(self._order)
        total = np.zeros(self._n_places, values.dtype)
        if self._start.size:
            total[self._target] = np.add.reduceat(ordered, self._start)
        return total
