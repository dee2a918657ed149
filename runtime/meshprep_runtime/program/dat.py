"""The values of a set that a program works on, and what it knows about them [G12 section 2]."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError, check_choice, check_integer
from ..kernel.bind import AOS, DTYPES, SOA
from ..types.maps import on_device

# The lists of copies on a rank; partial lists go by the name of their map.
EXEC, HALO = "exec", "halo"


class Queue(Protocol):
    """Loops that wait."""

    def flush(self) -> None:
        """Run them."""


class Watch(Protocol):
    """What must know when the program itself changes a dat."""

    def before_change(self, dat: "ProgramDat") -> None:
        """Its values are still those of before."""

    def after_change(self, dat: "ProgramDat") -> None:
        """They may have changed already."""


class ProgramDat:
    """Values of the elements of one set, made by ``Program.dat``.

    Parameters
    ----------
    set_name : str
    array : (rows, dim), (dim, rows) or (rows,) array
        Of NumPy, or of a GPU. On one of several ranks the rows of other ranks' elements follow
        those that this rank owns.
    dim : int
    layout : str
        ``"aos"``, or ``"soa"``, where the array is ``(dim, rows)``.
    owned : int
        Rows that this rank owns.

    Attributes
    ----------
    fresh : set of str
        Which lists of copies hold what their owners have: ``"exec"``, ``"halo"``, and the names of
        maps for what those alone reach.
    chain : Chain or None
        What has queued loops that use the dat: they run before anybody sees its values.
    seen : bool
        The program may hold its array, which nothing but loops on the dat may write to then.
    dropped : bool
        A chain has not stored its values, as it was told.
    version : int
        How often it was changed, apart from tiles.
    watch : Watch or None
        Is told of changes outside of loops, and of those that loops make.
    """

    def __init__(self, set_name: str, array: Any, dim: int, layout: str, owned: int) -> None:
        self.set = set_name
        self.chain: Queue | None = None
        self.watch: Watch | None = None
        self.stored = array
        self.seen = True
        self.dropped = False
        self.version = 0
        self.dim = dim
        self.layout = layout
        self.owned = owned
        self.fresh: set[str] = set()

    def __getstate__(self) -> dict[str, Any]:
        """For copies, which no queue and no checkpoint knows."""
        if self.chain is not None:
            self.chain.flush()
        self.seen = True
        return {**self.__dict__, "chain": None, "watch": None}

    def current(self) -> Any:
        """As ``array``, for those that do not keep it.

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
        """The values of all rows, as they are stored; loops that are queued run first.

        Another array may take their place, on all ranks; its copies count as stale.
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
        """Tiles trust that an array is what the chain was checked with."""
        shape, dtype = _form(f"{self!r}: another array for it", values)
        have = self.stored.shape
        alike = shape == have or (self.dim == 1 and shape in (have[:1], (*have[:1], 1)))
        flags = values.flags if isinstance(values, np.ndarray) else None
        usable = flags is None or (flags.c_contiguous and flags.aligned and flags.writeable)
        if alike and dtype == self.dtype and usable:
            return
        raise MeshprepError(
            f"{self!r}: another array for it has shape {shape} and dtype {dtype}, must be "
            f"{have} of {self.dtype}, contiguous and writable"
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of one value."""
        found: np.dtype[Any] = np.dtype(self.stored.dtype)
        return found

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
            True where the caller will change them: copies on other ranks count as stale from now
            on, so all ranks must say it. Without, an array of the host refuses changes.

        Returns
        -------
        array
            A view; the array itself on a GPU where all of it is owned.
        """
        if write:
            self._begin_change()
            self.touch()
        view = self.array
        if isinstance(view, np.ndarray) or view.shape[self.axis] != self.owned:
            view = view[(slice(None),) * self.axis + (slice(self.owned),)]
        if isinstance(view, np.ndarray) and not write:
            view.flags.writeable = False
        return view

    def touch(self) -> None:
        """Say that the array was changed outside of loops: its copies are stale."""
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


def _form(what: str, values: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of what must be an array."""
    if not (hasattr(values, "shape") and hasattr(values, "dtype")):
        raise MeshprepError(f"{what} is a {type(values).__name__}, must be an array")
    return tuple(values.shape), np.dtype(values.dtype)


def arrays_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays behind the dats of a call."""
    return {n: v.current() if isinstance(v, ProgramDat) else v for n, v in given.items()}


def make_dat(
    set_name: str,
    size: tuple[int, int],
    dim: int = 1,
    dtype: str = "f8",
    values: Any = None,
    layout: str = AOS,
) -> ProgramDat:
    """A dat with ``size = (rows, owned)``: of zeros, or of values.

    Values of all rows are kept, not copied, and count as fresh; values of the owned rows are
    copied.

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
    soa = layout == SOA and dim > 1
    wanted: list[tuple[int, ...]] = [(dim, n) if soa else (n, dim) for n in (rows, owned)]
    wanted += [] if dim > 1 else [(rows,), (owned,)]
    wanted += [(1, rows), (1, owned)] if dim == 1 and layout == SOA else []
    if values is None:
        # As values of one number an element usually come, so that the two go together.
        values = np.zeros(wanted[0] if dim > 1 else rows, dtype)
    shape, given = _form(f"{where}: values", values)
    if shape not in wanted or given != np.dtype(dtype):
        raise MeshprepError(
            f"{where} has values of shape {shape} and dtype {given}, must be "
            f"{' or '.join(map(str, dict.fromkeys(wanted)))} of {np.dtype(dtype)}"
            f"{_declared(shape, given, size) if layout != SOA else ''}"
        )
    if dim == 1 and shape in ((1, rows), (1, owned)):
        # one component lies the same in either layout
        values = values.reshape(-1)
    complete = values.shape[int(soa)] == rows
    if not complete and on_device(values):
        raise MeshprepError(f"{where}: an array of a GPU must have all its {rows} rows")
    if complete and rows > owned:
        check_takes_copies(where, values)
    array = values if complete else _with_copies(values, rows, int(soa))
    made = ProgramDat(set_name, array, dim, layout, owned)
    made.fresh = {EXEC, HALO} if complete else set()
    return made


def check_own_memory(made: ProgramDat, others: Iterable[ProgramDat]) -> None:
    """Raise MeshprepError for a dat whose array is another's: who changes one changes both.

    Copies on other ranks, and what a checkpoint saves, are those of one dat.
    """
    if shares_memory(made, others):
        raise MeshprepError(
            f"{made!r}: its values share memory with another dat: pass a copy of them"
        )


def shares_memory(made: ProgramDat, others: Iterable[ProgramDat]) -> bool:
    """True where the array of a dat is another's, or a part of it."""
    for other in others:
        arrays = made.stored, other.stored
        on_host = all(isinstance(a, np.ndarray) for a in arrays)
        if np.may_share_memory(*arrays) if on_host else arrays[0] is arrays[1]:
            return True
    return False


def check_takes_copies(where: str, values: Any) -> None:
    """Raise MeshprepError for an array of the host that nothing can be received into."""
    if isinstance(values, np.ndarray) and not values.flags.writeable:
        raise MeshprepError(
            f"{where}: the array is read-only, but takes copies of other ranks' elements: pass a "
            "copy of it"
        )


def _declared(shape: tuple[int, ...], given: np.dtype[Any], rows: tuple[int, int]) -> str:
    """How a dat of these values is asked for; empty where they are none of the set."""
    if shape[:1] not in [(n,) for n in rows] or name_of_dtype(given) not in DTYPES:
        return ""
    dim = shape[1] if len(shape) == 2 else 1
    fits = dim > 0 and len(shape) <= 2
    return f"; for these give dim={dim}, dtype='{name_of_dtype(given)}'" if fits else ""


def name_of_dtype(dtype: Any) -> str:
    """``f8`` of ``"f8"``, ``float`` and ``np.float64``; any other as it is."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        return str(dtype)
    return str(found.str[1:] if found.isnative else found.str)


def _with_copies(values: NDArray[Any], rows: int, axis: int) -> NDArray[Any]:
    more = [(0, 0)] * values.ndim
    more[axis] = (0, rows - values.shape[axis])
    return np.pad(values, more)
