"""Runs a kernel over the ranges of a schedule with the arrays of a matrix, x and y."""

import threading
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cpu.executor import launching
from ..cpu.schedule import Ranges, Schedule
from ..cpu.source import parallel
from ..errors import MeshprepError
from ..kernel.compiler import import_numba
from ..maps import read_only

Vector = NDArray[Any]
# Threads, ranges, x and y.
Call = Callable[[int, Ranges, Vector, Vector], None]
# Matrices with fewer values are worked on by one thread.
WORTHWHILE = 1 << 16
NO_PARTS = np.zeros(0)
# The ranges in the order of several threads' phases, so that sums are the same.
SERIAL = """\
def run(threads, range_offset, phase_offset, range_order, order, {params}):
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
    _calls: dict[bool, Call] = field(default_factory=dict)

    def __reduce__(self) -> Any:
        """Its arrays are views, and what is compiled keeps them."""
        raise MeshprepError(
            "what multiplies works on the memory of its matrix: copy the matrix, and make it anew"
        )

    def run(
        self, x: Vector, y: Vector, threads: int | None = None, ranges: Ranges | None = None
    ) -> None:
        """Run on arrays that were checked.

        ``threads`` of None stands for numba's number, ``ranges`` of None for the whole schedule.
        """
        some = self.schedule.ranges if ranges is None else ranges
        with self._alone:
            if self._large and (threads or import_numba().get_num_threads()) > 1:
                call = self._call(True, x, y)
                with launching("a product") as most:
                    call(min(most, threads or most), some, read_only(x), y)
            else:
                self._call(False, x, y)(1, some, read_only(x), y)

    @cached_property
    def _alone(self) -> AbstractContextManager[Any]:
        """Calls from several threads take turns where they leave parts of long rows here."""
        return threading.Lock() if self.arrays.get("parts", NO_PARTS).size else nullcontext()

    @cached_property
    def _large(self) -> bool:
        return self.schedule.parallel and self.arrays["values"].size >= WORTHWHILE

    def _call(self, on_threads: bool, x: Vector, y: Vector) -> Call:
        """All but the number of threads, the ranges, x and y is the same in every call."""
        if on_threads not in self._calls:
            fixed: list[Vector] = [np.zeros(0, np.int32), *self.arrays.values()]
            given: list[Vector] = [*self.schedule.ranges, *fixed, read_only(x), y]
            run = self._compiled(on_threads, given)
            self._calls[on_threads] = lambda threads, ranges, x, y: run(
                threads, *ranges, *fixed, x, y
            )
        return self._calls[on_threads]

    def _compiled(self, on_threads: bool, given: Sequence[Vector]) -> Callable[..., None]:
        from ..cpu.build import Request, build

        import_numba()
        types = tuple((a.dtype.str, a.ndim, a.flags.writeable) for a in given)
        key = (self.kernel, self.room, on_threads, types)
        if key not in _kept:
            text = self._text(on_threads)
            _kept[key] = build(Request(self.kernel, text, on_threads, False, False, False), given)
        return _kept[key]

    def _text(self, on_threads: bool) -> str:
        names = [*self.arrays, "x", "y"]
        lines = [f"def elements(start, stop, order, {', '.join(names)}):"]
        last = ""
        if self.room:
            lines.append(f"    room = stack(y, {self.room})")
            last = f", room, {self.dofs}"
        lines.append(f"    kernel((start, stop), {', '.join(names)}{last})")
        run = parallel(names, ()) if on_threads else SERIAL.format(params=", ".join(names))
        return "\n".join([*lines, "", "", run])


_kept: dict[Hashable, Callable[..., None]] = {}
