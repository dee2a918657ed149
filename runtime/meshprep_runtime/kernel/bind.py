"""Checks the arrays of a call, and makes the flat views that compiled code works on."""

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

AOS = "aos"  # components of an element beside each other
SOA = "soa"  # elements of a component beside each other
# The strategy that was tuned, else one by a rule.
AUTO = "auto"
Layout = str | Mapping[str, str]
# Types of numbers that are valid for a constant of doubles, whatever their value.
NUMBERS = frozenset({float, np.float64})
DTYPES = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")


@dataclass(frozen=True)
class Slot:
    """The form of the array of a name; ``rows`` is its set, None for a global."""

    name: str
    access: Access
    dtype: np.dtype
    shape: tuple[int, ...]
    rows: str | None
    soa: bool = False
    # One component, with layout soa: an array of shape (1, n) fits, too.
    one_row: bool = False

    @property
    def dim(self) -> int:
        """Components of one element, or of a global."""
        if self.soa or self.rows is None:
            return self.shape[0]
        return self.shape[1]

    @cached_property
    def written(self) -> bool:
        """True when the loop changes the array."""
        return self.access is not Access.READ


@dataclass(frozen=True)
class ArrayForm:
    """The form of an array on the host or on a GPU.

    ``library`` is the module that has ``ascontiguousarray`` for it.
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    contiguous: bool
    writeable: bool
    library: str = "np"


def slots(loop_plan: LoopPlan, layout: Layout = AOS) -> tuple[Slot, ...]:
    """A slot for each name in the loop, in the order of its arguments.

    Raises MeshprepError for a dtype that loops do not run on, an unknown layout, and for
    a dat on two sets.
    """
    layouts = _layouts_by_name(loop_plan.loop, layout)
    slot_of_name: dict[str, Slot] = {}
    for arg in loop_plan.loop.args:
        slot = _slot(loop_plan, arg, layouts.get(arg.name, AOS) == SOA)
        first = slot_of_name.setdefault(arg.name, slot)
        if (first.shape, first.rows) != (slot.shape, slot.rows):
            raise MeshprepError(
                f"loop '{loop_plan.loop.name}': argument '{arg.name}' stands twice, on "
                "different sets: they must agree"
            )
    return tuple(slot_of_name.values())


def bind(
    loop: Loop, wanted: Sequence[Slot], given: Mapping[str, Any]
) -> list[NDArray[Any]]:
    """Check the arrays of a call; returns flat views of them, in the order of the slots.

    Views of arrays that are only read are read-only. A number for a constant becomes an
    array of its own.

    Raises MeshprepError for names that are missing or unknown; a dtype, shape or layout
    that does not fit; arrays that cannot be written; memory that is written under one name
    and used under another.
    """
    check_names(loop, wanted, given)
    views = [bound(loop, slot, given[slot.name]) for slot in wanted]
    for slot, view in zip(wanted, views, strict=True):
        # What is written must share memory with nothing else: threads would race.
        if not slot.written:
            continue
        for other, other_view in zip(wanted, views, strict=True):
            if other is not slot and np.may_share_memory(view, other_view):
                raise sharing(loop, slot, other)
    return views


def rows_by_name(
    wanted: Sequence[Slot], views: Sequence[NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """The views of :func:`bind`, as ``(n, dim)`` for dats and ``(dim,)`` for globals."""
    rows: dict[str, NDArray[Any]] = {}
    for slot, view in zip(wanted, views, strict=True):
        shaped = view.reshape(slot.shape)
        rows[slot.name] = shaped.T if slot.soa else shaped
    return rows


def _layouts_by_name(loop: Loop, layout: Layout) -> Mapping[str, str]:
    """The layout of each dat; raises MeshprepError for unknown layouts and names."""
    names = [a.name for a in loop.args if not a.is_global]
    chosen: Mapping[str, str]
    if isinstance(layout, str):
        chosen = dict.fromkeys(names, layout)
    else:
        chosen = layout
    for name, kind in chosen.items():
        if kind not in (AOS, SOA):
            raise MeshprepError(
                f"loop '{loop.name}': layout '{kind}' is unknown: use aos or soa"
            )
        if name not in names:
            raise MeshprepError(
                f"loop '{loop.name}': layout names '{name}', but its dats are "
                f"{', '.join(names)}"
            )
    return chosen


def _slot(loop_plan: LoopPlan, arg: Arg, soa: bool) -> Slot:
    dtype = np.dtype(arg.dtype)
    if dtype not in [np.dtype(d) for d in DTYPES]:
        raise MeshprepError(
            f"loop '{loop_plan.loop.name}': argument '{arg.name}' has dtype {arg.dtype}, "
            f"but loops run on {', '.join(DTYPES)}"
        )
    # A global has one row; a matrix has values in an array of its own.
    if arg.is_global:
        return Slot(
            name=arg.name, access=arg.access, dtype=dtype, shape=(arg.dim,), rows=None
        )
    if arg.columns is not None:
        return _matrix_slot(loop_plan, arg, dtype)
    # A dat has a row for each element of the loop, or for each point of the map.
    if arg.map is None:
        rows = loop_plan.loop.over
    else:
        rows = loop_plan.maps[arg.map].to_set
    n = loop_plan.rows_of(rows)
    # A dat of one component lies the same in both layouts.
    one_row = soa and arg.dim == 1
    soa = soa and arg.dim > 1
    if soa:
        shape = (arg.dim, n)
    else:
        shape = (n, arg.dim)
    return Slot(
        name=arg.name,
        access=arg.access,
        dtype=dtype,
        shape=shape,
        rows=rows,
        soa=soa,
        one_row=one_row,
    )


def _matrix_slot(loop_plan: LoopPlan, arg: Arg, dtype: np.dtype) -> Slot:
    """The slot of the nonzeros of a matrix; without one, of the elements' matrices."""
    matrix = loop_plan.matrices.get(arg.name)
    if matrix is None:
        over = loop_plan.loop.over
        return Slot(
            name=arg.name,
            access=arg.access,
            dtype=dtype,
            shape=(loop_plan.sizes[over], len(arg.index) * arg.dim),
            rows=over,
        )
    # Nonzeros are rows of one component, as of a dat on a set of their own.
    return Slot(
        name=arg.name,
        access=arg.access,
        dtype=dtype,
        shape=(matrix.columns.size, 1),
        rows=f"nonzeros of {arg.name}",
    )


def bound(loop: Loop, slot: Slot, value: Any) -> NDArray[Any]:
    """The array of a slot, checked and flat; a number for a constant becomes an array."""
    # Numbers are fine for constants that the kernel only reads.
    if (
        slot.rows is None
        and not slot.written
        and isinstance(value, int | float | np.generic)
    ):
        value = _array_of_constant(loop, slot, value)
    value = _as_numpy(loop, slot, value)
    flags = value.flags
    form = ArrayForm(
        dtype=value.dtype,
        shape=value.shape,
        contiguous=flags.c_contiguous and flags.aligned,
        writeable=flags.writeable,
    )
    check_form(loop, slot, form)
    # A flat view: compiled code knows the layout, and reads no strides.
    view: NDArray[Any] = value.view(np.ndarray).reshape(-1)
    if not slot.written:
        view.flags.writeable = False
    return view


def _as_numpy(loop: Loop, slot: Slot, value: Any) -> NDArray[Any]:
    """The array itself, or a view of another library's memory through DLPack."""
    if type(value) is np.ndarray or type(value) is np.memmap:
        return value
    where = f"loop '{loop.name}': argument '{slot.name}'"
    if not isinstance(value, np.ndarray) and hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise MeshprepError(f"{where} cannot be seen by NumPy: {error}") from None
    raise MeshprepError(f"{where} is a {type(value).__name__}, must be a NumPy array")


def _array_of_constant(loop: Loop, slot: Slot, value: float | np.generic) -> NDArray[Any]:
    usual = type(value) in NUMBERS and slot.dtype.char == "d"
    if not usual and not holds(slot.dtype, value):
        raise MeshprepError(
            f"loop '{loop.name}': argument '{slot.name}' is {value}, must be {slot.dtype}"
        )
    if slot.shape != (1,):
        raise MeshprepError(
            f"loop '{loop.name}': argument '{slot.name}' is one number, must be "
            f"{slot.shape[0]}"
        )
    return np.full(slot.shape, value, dtype=slot.dtype)


def holds(dtype: np.dtype, values: ArrayLike) -> bool:
    """True where a dtype can hold these numbers.

    Whole numbers must be held exactly, others may be rounded.
    """
    numbers = np.asarray(values)
    if dtype.kind == "f" and isinstance(values, int):
        with suppress(OverflowError):
            numbers = np.asarray(float(values))
    if numbers.dtype.kind not in "biuf":
        return False
    with np.errstate(all="ignore"):
        converted = numbers.astype(dtype)
    if dtype.kind == "f":
        return bool(np.isfinite(converted[np.isfinite(numbers)]).all())
    # 2.0**63 would convert to the largest number of i8, which is one less.
    end = float(np.iinfo(dtype).max) + 1
    return np.array_equal(converted, numbers) and (
        numbers.dtype.kind != "f" or bool((numbers < end).all())
    )


def check_form(loop: Loop, slot: Slot, form: ArrayForm) -> None:
    """Raise MeshprepError, which names the argument, unless an array fits its slot."""
    # Arrays of one component may leave out its axis, and have either layout.
    shapes = [slot.shape]
    if slot.rows is not None and slot.shape[-1] == 1:
        shapes.append(slot.shape[:1])
    if slot.one_row:
        shapes.append(slot.shape[::-1])
    # Tell the first reason for which the array does not fit.
    fits = form.shape in shapes
    if form.dtype == slot.dtype and fits and form.contiguous:
        if form.writeable or not slot.written:
            return
        reason = f"is read-only, but the loop changes it ({slot.access})"
    elif form.dtype != slot.dtype:
        reason = f"has dtype {form.dtype}, must be {slot.dtype}"
    elif not fits:
        each = "column" if slot.soa else "row"
        rows = "" if slot.rows is None else f", one {each} an element of '{slot.rows}'"
        others = "".join(f" or {shape}" for shape in shapes[1:])
        reason = f"has shape {form.shape}, must be {slot.shape}{others}{rows}"
    else:
        reason = f"is not contiguous: pass {form.library}.ascontiguousarray of it"
    raise MeshprepError(f"loop '{loop.name}': argument '{slot.name}' {reason}")


def check_names(loop: Loop, wanted: Sequence[Slot], given: Mapping[str, Any]) -> None:
    """Raise MeshprepError unless the names of a call are those of the loop."""
    if len(given) == len(wanted) and all(s.name in given for s in wanted):
        return
    # Name the first that is missing, else the first that is too many.
    names = [s.name for s in wanted]
    missing = [n for n in names if n not in given]
    unknown = [n for n in given if n not in names]
    if missing:
        reason = f"argument '{missing[0]}' is missing"
    else:
        reason = f"no argument '{unknown[0]}'"
    raise MeshprepError(f"loop '{loop.name}': {reason}: it takes {', '.join(names)}")


def sharing(loop: Loop, slot: Slot, other: Slot) -> MeshprepError:
    """The error for two arguments in the same memory, of which the first is written."""
    return MeshprepError(
        f"loop '{loop.name}': arguments '{slot.name}' and '{other.name}' "
        f"share memory and '{slot.name}' is written: pass separate arrays"
    )
