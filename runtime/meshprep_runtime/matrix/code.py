"""Runs a kernel over the ranges of a schedule with the arrays of a matrix, x and y."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cpu.pool import BoundCode, OneThread, Team
from ..cpu.source.text import alone, shared
from ..cpu.strategies import Schedule, in_phases
from ..errors import MeshprepError
from ..kernel.compiler import import_numba
from ..plan import Variant
from ..types.maps import distinct, read_only
from .stores import LocalMatrices

Vector = NDArray[Any]
# Matrices with fewer values are worked on by one thread.
WORTHWHILE = 1 << 16


@dataclass(frozen=True, eq=False)
class MatrixCode:
    """What runs for one store."""

    kernel: Callable[..., None]  # one of :mod:`kernels`; it takes a range, the arrays, x and y
    # By name: those of the matrix, in the order in which the kernel takes them.
    arrays: dict[str, NDArray[Any]]
    schedule: Schedule
    # Of an element, where the kernel takes room for as many values, and this number, last.
    dofs: int = 0
    _teams: dict[int | None, Team] = field(default_factory=dict)

    def __reduce__(self) -> Any:
        """Its arrays are views, and what is compiled keeps them."""
        raise MeshprepError(
            "what multiplies works on the memory of its matrix: copy the matrix, and make it anew"
        )

    def run(self, x: Vector, y: Vector, threads: int | None = None) -> None:
        """Run on arrays that were checked, on so many threads at most; None: all there are."""
        team = self._teams.setdefault(threads, Team(threads))
        from ..cpu.build import words_of

        code, known = self._compiled
        turns, arrays = self.schedule.whole, (*self._fixed, read_only(x), y)
        step = BoundCode(code, turns, arrays, words=[*known, *words_of(arrays[-2:])])
        n_turns = self.schedule.n_turns if self._large else 1
        team.run(n_turns, [step], OneThread([step]))

    @cached_property
    def _large(self) -> bool:
        return self.schedule.parallel and self.arrays["values"].size >= WORTHWHILE

    @cached_property
    def _fixed(self) -> list[Vector]:
        """What is the same in every call: no order, and the arrays."""
        return [np.zeros(0, np.int32), *self.arrays.values()]

    @cached_property
    def _compiled(self) -> tuple[Any, list[int]]:
        """The code, and where what is the same in every call lies."""
        from ..cpu.build import Inlined, Request, build_native, words_of

        import_numba()
        y = np.zeros(0, self.arrays["values"].dtype)
        given: list[Vector] = [*self.schedule.whole[1:], *self._fixed, read_only(y), y]
        types = tuple((a.dtype.str, a.ndim, a.flags.writeable) for a in given)
        key = (self.kernel, self.dofs, self._large, types)
        if key not in _kept:
            names = [*self.arrays, "x", "y"]
            body = shared(names) if self._large else alone(names)
            kernels = (Inlined(self.kernel, False, False),)
            every = ("turns", "waits", "order", *names)
            request = Request(self._text(), kernels, body=body, names=every)
            _kept[key] = build_native(request, given)
        return _kept[key], words_of([*self.schedule.whole[1:], *self._fixed])

    def _text(self) -> str:
        names = [*self.arrays, "x", "y"]
        lines = [f"def elements(start, stop, order, {', '.join(names)}):"]
        last = ""
        if self.dofs:
            lines.append(f"    room = stack(y, {self.dofs})")
            last = f", room, {self.dofs}"
        lines.append(f"    kernel((start, stop), {', '.join(names)}{last})")
        return "\n".join(lines)


_kept: dict[Hashable, Any] = {}


# Nonzeros and rows that a thread takes at a time.
PIECE = 1 << 14


def row_schedule(row_ptr: NDArray[np.integer], piece: int = PIECE) -> Schedule:
    """Ranges of rows with about ``piece`` nonzeros and rows each; a range ends with a whole row."""
    rows = row_ptr.size - 1
    work = row_ptr + np.arange(rows + 1, dtype=np.int64)
    cuts = np.searchsorted(work, np.arange(piece, work[-1], piece))
    offset = distinct(np.concatenate([[0], cuts, [rows]])).astype(np.int64)
    turns = in_phases(offset[:-1], offset[1:], np.array([0, offset.size - 1]))
    return Schedule(turns, parallel=len(turns) > 1)


def check_blocks(matrix: LocalMatrices, blocks: Variant) -> None:
    """Raise MeshprepError unless the blocks of a colour have no dof in common. O(entries)."""
    if blocks.block_offset[-1] != len(matrix.dofs):
        raise MeshprepError(
            f"the plan's loop has {blocks.block_offset[-1]} elements, the matrix "
            f"{len(matrix.dofs)}: give the plan of a loop over the elements of the matrix"
        )
    by_place, block = blocks.by_place(matrix.dofs), blocks.block_of_place()
    colour = blocks.colour_of_block()[block]
    owner = np.empty(matrix.n_rows + 1, np.int32)
    for c in range(blocks.n_block_colours):
        dofs, own = by_place[colour == c], block[colour == c, None]
        owner[dofs] = own
        if ((owner[dofs] != own) & (dofs >= 0)).any():
            raise MeshprepError(
                f"blocks of colour {c} have a dof in common: give the plan of a loop that adds to "
                "the dofs of the matrix"
            )
