"""From the arrays of a call to arrays that compiled code may trust, or an error that names one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import MeshprepError
from .loops import Access, Arg, Loop
from .plan import LoopPlan

DTYPES = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")


@dataclass(frozen=True)
class Slot:
    """What the array of one name must be; ``rows`` is the set, None for a global."""

    name: str
    access: Access
    dtype: np.dtype
    shape: tuple[int, ...]
    rows: str | None

    @property
    def written(self) -> bool:
        """True when the loop changes the array."""
        return self.access is not Access.READ


def slots(loop_plan: LoopPlan) -> tuple[Slot, ...]:
    """One slot for each name in the loop, in the order of its arguments.

    Raises
    ------
    MeshprepError
        For a dtype that loops do not run on, and for one dat with accesses that conflict: an
        element could see what another one has or has not written yet [G10 section 9.2].
    """
    made: dict[str, tuple[Arg, Slot]] = {}
    for arg in loop_plan.loop.args:
        slot = _slot(loop_plan, arg)
        if arg.name in made:
            _check_together(loop_plan.loop, made[arg.name], (arg, slot))
        made.setdefault(arg.name, (arg, slot))
    return tuple(slot for _, slot in made.values())


def bind(loop: Loop, wanted: Sequence[Slot], given: Mapping[str, Any]) -> list[NDArray]:
    """The arrays in the order of the slots, as (n, dim) or (dim,); those only read are read-only.

    Raises
    ------
    MeshprepError
        For names that are missing or unknown; dtype, shape, layout; arrays that cannot be
        written; memory that is written under one name and used under another.
    """
    if len(given) != len(wanted) or any(s.name not in given for s in wanted):
        raise _wrong_names(loop, wanted, given)
    arrays = [_bound(loop, slot, given[slot.name]) for slot in wanted]
    for i, slot in enumerate(wanted):
        if slot.written:
            for j, other in enumerate(wanted):
                if i != j and np.may_share_memory(arrays[i], arrays[j]):
                    raise MeshprepError(
                        f"loop '{loop.name}': arguments '{slot.name}' and '{other.name}' share "
                        f"memory and '{slot.name}' is written: pass separate arrays"
                    )
    return arrays


def _slot(loop_plan: LoopPlan, arg: Arg) -> Slot:
    dtype = np.dtype(arg.dtype)
    if dtype not in [np.dtype(d) for d in DTYPES]:
        raise MeshprepError(
            f"loop '{loop_plan.loop.name}': argument '{arg.name}' has dtype {arg.dtype}, but loops "
            f"run on {', '.join(DTYPES)}"
        )
    if arg.is_global:
        return Slot(arg.name, arg.access, dtype, (arg.dim,), None)
    rows = loop_plan.loop.over if arg.map is None else loop_plan.maps[arg.map].to_set
    return Slot(arg.name, arg.access, dtype, (loop_plan.sizes[rows], arg.dim), rows)


def _check_together(loop: Loop, first: tuple[Arg, Slot], second: tuple[Arg, Slot]) -> None:
    (a, slot), (b, other) = first, second
    where = f"loop '{loop.name}': argument '{a.name}' stands twice"
    if (slot.dtype, slot.shape, slot.rows) != (other.dtype, other.shape, other.rows):
        raise MeshprepError(f"{where}, with different dtypes, dims or sets: they must agree")
    if a.access is b.access is Access.READ:
        return
    # Colours keep apart all that is written through maps; nothing else.
    if a.access is not b.access or a.map is None or b.map is None:
        raise MeshprepError(
            f"{where}, with accesses that conflict ({a.access} and {b.access}): "
            "use another array for one of them, or one access for both through maps"
        )


def _bound(loop: Loop, slot: Slot, value: Any) -> NDArray:
    if slot.rows is None and not slot.written and isinstance(value, int | float | np.generic):
        value = _constant(loop, slot, value)
    if type(value) is not np.ndarray and type(value) is not np.memmap:
        raise MeshprepError(
            f"loop '{loop.name}': argument '{slot.name}' is a {type(value).__name__}, "
            "must be a NumPy array"
        )
    flags = value.flags
    if (
        value.dtype != slot.dtype
        or (value.shape != slot.shape and not (slot.shape[-1] == 1 and _flat(slot, value)))
        or not (flags.c_contiguous and flags.aligned)
        or (slot.written and not flags.writeable)
    ):
        raise _refusal(loop, slot, value)
    view: NDArray = value.view(np.ndarray).reshape(slot.shape)
    if not slot.written:
        view.flags.writeable = False
    return view


def _flat(slot: Slot, value: NDArray) -> bool:
    """True for (n,) where (n, 1) is meant."""
    return slot.rows is not None and value.shape == slot.shape[:1]


def _constant(loop: Loop, slot: Slot, value: float | np.generic) -> NDArray:
    if slot.dtype.kind != "f" and not _whole_within(value, slot.dtype):
        raise MeshprepError(
            f"loop '{loop.name}': argument '{slot.name}' is {value}, must be {slot.dtype}"
        )
    if slot.shape != (1,):
        raise MeshprepError(
            f"loop '{loop.name}': argument '{slot.name}' is one number, must be {slot.shape[0]}"
        )
    return np.full(slot.shape, value, dtype=slot.dtype)


def _whole_within(value: float | np.generic, dtype: np.dtype) -> bool:
    limits = np.iinfo(dtype)
    return bool(limits.min <= value <= limits.max) and int(value) == value  # type: ignore[operator]


def _refusal(loop: Loop, slot: Slot, value: NDArray) -> MeshprepError:
    where = f"loop '{loop.name}': argument '{slot.name}'"
    if value.dtype != slot.dtype:
        return MeshprepError(f"{where} has dtype {value.dtype}, must be {slot.dtype}")
    if value.shape != slot.shape:
        rows = "" if slot.rows is None else f", one row an element of '{slot.rows}'"
        short = f" or {slot.shape[:1]}" if slot.rows is not None and slot.shape[-1] == 1 else ""
        if not short or value.shape != slot.shape[:1]:
            return MeshprepError(
                f"{where} has shape {value.shape}, must be {slot.shape}{short}{rows}"
            )
    if not (value.flags.c_contiguous and value.flags.aligned):
        return MeshprepError(f"{where} is not contiguous: pass np.ascontiguousarray of it")
    return MeshprepError(f"{where} is read-only, but the loop changes it ({slot.access})")


def _wrong_names(loop: Loop, wanted: Sequence[Slot], given: Mapping[str, Any]) -> MeshprepError:
    names = [s.name for s in wanted]
    missing = [n for n in names if n not in given]
    unknown = [n for n in given if n not in names]
    what = f"argument '{missing[0]}' is missing" if missing else f"no argument '{unknown[0]}'"
    return MeshprepError(f"loop '{loop.name}': {what}: it takes {', '.join(names)}")
