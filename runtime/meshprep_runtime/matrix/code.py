"""Runs a kernel over the ranges of a schedule with the arrays of a matrix, x and y."""

import threading
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cpu.pool import Team
from ..cpu.schedule import Ranges, Schedule
from ..cpu.source import COUNTER_ROOM, parallel
from ..errors import MeshprepError
from ..kernel.compiler import import_numba
from ..maps import read_only

Vector = NDArray[Any]
# The threads, ranges, x and y.
Call = Callable[[Team, Ranges, Vector, Vector], None]
# Matrices with fewer values are worked on by one thread.
WORTHWHILE = 1 << 16
NO_PARTS = np.zeros(0)
# The ranges in the order of several threads' phases, so that sums are the same.
SERIAL = """\
def run(who, range_offset, phase_offset, range_order, order, {params}):
    for b in range_order:
        elements(range_offset[b], range_offset[b + 1], order, {params})
"""


@dataclass(frozen=True, eq=False)
class MatrixCode:
    """What runs for one store."""

    kernel: Callable[..., None]  # one of :mod:`kernels`; it takes a range, the arrays, x and y
    # By name: those of the matrix, in the order in which the kernel takes them.
    arrays: dict[str, NDArray[Any]]
    schedule: Schedule
    room: int = 0  # values that a thread needs room for, which the kernel takes last, with ``dofs``
    dofs: int = 0  # of an element
    _calls: list[Call] = field(default_factory=list)
    _teams: dict[int | None, Team] = field(default_factory=dict)

    def __reduce__(self) -> Any:
        """Its arrays are views, and what is compiled keeps them."""
        raise MeshprepError(
            "what multiplies works on the memory of its matrix: copy the matrix, and make it anew"
        )

    def run(
        self, x: Vector, y: Vector, threads: int | None = None, ranges: Ranges | None = None
    ) -> None:
        """Run on arrays that were checked.

        ``threads`` are the most that run, None for as many as there are; ``ranges`` of None stands
        for the whole schedule.
        """
        some = self.schedule.ranges if ranges is None else ranges
        team = self._teams.setdefault(threads, Team(threads))
        with self._alone:
            self._call(x, y)(team, some, read_only(x), y)

    @cached_property
    def _alone(self) -> AbstractContextManager[Any]:
        """Calls from several threads take turns where they leave parts of long rows here."""
        return threading.Lock() if self.arrays.get("parts", NO_PARTS).size else nullcontext()

    @cached_property
    def _large(self) -> bool:
        return self.schedule.parallel and self.arrays["values"].size >= WORTHWHILE

    def _call(self, x: Vector, y: Vector) -> Call:
        """All but the threads, the ranges, x and y is the same in every call."""
        if not self._calls:
            fixed: list[Vector] = [np.zeros(0, np.int32), *self.arrays.values()]
            given: list[Vector] = [*self.schedule.ranges, *fixed, read_only(x), y]
            if self._large:
                run = self._compiled([np.zeros(COUNTER_ROOM, np.int64), *given])

                def call(team: Team, ranges: Ranges, x: Vector, y: Vector) -> None:
                    team.run(ranges[2].size, lambda several: [(run, (*ranges, *fixed, x, y))])

            else:
                run = self._compiled(given)

                def call(team: Team, ranges: Ranges, x: Vector, y: Vector) -> None:
                    run(0, *ranges, *fixed, x, y)

            self._calls.append(call)
        return self._calls[0]

    def _compiled(self, given: Sequence[Vector]) -> Callable[..., None]:
        from ..cpu.build import Request, build

        import_numba()
        types = tuple((a.dtype.str, a.ndim, a.flags.writeable) for a in given)
        key = (self.kernel, self.room, self._large, types)
        if key not in _kept:
            _kept[key] = build(Request(self.kernel, self._text(), False, False, False), given)
        return _kept[key]

    def _text(self) -> str:
        names = [*self.arrays, "x", "y"]
        lines = [f"def elements(start, stop, order, {', '.join(names)}):"]
        last = ""
        if self.room:
            lines.append(f"    room = stack(y, {self.room})")
            last = f", room, {self.dofs}"
        lines.append(f"    kernel((start, stop), {', '.join(names)}{last})")
        run = parallel(names, ()) if self._large else SERIAL.format(params=", ".join(names))
        return "\n".join([*lines, "", "", run])


_kept: dict[Hashable, Callable[..., None]] = {}
