"""What a chain has recorded: calls of loops, and values given to globals between them."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...kernel.bind import bound
from ...loop import ParLoop
from ...loops import Access, Loop
from ..dat import ProgramDat
from .numbers import with_common_names
from .reduced import ReducedGlobal


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
    stored = (
        (n, id(v), getattr(v, "layout", "")) if isinstance(v, Watched) else (n,)
        for n, v in given.items()
    )
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
