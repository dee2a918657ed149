"""Dats: values on the elements of a set, and the freshness of copies [G12 section 2]."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError, check_choice, check_integer
from ..kernel.bind import AOS, DTYPES, SOA
from ..types.maps import on_device

# The lists of copies on a rank. A partial list has the name of its map.
EXEC = "exec"
HALO = "halo"


class Queue(Protocol):
    """A queue of loops that have been called but have not run."""

    def flush(self) -> None:
        """Run all loops of the queue."""


class Watch(Protocol):
    """An observer of changes that the program itself makes to a dat."""

    def before_change(self, dat: "ProgramDat") -> None:
        """Called before the values of the dat change."""

    def after_change(self, dat: "ProgramDat") -> None:
        """Called when the values of the dat may have changed."""


class ProgramDat:
    """Values of the elements of one set, made by ``Program.dat``.

    Parameters
    ----------
    set_name : str
    array : (rows, dim), (dim, rows) or (rows,) array
        Of NumPy, or of a GPU. On one of several ranks, rows for copies of other ranks'
        elements follow the rows that this rank owns.
    dim : int
    layout : str
        ``"aos"``, or ``"soa"``, where the array is ``(dim, rows)``.
    owned : int
        Rows that this rank owns.

    Attributes
    ----------
    fresh : set of str
        The lists of copies whose values equal those of their owners: ``"exec"``,
        ``"halo"``, and names of maps for the partial lists of these maps.
    chain : Chain or None
        The chain with queued loops that use the dat; they run before its values are read.
    seen : bool
        The program may hold its array; then only loops on the dat may write to the array.
    dropped : bool
        Its values were not stored at the end of a chain that was told to drop them.
    version : int
        The number of changes so far, apart from those in tiles.
    number : int
        On ranks, the number of dats of the plan that were made before it; -1 on one rank.
    watch : Watch or None
        Is called at changes outside of loops, and after those that loops make.
    """

    def __init__(
        self, set_name: str, array: Any, dim: int, layout: str, owned: int
    ) -> None:
        self.set = set_name
        self.chain: Queue | None = None
        self.watch: Watch | None = None
        self.stored = array
        self.seen = True
        self.dropped = False
        self.version = 0
        self.number = -1
        self.dim = dim
        self.layout = layout
        self.owned = owned
        self.fresh: set[str] = set()

    def __getstate__(self) -> dict[str, Any]:
        """The state of a copy of the dat: it has no queue and no observer."""
        if self.chain is not None:
            self.chain.flush()
        self.seen = True
        return {**self.__dict__, "chain": None, "watch": None}

    def current(self) -> Any:
        """The same as ``array``, for callers that do not keep it.

        Returns
        -------
        numpy.ndarray or GPU array

        Raises
        ------
        MeshprepError
            As of ``array``.
        """
        if self.chain is not None:
            self.chain.flush()
        if self.dropped:
            raise MeshprepError(
                f"{self!r}: its values were dropped at the end of a chain: leave it out of "
                "'dropped', or run a loop that writes all of it (full = true) first"
            )
        return self.stored

    @property
    def array(self) -> Any:
        """The values of all rows, as they are stored; queued loops run first.

        Another array may be assigned, on all ranks; then all copies count as stale.
        """
        self.seen = True
        return self.current()

    @array.setter
    def array(self, values: Any) -> None:
        self._check_like_stored(values)
        self._begin_change()
        self.dropped = False
        self.stored = values
        self.seen = True
        self.touch()

    def _check_like_stored(self, values: Any) -> None:
        """Raise MeshprepError for an array that cannot replace the stored one.

        Tiles check shapes and dtypes once for each chain, and rely on them afterwards.
        """
        shape, dtype = _shape_and_dtype(f"{self!r}: another array for it", values)
        old_shape = self.stored.shape
        # Compiled code was bound to the form of the stored array.
        fits = shape == old_shape
        if self.dim == 1:
            fits = fits or shape in (old_shape[:1], (*old_shape[:1], 1))
        usable = True
        if isinstance(values, np.ndarray):
            flags = values.flags
            usable = flags.c_contiguous and flags.aligned and flags.writeable
        if fits and dtype == self.dtype and usable:
            return
        raise MeshprepError(
            f"{self!r}: another array for it has shape {shape} and dtype {dtype}, must be "
            f"{old_shape} of {self.dtype}, contiguous and writable"
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of one value."""
        dtype: np.dtype[Any] = np.dtype(self.stored.dtype)
        return dtype

    @property
    def axis(self) -> int:
        """The axis of the array that runs over the elements."""
        return int(self.layout == SOA and self.dim > 1)

    @property
    def on_device(self) -> bool:
        """True where the array lies on a GPU."""
        return on_device(self.current())

    def values(self, write: bool = False) -> Any:
        """The rows that this rank owns.

        Parameters
        ----------
        write : bool
            True where the caller will change them: copies on other ranks count as stale
            from now on, so all ranks must pass True. Where False, an array of the host
            is read-only.

        Returns
        -------
        array
            A view; the array itself on a GPU where all of it is owned.
        """
        if write:
            self._begin_change()
            self.touch()
        view = self.array
        # On a GPU, return the array itself unless it has rows for copies.
        if isinstance(view, np.ndarray) or view.shape[self.axis] != self.owned:
            view = view[(slice(None),) * self.axis + (slice(self.owned),)]
        if isinstance(view, np.ndarray) and not write:
            view.flags.writeable = False
        return view

    def touch(self) -> None:
        """Note that the array was changed outside of loops: its copies are stale."""
        if self.chain is not None:
            self.chain.flush()
        self.version += 1
        self.fresh.clear()
        if self.watch is not None:
            self.watch.after_change(self)

    def _begin_change(self) -> None:
        if self.chain is not None:
            self.chain.flush()
        if self.watch is not None:
            self.watch.before_change(self)

    def __repr__(self) -> str:
        return f"dat on '{self.set}', {self.dim} x {self.dtype}, {self.layout}"


def _shape_and_dtype(what: str, values: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and dtype of an array; raises MeshprepError for other values."""
    if not (hasattr(values, "shape") and hasattr(values, "dtype")):
        raise MeshprepError(f"{what} is a {type(values).__name__}, must be an array")
    return tuple(values.shape), np.dtype(values.dtype)


def arrays_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call, with the arrays of dats in place of the dats."""
    return {n: v.current() if isinstance(v, ProgramDat) else v for n, v in given.items()}


def make_dat(
    set_name: str,
    size: tuple[int, int],
    dim: int = 1,
    dtype: str = "f8",
    values: Any = None,
    layout: str = AOS,
) -> ProgramDat:
    """Make a dat of zeros, or of values; ``size`` is ``(rows, owned)``.

    Values of all rows are kept, not copied, and all copies count as fresh. Values of the
    owned rows alone are copied.

    Raises
    ------
    MeshprepError
        For an unknown layout or dtype, and values of another shape or dtype.
    """
    where = f"a dat on '{set_name}'"
    check_choice(f"{where}: layout", layout, (AOS, SOA))
    check_choice(f"{where}: dtype", name_of_dtype(dtype), DTYPES)
    check_integer(f"{where}: dim", dim)
    rows, owned = size
    # The axis that runs over the elements.
    axis = int(layout == SOA and dim > 1)
    shapes = _allowed_shapes(rows=rows, owned=owned, dim=dim, layout=layout)
    if values is None:
        # One component is usually given as (n,), so zeros of one component are the same.
        values = np.zeros(shapes[0] if dim > 1 else rows, dtype)

    # Check the form of the values.
    shape, dtype_of_values = _shape_and_dtype(f"{where}: values", values)
    if shape not in shapes or dtype_of_values != np.dtype(dtype):
        hint = ""
        if layout != SOA:
            hint = _hint_for_values(shape, dtype_of_values, size)
        raise MeshprepError(
            f"{where} has values of shape {shape} and dtype {dtype_of_values}, must be "
            f"{' or '.join(map(str, dict.fromkeys(shapes)))} of {np.dtype(dtype)}{hint}"
        )
    if dim == 1 and shape in ((1, rows), (1, owned)):
        # One component has the same place in memory in both layouts.
        values = values.reshape(-1)

    # Keep an array of all rows; copy one of the owned rows into a larger one.
    has_all_rows = values.shape[axis] == rows
    if not has_all_rows and on_device(values):
        raise MeshprepError(f"{where}: an array of a GPU must have all its {rows} rows")
    if has_all_rows and rows > owned:
        check_takes_copies(where, values)
    if not has_all_rows:
        values = _with_rows_for_copies(values, rows, axis)
    dat = ProgramDat(set_name=set_name, array=values, dim=dim, layout=layout, owned=owned)
    if has_all_rows:
        dat.fresh = {EXEC, HALO}
    return dat


def _allowed_shapes(rows: int, owned: int, dim: int, layout: str) -> list[tuple[int, ...]]:
    """The shapes that values of a dat may have: of all rows, or of the owned ones."""
    # One component may leave out its axis, and lies the same in both layouts.
    if dim == 1:
        shapes: list[tuple[int, ...]] = [(rows, 1), (owned, 1), (rows,), (owned,)]
        if layout == SOA:
            shapes += [(1, rows), (1, owned)]
        return shapes
    if layout == SOA:
        return [(dim, rows), (dim, owned)]
    return [(rows, dim), (owned, dim)]


def check_own_memory(dat: ProgramDat, others: Iterable[ProgramDat]) -> None:
    """Raise MeshprepError for a dat that shares its array with another one.

    A change of one would change the other, whose copies on other ranks would still count
    as fresh, and which a checkpoint would not save.
    """
    if shares_memory(dat, others):
        raise MeshprepError(
            f"{dat!r}: its values share memory with another dat: pass a copy of them"
        )


def shares_memory(dat: ProgramDat, others: Iterable[ProgramDat]) -> bool:
    """True where the array of a dat is that of another dat, or a part of it."""
    array = dat.stored
    for other in others:
        on_host = isinstance(array, np.ndarray) and isinstance(other.stored, np.ndarray)
        if on_host:
            shared = np.may_share_memory(array, other.stored)
        else:
            shared = array is other.stored
        if shared:
            return True
    return False


def check_takes_copies(where: str, values: Any) -> None:
    """Raise MeshprepError for a read-only array: copies are received into it."""
    if isinstance(values, np.ndarray) and not values.flags.writeable:
        raise MeshprepError(
            f"{where}: the array is read-only, but takes copies of other ranks' elements: "
            "pass a copy of it"
        )


def _hint_for_values(
    shape: tuple[int, ...], dtype: np.dtype[Any], size: tuple[int, int]
) -> str:
    """The dim and dtype that fit some values; empty for another number of rows."""
    rows, owned = size
    if shape[:1] not in [(rows,), (owned,)] or name_of_dtype(dtype) not in DTYPES:
        return ""
    if len(shape) == 1:
        dim = 1
    elif len(shape) == 2:
        dim = shape[1]
    else:
        return ""
    if dim == 0:
        return ""
    return f"; for these give dim={dim}, dtype='{name_of_dtype(dtype)}'"


def name_of_dtype(dtype: Any) -> str:
    """``f8`` for ``"f8"``, ``float`` and ``np.float64``; of an unknown dtype its text."""
    try:
        known_dtype = np.dtype(dtype)
    except TypeError:
        return str(dtype)
    if known_dtype.isnative:
        return str(known_dtype.str[1:])
    return str(known_dtype.str)


def _with_rows_for_copies(values: NDArray[Any], rows: int, axis: int) -> NDArray[Any]:
    """Values of owned rows, followed by zeros in the rows of copies."""
    padding = [(0, 0)] * values.ndim
    padding[axis] = (0, rows - values.shape[axis])
    return np.pad(values, padding)
