"""From the arrays of a call to arrays that compiled code may trust, or an error that names one."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import MeshprepError
from ..plan import LoopPlan
from ..types.loops import Access, Arg, Loop

AOS, SOA = "aos", "soa"
# As a strategy: what was tuned, else a rule.
AUTO = "auto"
Layout = str | Mapping[str, str]
# What a constant of doubles may be, whatever its value.
NUMBERS = frozenset({float, np.float64})
DTYPES = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")


@dataclass(frozen=True)
class Slot:
    """What the array of one name must be; ``rows`` is the set, None for a global."""

    name: str
    access: Access
    dtype: np.dtype
    shape: tuple[int, ...]
    rows: str | None
    soa: bool = False
    # of one component, and asked for as soa: an array of shape (1, n) will do
    one_row: bool = False

    @property
    def dim(self) -> int:
        """Components of one element, or of a global."""
        return self.shape[0] if self.soa or self.rows is None else self.shape[1]

    @cached_property
    def written(self) -> bool:
        """True when the loop changes the array."""
        return self.access is not Access.READ


@dataclass(frozen=True)
class ArrayForm:
    """What an array is, wherever it lies; ``library`` has the ``ascontiguousarray`` for it."""

    dtype: np.dtype
    shape: tuple[int, ...]
    contiguous: bool
    writeable: bool
    library: str = "np"


def slots(loop_plan: LoopPlan, layout: Layout = AOS) -> tuple[Slot, ...]:
    """One slot for each name in the loop, in the order of its arguments.

    Raises MeshprepError for a dtype that loops do not run on, an unknown layout, and for one dat on
    two sets.
    """
    layouts = _layouts(loop_plan.loop, layout)
    made: dict[str, tuple[Arg, Slot]] = {}
    for arg in loop_plan.loop.args:
        slot = _slot(loop_plan, arg, layouts.get(arg.name, AOS) == SOA)
        if arg.name in made:
            _check_together(loop_plan.loop, made[arg.name], (arg, slot))
        made.setdefault(arg.name, (arg, slot))
    return tuple(slot for _, slot in made.values())


class Binder:
    """Turns the arrays of a call into arrays that compiled code may trust.

    What was bound last is kept, so that a call with the same arrays, or with a few others, checks
    only what is new: about a microsecond an argument. Arrays of other libraries are always new.
    Calls from several threads are safe.
    """

    def __init__(self, loop: Loop, wanted: Sequence[Slot]) -> None:
        self.loop = loop
        self.wanted = tuple(wanted)
        self._last: tuple[_Seen, ...] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """For copies, in which a view of an array would be an array of its own."""
        return {**self.__dict__, "_last": None}

    def __call__(self, given: Mapping[str, Any]) -> list[NDArray[Any]]:
        """The arrays in the order of the slots, flat; those only read are read-only.

        Raises MeshprepError for names that are missing or unknown; dtype, shape, layout; arrays
        that cannot be written; memory that is written under one name and used under another.
        """
        wanted, last = self.wanted, self._last
        check_names(self.loop, wanted, given)
        fresh = [
            i
            for i, slot in enumerate(wanted)
            if last is None or not last[i].still(given[slot.name])
        ]
        if last is not None and not fresh:
            return [seen.view for seen in last]
        seen = list(last) if last is not None else [_Seen(None, None, _NONE)] * len(wanted)
        for i in fresh:
            value = given[wanted[i].name]
            seen[i] = _Seen(value, _form(value), bound(self.loop, wanted[i], value))
        self._check_shared(fresh, [s.view for s in seen])
        self._last = tuple(seen)
        return [s.view for s in seen]

    def _check_shared(self, fresh: Sequence[int], views: Sequence[NDArray[Any]]) -> None:
        for i, slot in enumerate(self.wanted):
            for j, other in enumerate(self.wanted):
                if i == j or not slot.written or not (i in fresh or j in fresh):
                    continue
                if np.may_share_memory(views[i], views[j]):
                    raise sharing(self.loop, slot, other)


class _Seen:
    """What was given for one slot, and the view that was made of it."""

    __slots__ = ("form", "value", "view")

    def __init__(self, value: Any, form: object, view: NDArray[Any]) -> None:
        self.value = value
        self.form = form
        self.view = view

    def still(self, value: Any) -> bool:
        """True when it is the same object and has not been given another form meanwhile."""
        return value is self.value and _form(value) == self.form


_NONE = np.zeros(0)


def _form(value: Any) -> object:
    """Equal while an object can be trusted to be what was bound."""
    if type(value) is np.ndarray:
        return (value.shape, value.dtype, value.flags.writeable, value.flags.c_contiguous)
    if isinstance(value, int | float | np.generic):
        return None
    # Arrays of other libraries may be given other memory, as torch's are by `x.data = y`.
    return object()


def _layouts(loop: Loop, layout: Layout) -> Mapping[str, str]:
    names = [a.name for a in loop.args if not a.is_global]
    chosen = dict.fromkeys(names, layout) if isinstance(layout, str) else layout
    for name, kind in chosen.items():
        if kind not in (AOS, SOA):
            raise MeshprepError(f"loop '{loop.name}': layout '{kind}' is unknown: use aos or soa")
        if name not in names:
            raise MeshprepError(
                f"loop '{loop.name}': layout names '{name}', but its dats are {', '.join(names)}"
            )
    return chosen


def _slot(loop_plan: LoopPlan, arg: Arg, soa: bool) -> Slot:
    dtype = np.dtype(arg.dtype)
    if dtype not in [np.dtype(d) for d in DTYPES]:
        raise MeshprepError(
            f"loop '{loop_plan.loop.name}': argument '{arg.name}' has dtype {arg.dtype}, but loops "
            f"run on {', '.join(DTYPES)}"
        )
    if arg.is_global:
        return Slot(arg.name, arg.access, dtype, (arg.dim,), None)
    rows = loop_plan.loop.over if arg.map is None else loop_plan.maps[arg.map].to_set
    if arg.columns is not None:
        matrix, nl = loop_plan.matrices.get(arg.name), len(arg.index) * arg.dim
        if matrix is None:
            over = loop_plan.loop.over
            return Slot(arg.name, arg.access, dtype, (loop_plan.sizes[over], nl), over)
        return Slot(
            arg.name, arg.access, dtype, (matrix.columns.size, 1), f"nonzeros of {arg.name}"
        )
    n = loop_plan.rows_of(rows)
    # One component has one layout.
    one_row, soa = soa and arg.dim == 1, soa and arg.dim > 1
    shape = (arg.dim, n) if soa else (n, arg.dim)
    return Slot(arg.name, arg.access, dtype, shape, rows, soa, one_row)


def _check_together(loop: Loop, first: tuple[Arg, Slot], second: tuple[Arg, Slot]) -> None:
    (a, slot), (_, other) = first, second
    if (slot.shape, slot.rows) != (other.shape, other.rows):
        raise MeshprepError(
            f"loop '{loop.name}': argument '{a.name}' stands twice, on different sets: they must "
            "agree"
        )


def bound(loop: Loop, slot: Slot, value: Any) -> NDArray[Any]:
    """The array of one slot, checked and flat; a number for a constant becomes one."""
    if slot.rows is None and not slot.written and isinstance(value, int | float | np.generic):
        value = _constant(loop, slot, value)
    value = _as_numpy(loop, slot, value)
    flags = value.flags
    contiguous = flags.c_contiguous and flags.aligned
    check_form(loop, slot, ArrayForm(value.dtype, value.shape, contiguous, flags.writeable))
    view: NDArray[Any] = value.view(np.ndarray).reshape(-1)
    if not slot.written:
        view.flags.writeable = False
    return view


def _as_numpy(loop: Loop, slot: Slot, value: Any) -> NDArray[Any]:
    """The array itself, or a view of another library's memory through DLPack, never a copy."""
    if type(value) is np.ndarray or type(value) is np.memmap:
        return value
    where = f"loop '{loop.name}': argument '{slot.name}'"
    if not isinstance(value, np.ndarray) and hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise MeshprepError(f"{where} cannot be seen by NumPy: {error}") from None
    raise MeshprepError(f"{where} is a {type(value).__name__}, must be a NumPy array")


def _constant(loop: Loop, slot: Slot, value: float | np.generic) -> NDArray[Any]:
    usual = type(value) in NUMBERS and slot.dtype.char == "d"
    if not usual and not holds(slot.dtype, value):
        raise MeshprepError(
            f"loop '{loop.name}': argument '{slot.name}' is {value}, must be {slot.dtype}"
        )
    if slot.shape != (1,):
        raise MeshprepError(
            f"loop '{loop.name}': argument '{slot.name}' is one number, must be {slot.shape[0]}"
        )
    return np.full(slot.shape, value, dtype=slot.dtype)


def holds(dtype: np.dtype, values: ArrayLike) -> bool:
    """True where a dtype can hold these numbers: whole ones exactly, others but for rounding."""
    given = np.asarray(values)
    if dtype.kind == "f" and isinstance(values, int):
        with suppress(OverflowError):
            given = np.asarray(float(values))
    if given.dtype.kind not in "biuf":
        return False
    with np.errstate(all="ignore"):
        made = given.astype(dtype)
    if dtype.kind == "f":
        return bool(np.isfinite(made[np.isfinite(given)]).all())
    # 2.0**63 rounds to the largest number of i8, which is one less
    end = float(np.iinfo(dtype).max) + 1
    return np.array_equal(made, given) and (given.dtype.kind != "f" or bool((given < end).all()))


def check_form(loop: Loop, slot: Slot, form: ArrayForm) -> None:
    """Raise MeshprepError, which names the argument, unless an array is what its slot wants."""
    short = slot.rows is not None and slot.shape[-1] == 1
    same = [slot.shape, slot.shape[:1]] if short else [slot.shape]
    # one component lies the same in either layout
    same += [slot.shape[::-1]] if slot.one_row else []
    fits = form.shape in same
    if form.dtype == slot.dtype and fits and form.contiguous:
        if form.writeable or not slot.written:
            return
        what = f"is read-only, but the loop changes it ({slot.access})"
    elif form.dtype != slot.dtype:
        what = f"has dtype {form.dtype}, must be {slot.dtype}"
    elif not fits:
        each = "column" if slot.soa else "row"
        rows = "" if slot.rows is None else f", one {each} an element of '{slot.rows}'"
        other = "".join(f" or {shape}" for shape in same[1:])
        what = f"has shape {form.shape}, must be {slot.shape}{other}{rows}"
    else:
        what = f"is not contiguous: pass {form.library}.ascontiguousarray of it"
    raise MeshprepError(f"loop '{loop.name}': argument '{slot.name}' {what}")


def check_names(loop: Loop, wanted: Sequence[Slot], given: Mapping[str, Any]) -> None:
    """Raise MeshprepError unless the names of a call are those of the loop."""
    if len(given) == len(wanted) and all(s.name in given for s in wanted):
        return
    names = [s.name for s in wanted]
    missing = [n for n in names if n not in given]
    unknown = [n for n in given if n not in names]
    what = f"argument '{missing[0]}' is missing" if missing else f"no argument '{unknown[0]}'"
    raise MeshprepError(f"loop '{loop.name}': {what}: it takes {', '.join(names)}")


def sharing(loop: Loop, slot: Slot, other: Slot) -> MeshprepError:
    """The error for two arguments in one memory, of which the first is written."""
    return MeshprepError(
        f"loop '{loop.name}': arguments '{slot.name}' and '{other.name}' "
        f"share memory and '{slot.name}' is written: pass separate arrays"
    )
