"""What a chain has recorded: calls of loops, and values given to globals between them."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ...cpu.pool import BoundCode
from ...errors import MeshprepError, check_choice, check_integer
from ...kernel.bind import DTYPES, bound, holds
from ...loop import ParLoop
from ...types.loops import Access, Loop
from ..dat import ProgramDat, Queue, name_of_dtype
from .numbers import with_common_names


class GlobalQueue(Queue, Protocol):
    """Loops that wait, and values that a global gets between them."""

    def assign(self, target: "ReducedGlobal", values: NDArray[Any]) -> None:
        """Queue new values."""


class ReducedGlobal:
    """Values that loops reduce, made by ``Program.reduced``.

    Queued loops run when the values are asked for, not before.

    Parameters
    ----------
    values : (dim,) array

    Attributes
    ----------
    chain : Chain or None
        What has queued loops that reduce into it.
    """

    dropped = False  # tiles store it

    def __init__(self, values: NDArray[Any]) -> None:
        self.chain: GlobalQueue | None = None
        self.stored = values

    def __getstate__(self) -> dict[str, Any]:
        """For copies, which no queue knows."""
        return {"chain": None, "stored": self.array}

    @property
    def array(self) -> NDArray[Any]:
        """The values themselves; loops that are queued run first."""
        if self.chain is not None:
            self.chain.flush()
        return self.stored

    @property
    def value(self) -> NDArray[Any]:
        """A copy of the values; loops that are queued run first."""
        return self.array.copy()

    def set(self, values: ArrayLike) -> None:
        """Let what follows start from other values.

        Parameters
        ----------
        values : number or (dim,) array

        Raises
        ------
        MeshprepError
            Where the dtype cannot hold the values.
        """
        new = start_values(values, self.stored.size, self.stored.dtype)
        if self.chain is None:
            self.stored[:] = new
        else:
            self.chain.assign(self, new)

    def __repr__(self) -> str:
        return f"reduced global, {self.stored.size} x {self.stored.dtype}"


def start_values(values: ArrayLike, dim: int, dtype: DTypeLike) -> NDArray[Any]:
    """The ``(dim,)`` values that a global starts from; refused where the dtype changes them."""
    check_integer("dim of a global", dim)
    check_choice("dtype of a global", name_of_dtype(dtype), DTYPES)
    wanted = np.dtype(dtype)
    if np.shape(values) not in ((), (1,), (dim,)):
        raise MeshprepError(f"the global starts from {values!r}, must be one number or {dim}")
    if not holds(wanted, values):
        raise MeshprepError(f"the global starts from {values!r}, which {dtype} cannot hold")
    return np.array(np.broadcast_to(np.asarray(values, wanted), (dim,)))


class RecordedLoop(Protocol):
    """A loop of a program."""

    loop: Loop

    @property
    def par_loop(self) -> ParLoop:
        """What ran last."""

    def check(self, given: Mapping[str, Any]) -> None:
        """Raise MeshprepError unless the arguments fit."""

    def taking(self, given: Mapping[str, Any]) -> ParLoop:
        """What runs it on dats as they are stored."""

    def run(self, given: Mapping[str, Any]) -> None:
        """Run it now."""

    def __call__(self, /, **given: Any) -> None:
        """Check and run it, or queue it."""

    @property
    def runner(self) -> Any:
        """Has its ``times``, which may be replaced."""

    def alone(self, given: Mapping[str, Any]) -> list[BoundCode]:
        """Its steps on one thread, where that is known to be enough; else none."""


@dataclass(frozen=True, eq=False)
class Call:
    """A call of a loop with dats, reduced globals, and copies of its constants."""

    loop: RecordedLoop
    given: Mapping[str, Any]
    key: Hashable  # see key_of

    def run(self) -> None:
        self.loop.run(self.given)


@dataclass(frozen=True, eq=False)
class Assign:
    """New values of a global."""

    target: ReducedGlobal
    values: NDArray[Any]

    @property
    def key(self) -> Hashable:
        """Equal for the same global."""
        return ("set", id(self.target))

    def run(self) -> None:
        self.target.stored[:] = self.values


Record = Call | Assign
# What tells a chain when somebody wants to see it.
Watched = (ProgramDat, ReducedGlobal)


def key_of(loop: RecordedLoop, given: Mapping[str, Any]) -> Hashable:
    """Equal for calls that touch the same data in the same way; constants and arrays are left out.

    Names of arguments are in it, so calls with one key pass the same checks.
    """
    stored = ((n, id(v)) if isinstance(v, Watched) else (n,) for n, v in given.items())
    return (id(loop), frozenset(stored))


def with_constants(loop: RecordedLoop, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call, constants as checked copies: the caller may change the originals."""
    taken = dict(given)
    for slot in loop.par_loop.slots:
        value = taken[slot.name]
        if slot.rows is None and slot.access is Access.READ:
            if isinstance(value, ReducedGlobal):
                value = value.array
            if not hasattr(value, "__cuda_array_interface__"):
                taken[slot.name] = np.array(bound(loop.loop, slot, value))
    return taken


def at_once(given: Mapping[str, Any], loop: Loop) -> bool:
    """True when a call changes or uses arrays that nobody watches: it cannot wait."""
    constants = {a.name for a in loop.args if a.is_global and a.access is Access.READ}
    return any(not isinstance(v, Watched) for n, v in given.items() if n not in constants)


def add_place(error: Exception, records: Sequence[Record], n: int) -> None:
    """Note in an exception which call raised it."""
    record = records[n]
    if isinstance(record, Call):
        calls = [r for r in records if isinstance(r, Call)]
        error.add_note(
            f"in loop '{record.loop.loop.name}', number {calls.index(record) + 1} of "
            f"{len(calls)} of a chain; the loops after it have not run"
        )


def common_names(calls: Sequence[Call]) -> tuple[tuple[Loop, ...], dict[str, ProgramDat]]:
    """The loops of a chain with one name for each dat, and the dats by these names."""
    given = [{n: v for n, v in call.given.items() if isinstance(v, ProgramDat)} for call in calls]
    return with_common_names([call.loop.loop for call in calls], given)
