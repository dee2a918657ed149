"""The records of a chain: calls of loops, and values given to globals between them."""

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
    """A queue of loops, and of values that globals get between them."""

    def assign(self, target: "ReducedGlobal", values: NDArray[Any]) -> None:
        """Queue new values."""


class ReducedGlobal:
    """Values that loops reduce, made by ``Program.reduced``.

    Queued loops run when the values are read, not before.

    Parameters
    ----------
    values : (dim,) array

    Attributes
    ----------
    chain : Chain or None
        The chain with queued loops that reduce into it.
    """

    # As of dats: the values of a global are always stored.
    dropped = False

    def __init__(self, values: NDArray[Any]) -> None:
        self.chain: GlobalQueue | None = None
        self.stored = values

    def __getstate__(self) -> dict[str, Any]:
        """The state of a copy, which has no queue."""
        return {"chain": None, "stored": self.array}

    @property
    def array(self) -> NDArray[Any]:
        """The values themselves; queued loops run first."""
        if self.chain is not None:
            self.chain.flush()
        return self.stored

    @property
    def value(self) -> NDArray[Any]:
        """A copy of the values; queued loops run first."""
        return self.array.copy()

    def set(self, values: ArrayLike) -> None:
        """Set the values that the loops called from now on start from.

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
    """The ``(dim,)`` values that a global starts from.

    Raises MeshprepError for values that the dtype cannot hold.
    """
    check_integer("dim of a global", dim)
    check_choice("dtype of a global", name_of_dtype(dtype), DTYPES)
    if np.shape(values) not in ((), (1,), (dim,)):
        raise MeshprepError(
            f"the global starts from {values!r}, must be one number or {dim}"
        )
    if not holds(np.dtype(dtype), values):
        raise MeshprepError(f"the global starts from {values!r}, which {dtype} cannot hold")
    return np.array(np.broadcast_to(np.asarray(values, dtype), (dim,)))


class RecordedLoop(Protocol):
    """The attributes of a program's loop that chains use."""

    loop: Loop

    @property
    def par_loop(self) -> ParLoop:
        """The ParLoop that ran last."""

    def check(self, given: Mapping[str, Any]) -> None:
        """Raise MeshprepError unless the arguments fit."""

    def taking(self, given: Mapping[str, Any]) -> ParLoop:
        """The ParLoop for dats in the layouts that these are stored in."""

    def run(self, given: Mapping[str, Any]) -> None:
        """Run the loop now."""

    def __call__(self, /, **given: Any) -> None:
        """Check the arguments, and run the loop or queue it."""

    @property
    def runner(self) -> Any:
        """The runner with the ``times`` of the loop; another object may replace these."""

    def alone(self, given: Mapping[str, Any]) -> list[BoundCode]:
        """The compiled steps of a call that always runs on one thread; else empty."""


@dataclass(frozen=True, eq=False)
class Call:
    """A call of a loop with dats, reduced globals, and copies of its constants.

    ``key`` is that of :func:`key_of`.
    """

    loop: RecordedLoop
    given: Mapping[str, Any]
    key: Hashable

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
# Arguments that run the chain before their values are read.
Watched = (ProgramDat, ReducedGlobal)


def key_of(loop: RecordedLoop, given: Mapping[str, Any]) -> Hashable:
    """A key that is equal for calls of one loop with the same dats and reduced globals.

    Values of constants and arrays may differ. The key has the names of all arguments, so
    that calls with one key pass the same checks.
    """
    arguments: list[Hashable] = []
    for name, value in given.items():
        if isinstance(value, Watched):
            arguments.append((name, id(value)))
        else:
            arguments.append((name,))
    return (id(loop), frozenset(arguments))


def with_constants(loop: RecordedLoop, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call, with checked copies of its constants.

    The caller may change the originals before the call runs.
    """
    arguments = dict(given)
    for slot in loop.par_loop.slots:
        value = arguments[slot.name]
        if slot.rows is None and slot.access is Access.READ:
            if isinstance(value, ReducedGlobal):
                value = value.array
            if not hasattr(value, "__cuda_array_interface__"):
                arguments[slot.name] = np.array(bound(loop.loop, slot, value))
    return arguments


def at_once(given: Mapping[str, Any], loop: Loop) -> bool:
    """True for a call with plain arrays, which must run at once.

    Nothing would run the chain before the program reads such an array.
    """
    constants = {a.name for a in loop.args if a.is_global and a.access is Access.READ}
    return any(not isinstance(v, Watched) for n, v in given.items() if n not in constants)


def add_place(error: Exception, records: Sequence[Record], n: int) -> None:
    """Add a note to an exception that names the call that raised it."""
    record = records[n]
    if isinstance(record, Call):
        calls = [r for r in records if isinstance(r, Call)]
        error.add_note(
            f"in loop '{record.loop.loop.name}', number {calls.index(record) + 1} of "
            f"{len(calls)} of a chain; the loops after it have not run"
        )


def common_names(calls: Sequence[Call]) -> tuple[tuple[Loop, ...], dict[str, ProgramDat]]:
    """The loops of a chain with one name for each dat, and the dats by these names."""
    dats_of_calls = [_dats_among(call.given) for call in calls]
    return with_common_names([call.loop.loop for call in calls], dats_of_calls)


def _dats_among(given: Mapping[str, Any]) -> dict[str, ProgramDat]:
    return {name: value for name, value in given.items() if isinstance(value, ProgramDat)}
