"""Numbers of a whole text, and how many words its lines have."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray


def numbers(text: bytes, dtype: Any) -> NDArray:
    """All numbers of a text; raises ValueError for words that are none, or too large."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            values = np.fromstring(text, dtype=dtype, sep=" ")
        except DeprecationWarning:
            raise ValueError(dtype) from None
    # NumPy takes the largest one for all beyond
    if values.dtype.kind in "iu" and (values == np.iinfo(values.dtype).max).any():
        raise ValueError(dtype)
    return values


def words_of_lines(text: bytes) -> NDArray[np.int64]:
    """How many words stand in each line. O(bytes)."""
    data = np.frombuffer(text, dtype=np.uint8)
    first = data > ord(" ")
    first[1:] &= data[:-1] <= ord(" ")
    words = np.flatnonzero(first)
    before = np.searchsorted(words, np.flatnonzero(data == ord("\n")))
    return np.diff(before, prepend=0, append=words.size)
