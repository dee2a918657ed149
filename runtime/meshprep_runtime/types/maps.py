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

# The largest index that an int32 holds.
INDEX_LIMIT = 2**31 - 1
# Elements of one piece that `chunks` yields.
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
        Indices into the to-set from 0, C-contiguous. Other integer types are converted
        after a range check; nothing wraps.

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
                f"map '{self.name}': the table has shape {table.shape} "
                f"and dtype {table.dtype}, must be integers of shape (n_from, arity) "
                "with arity >= 1"
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
        """This map followed by another one, as one map.

        Parameters
        ----------
        then : SetMap
            From this map's to-set.
        name : str, optional
            Of the result; ``"edges->cells->nodes"`` for ``edges->cells`` and
            ``cells->nodes``.

        Returns
        -------
        SetMap
            Row ``e`` holds the rows of ``then`` at ``table[e, 0]``, ``table[e, 1]``, ...,
            one after the other. O(n_from x arity x arity of ``then``).

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
                f"map '{self.name}' leads to '{self.to_set}', but map '{then.name}' "
                f"starts at '{then.from_set}': "
                "compose maps of which one ends where the other starts"
            )
        self.check_range(then.size)
        table = then.table[self.table].reshape(self.size, self.arity * then.arity)
        if name is None:
            name = f"{self.name}->{then.to_set}"
        return SetMap(name=name, from_set=self.from_set, to_set=then.to_set, table=table)

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
        low = int(self.table.min())
        high = int(self.table.max())
        if low >= 0 and high < n_to:
            return
        # Name the first index outside.
        outside = (self.table < 0) | (self.table >= n_to)
        row, column = np.unravel_index(int(np.argmax(outside)), outside.shape)
        index = self.table[row, column]
        hint = ""
        if index == -1:
            hint = ": elements that reach nothing must be a set of their own"
        raise MeshprepError(
            f"map '{self.name}': element {first + row}, column {column} has index {index}, "
            f"but set '{self.to_set}' has {n_to} elements{hint}"
        )


def offsets_of(counts: ArrayLike) -> NDArray[np.int64]:
    """Where each row begins, by its number of entries, and where the last one ends.

    Counts ``[2, 1]`` give ``[0, 2, 3]``.
    """
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def run_offset(n: int, length: int) -> NDArray[np.int64]:
    """Where each run of ``length`` elements begins, and where the last one ends.

    The last run may be shorter: 5 elements in runs of 2 give ``[0, 2, 4, 5]``.
    """
    return np.append(np.arange(0, n, length, dtype=np.int64), np.int64(n))


def ranges(start: ArrayLike, counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """Runs of consecutive numbers, one run after another.

    Run ``i`` holds ``counts[i]`` numbers from ``start[i]`` on: starts ``[5, 0]`` and counts
    ``[2, 1]`` give ``[5, 6, 0]``.
    """
    # Each entry is its place in the result, shifted by the same amount in all of its run.
    shift = np.asarray(start) - (np.cumsum(counts) - counts)
    return np.repeat(shift, counts) + np.arange(int(counts.sum()))


def rows_of_entries(offset: NDArray[np.integer]) -> NDArray[np.int32]:
    """The row of each entry, by offsets of rows: ``[0, 2, 3]`` gives ``[0, 0, 1]``."""
    return np.repeat(np.arange(offset.size - 1, dtype=np.int32), np.diff(offset))


def chunks(n: int) -> Iterator[slice]:
    """``range(n)`` in pieces of ``CHUNK``.

    NumPy copies an index of 32 bits to 64; the copy of a piece stays in the cache.
    """
    for begin in range(0, n, CHUNK):
        yield slice(begin, min(begin + CHUNK, n))


def as_indices(values: ArrayLike, where: str) -> NDArray[np.int32]:
    """Whole numbers as int32; an array of int32 comes back itself, without a copy.

    Raises MeshprepError, which begins with ``where``, for numbers that int32 does not hold:
    nothing wraps or is rounded.
    """
    refuse_masked(values, where)
    indices = np.asarray(values)
    if indices.size and indices.dtype.kind not in "iu":
        raise MeshprepError(
            f"{where} has indices of dtype {indices.dtype}, must be integers"
        )
    if indices.dtype == np.int32:
        return indices
    # Look before narrowing: int32 would wrap around without a word.
    if indices.size:
        largest = int(indices.max())
        smallest = int(indices.min())
        if largest > INDEX_LIMIT or smallest < -INDEX_LIMIT:
            raise MeshprepError(f"{where} has an index past 2^31-1")
    return indices.astype(np.int32)


def refuse_masked(values: object, where: str) -> None:
    """Raise MeshprepError for masked values: NumPy would use the numbers under the mask."""
    if np.ma.is_masked(values):
        raise MeshprepError(f"{where} has masked values: fill them, or leave them out")


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """A C-contiguous view that cannot be written to; copies only other arrays."""
    view = np.ascontiguousarray(values).view()
    view.flags.writeable = False
    return view


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Each value once, ascending.

    ``np.unique`` hashes whole numbers, which takes a hundred times as long where most of
    the values differ.
    """
    ascending = np.sort(values, axis=None)
    is_first = np.ones(ascending.size, np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=is_first[1:])
    return ascending[is_first]


def distinct_without(values: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
    """Each value that is not among ``others``, once, ascending; as ``np.setdiff1d``."""
    candidates = distinct(values)
    sorted_others = np.sort(others, axis=None)
    if not sorted_others.size:
        return candidates
    next_other = np.searchsorted(sorted_others, candidates)
    next_other = np.minimum(next_other, sorted_others.size - 1)
    not_there: NDArray[Any] = candidates[sorted_others[next_other] != candidates]
    return not_there


# DLPack's numbers of the kinds of memory of CUDA: plain, and managed.
DLPACK_CUDA = (2, 13)
# Types whose values are never on a GPU.
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
    except Exception:
        # Each library has its own exceptions here. The binder asks again and reports them.
        pass
    device_of = getattr(value, "__dlpack_device__", None)
    return device_of is not None and device_of()[0] in DLPACK_CUDA


def cupy_pointer(value: Any) -> object:
    """The address of a CuPy array, or None for any other value.

    Quicker than ``__cuda_array_interface__``, which is built anew at each access.
    """
    return getattr(getattr(value, "data", None), "ptr", None)
