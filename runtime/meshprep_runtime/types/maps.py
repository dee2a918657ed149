"""A map between two sets: the table of indices that a loop reaches its data through."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import MeshprepError

# Arrays by the type of their numbers.
Bools = NDArray[np.bool_]
Float32s = NDArray[np.float32]
Float64s = NDArray[np.float64]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
UInt8s = NDArray[np.uint8]
UInt16s = NDArray[np.uint16]
UInt64s = NDArray[np.uint64]

INDEX_LIMIT = 2**31 - 1
CHUNK = 1 << 16


@dataclass(frozen=True, eq=False)
class SetMap:
    """A table from one set to another with a fixed arity [G12 section 2].

    Parameters
    ----------
    name : str
        Usually ``"from->to"``.
    from_set, to_set : str
        Names of the sets.
    table : (n_from, arity) int32
        Indices into the to-set from 0, C-contiguous. Other integer types are converted after a
        range check; nothing wraps.

    Raises
    ------
    MeshprepError
        For a table that is no two-dimensional array of whole numbers within 2^31-1.

    Notes
    -----
    The table is shared where it is int32 already, and becomes read-only.
    """

    name: str
    from_set: str
    to_set: str
    table: NDArray[np.int32]

    def __post_init__(self) -> None:
        refuse_masked(self.table, f"map '{self.name}'")
        table = np.asarray(self.table)
        if table.ndim != 2 or table.dtype.kind not in "iu" or table.shape[1] < 1:
            raise MeshprepError(
                f"map '{self.name}': the table has shape {table.shape} and dtype {table.dtype}, "
                "must be integers of shape (n_from, arity) with arity >= 1"
            )
        table = as_indices(table, f"map '{self.name}'")
        object.__setattr__(self, "table", read_only(table))

    @property
    def size(self) -> int:
        """Number of elements of the from-set."""
        return int(self.table.shape[0])

    @property
    def arity(self) -> int:
        """Number of to-set elements each element reaches."""
        return int(self.table.shape[1])

    def __repr__(self) -> str:
        return f"SetMap('{self.name}', {self.size:,} x {self.arity})"

    def compose(self, then: "SetMap", name: str | None = None) -> "SetMap":
        """Go on by another map: from each element to all that its own elements reach.

        Parameters
        ----------
        then : SetMap
            From this map's to-set.
        name : str, optional
            Of the result; ``"edges->cells->nodes"`` for ``edges->cells`` and ``cells->nodes``.

        Returns
        -------
        SetMap
            Row ``e`` holds the rows of ``then`` at ``table[e, 0]``, ``table[e, 1]``, ..., one after
            the other. O(n_from x arity x arity of ``then``).

        Raises
        ------
        MeshprepError
            Where ``then`` starts at another set, or has too few rows.

        Examples
        --------
        >>> import numpy as np
        >>> from meshprep_runtime import SetMap
        >>> cells = SetMap("edges->cells", "edges", "cells", np.array([[0, 1], [1, 2]]))
        >>> parts = SetMap("cells->parts", "cells", "parts", np.array([[5], [6], [5]]))
        >>> both = cells.compose(parts)
        >>> both.name, both.table.tolist()
        ('edges->cells->parts', [[5, 6], [6, 5]])
        """
        if then.from_set != self.to_set:
            raise MeshprepError(
                f"map '{self.name}' leads to '{self.to_set}', but map '{then.name}' starts at "
                f"'{then.from_set}': compose maps of which one ends where the other starts"
            )
        self.check_range(then.size)
        table = then.table[self.table].reshape(self.size, self.arity * then.arity)
        name = f"{self.name}->{then.to_set}" if name is None else name
        return SetMap(name, self.from_set, then.to_set, table)

    def check_range(self, n_to: int, first: int = 0) -> None:
        """Prove that every index is in the to-set.

        Parameters
        ----------
        n_to : int
            Number of elements of the to-set.
        first : int
            Number of the first element, where the table is a slice.

        Raises
        ------
        MeshprepError
            Naming the first element and column whose index is outside 0..n_to-1.

        Notes
        -----
        O(n_from x arity).
        """
        if not self.table.size:
            return
        low, high = int(self.table.min()), int(self.table.max())
        if low >= 0 and high < n_to:
            return
        bad = (self.table < 0) | (self.table >= n_to)
        row, column = np.unravel_index(int(np.argmax(bad)), bad.shape)
        index = self.table[row, column]
        hint = ": elements that reach nothing must be a set of their own" if index == -1 else ""
        raise MeshprepError(
            f"map '{self.name}': element {first + row}, column {column} has index {index}, but set "
            f"'{self.to_set}' has {n_to} elements{hint}"
        )


def offsets_of(counts: ArrayLike) -> NDArray[np.int64]:
    """Where rows of so many entries begin, and the end: ``[2, 1]`` gives ``[0, 2, 3]``."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def run_offset(n: int, length: int) -> NDArray[np.int64]:
    """Where runs of so many of ``n`` elements begin, and the end; the last one may be shorter."""
    return np.append(np.arange(0, n, length, dtype=np.int64), np.int64(n))


def ranges(start: ArrayLike, counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """So many numbers from each start on, one run after another.

    Starts ``[5, 0]`` and counts ``[2, 1]`` give ``[5, 6, 0]``.
    """
    first = np.asarray(start) - (np.cumsum(counts) - counts)
    return np.repeat(first, counts) + np.arange(int(counts.sum()))


def rows_of_entries(offset: NDArray[np.integer]) -> NDArray[np.int32]:
    """The row of each entry, by the offsets of the rows: ``[0, 2, 3]`` gives ``[0, 0, 1]``."""
    return np.repeat(np.arange(offset.size - 1, dtype=np.int32), np.diff(offset))


def chunks(n: int) -> Iterator[slice]:
    """``range(n)`` in pieces: NumPy copies an index of 32 bits, which so stays in the cache."""
    for begin in range(0, n, CHUNK):
        yield slice(begin, min(begin + CHUNK, n))


def as_indices(values: ArrayLike, where: str) -> NDArray[np.int32]:
    """Whole numbers as int32, the array itself where it is of int32: nothing wraps or is rounded.

    Raises MeshprepError, which begins with ``where``.
    """
    refuse_masked(values, where)
    found = np.asarray(values)
    if found.size and found.dtype.kind not in "iu":
        raise MeshprepError(f"{where} has indices of dtype {found.dtype}, must be integers")
    if found.dtype == np.int32:
        return found
    if found.size and (int(found.max()) > INDEX_LIMIT or int(found.min()) < -INDEX_LIMIT):
        raise MeshprepError(f"{where} has an index past 2^31-1")
    return found.astype(np.int32)


def refuse_masked(values: object, where: str) -> None:
    """Raise MeshprepError for masked values, of which NumPy would take what lies under the mask."""
    if np.ma.is_masked(values):
        raise MeshprepError(f"{where} has masked values: fill them, or leave them out")


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """A C-contiguous view that refuses writing; copies only what is not contiguous."""
    view = np.ascontiguousarray(values).view()
    view.flags.writeable = False
    return view


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Each value once, ascending.

    ``np.unique`` hashes whole numbers, which takes a hundred times as long where most are unlike.
    """
    found = np.sort(values, axis=None)
    apart = np.ones(found.size, np.bool_)
    np.not_equal(found[1:], found[:-1], out=apart[1:])
    return found[apart]


def distinct_without(values: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
    """Each value that is not among others once, ascending; as ``np.setdiff1d``."""
    found, known = distinct(values), np.sort(others, axis=None)
    if known.size:
        at = np.minimum(np.searchsorted(known, found), known.size - 1)
        found = found[known[at] != found]
    return found


# DLPack's numbers for memory of CUDA, managed memory included.
DLPACK_CUDA = (2, 13)
HOST = (np.ndarray, int, float, np.generic)


def on_device(value: Any) -> bool:
    """True for arrays in the memory of a GPU."""
    if isinstance(value, HOST):
        return False
    if cupy_pointer(value) is not None:
        return True
    try:
        if getattr(value, "__cuda_array_interface__", None) is not None:
            return True
    except Exception:  # Libraries refuse to tell in words of their own; the binder asks again.
        pass
    ask = getattr(value, "__dlpack_device__", None)
    return ask is not None and ask()[0] in DLPACK_CUDA


def cupy_pointer(value: Any) -> object:
    """The address of a CuPy array: its interface takes long to make."""
    return getattr(getattr(value, "data", None), "ptr", None)
