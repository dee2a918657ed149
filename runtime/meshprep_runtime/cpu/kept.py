"""Arrays that are kept from call to call, and the check that they are unchanged."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class KeptArrays:
    """Arrays, with the form and the memory that they had when this was made.

    An array that stays the same object may be given other memory (``resize``), another
    shape, dtype or strides, or be made read-only; compiled code that knows its old address
    must not run then. Checking four arrays takes a quarter of a microsecond.

    Parameters
    ----------
    arrays : sequence of numpy.ndarray
    """

    __slots__ = ("_facts", "_hold", "_name", "_objects", "arrays")

    def __init__(self, arrays: Sequence[NDArray[Any]]) -> None:
        # Compiled code is loaded with the first loop that runs.
        from .array_facts import ATTRIBUTE, facts_hold

        # The arrays are kept alive, so that no other object gets their addresses.
        self.arrays = tuple(arrays)
        self._hold = facts_hold()
        self._name = id(ATTRIBUTE)
        self._objects = _addresses(self.arrays)
        self._facts = np.zeros(sum(5 + 2 * a.ndim for a in self.arrays), np.int64)
        self._hold(self._objects, self._facts, self._name, True)

    def are_as_before(self) -> bool:
        """True while all arrays have the same memory and form."""
        return self._hold(self._objects, self._facts, self._name, False)

    def are_in_the_place_of(self, others: Sequence[NDArray[Any]]) -> bool:
        """True for as many other arrays that have the memory and form of these."""
        return self._hold(_addresses(others), self._facts, self._name, False)


def _addresses(arrays: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """The addresses of the Python objects, which CPython's ``id`` gives."""
    return np.array([id(array) for array in arrays], np.int64)
