"""Runs a kernel over the ranges of a schedule with the arrays of a matrix, x and y."""

import threading
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cpu.pool import NO_COUNTERS, Step, Team, on_one_thread
from ..cpu.schedule import Schedule, Turns, in_phases
from ..cpu.source import alone, shared
from ..errors import MeshprepError
from ..kernel.compiler import import_numba
from ..plan import Variant
from ..types.maps import Bools, Int64s, distinct, read_only
from .kernels import PART, ROWS, TOTAL
from .stores import LocalMatrices

Vector = NDArray[Any]
# The threads, turns, x and y.
Call = Callable[[Team, Turns, Vector, Vector], None]
# Matrices with fewer values are worked on by one thread.
WORTHWHILE = 1 << 16
NO_PARTS = np.zeros(0)


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
        self, x: Vector, y: Vector, threads: int | None = None, turns: Turns | None = None
    ) -> None:
        """Run on arrays that were checked.

        ``threads`` are the most that run, None for as many as there are; ``turns`` of None stands
        for the whole schedule.
        """
        some = self.schedule.whole if turns is None else turns
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
        """All but the threads, the turns, x and y is the same in every call."""
        if not self._calls:
            fixed: list[Vector] = [np.zeros(0, np.int32), *self.arrays.values()]
            run = self._compiled([NO_COUNTERS, *self.schedule.whole, *fixed, read_only(x), y])

            def call(team: Team, turns: Turns, x: Vector, y: Vector) -> None:
                steps: list[Step] = [(run, (*turns, *fixed, x, y))]
                n_turns = int(turns[0][1] - turns[0][0]) if self._large else 1
                team.run(n_turns, steps, on_one_thread(steps))

            self._calls.append(call)
        return self._calls[0]

    def _compiled(self, given: Sequence[Vector]) -> Callable[..., int]:
        from ..cpu.build import Inlined, Request, build

        import_numba()
        types = tuple((a.dtype.str, a.ndim, a.flags.writeable) for a in given)
        key = (self.kernel, self.room, self._large, types)
        if key not in _kept:
            _kept[key] = build(Request(self._text(), (Inlined(self.kernel, False, False),)), given)
        return _kept[key]

    def _text(self) -> str:
        names = [*self.arrays, "x", "y"]
        lines = [f"def elements(start, stop, order, {', '.join(names)}):"]
        last = ""
        if self.room:
            lines.append(f"    room = stack(y, {self.room})")
            last = f", room, {self.dofs}"
        lines.append(f"    kernel((start, stop), {', '.join(names)}{last})")
        run = shared(names) if self._large else alone(names)
        return "\n".join([*lines, "", "", run])


_kept: dict[Hashable, Callable[..., int]] = {}


# Nonzeros and rows that a thread takes at a time.
PIECE = 1 << 14
# A row with more nonzeros is cut into parts of as many; no choice, so that bits do not depend on
# one.
LONG = 1 << 15


def row_pieces(
    row_ptr: NDArray[np.integer], piece: int = PIECE, only: Bools | None = None
) -> Int64s:
    """Pieces of about equally many nonzeros and rows, then parts of long rows, then their sums.

    Gives (n, 4) of kind, begin, end and target: rows ``begin`` to ``end - 1``; nonzeros whose sum
    is part ``target``; or parts whose sum is row ``target``. ``piece`` is of nonzeros and rows;
    of the rows in ``only`` pieces end where others begin.
    """
    rows = row_ptr.size - 1
    work = row_ptr + np.arange(rows + 1, dtype=np.int64)
    cuts = np.searchsorted(work, np.arange(piece, work[-1], piece))
    only = np.ones(rows, np.bool_) if only is None else only
    long = np.flatnonzero(np.diff(row_ptr) > LONG)
    turns = np.flatnonzero(np.diff(only)) + 1
    begin = distinct(np.concatenate([[0], cuts, long, long + 1, turns]))
    begin = begin[begin < rows]
    ends = np.append(begin, rows)[1:]
    whole = np.column_stack([begin, ends])[only[begin] & ~np.isin(begin, long)]
    long = long[only[long]]
    of_rows = np.column_stack([np.full(len(whole), ROWS), whole, np.zeros(len(whole), np.int64)])
    return np.concatenate([of_rows, long_rows(row_ptr, long)]).astype(np.int64)


def long_rows(row_ptr: NDArray[np.integer], rows: NDArray[np.integer], part: int = LONG) -> Int64s:
    """Pieces of some rows: parts of up to ``part`` nonzeros, then a sum a row."""
    parts: list[tuple[int, int, int, int]] = []
    totals = []
    for row in rows.tolist():
        first, last = int(row_ptr[row]), int(row_ptr[row + 1])
        before = len(parts)
        for begin in range(first, last, part):
            parts.append((PART, begin, min(begin + part, last), len(parts)))
        totals.append((TOTAL, before, len(parts), row))
    return np.array([*parts, *totals], np.int64).reshape(-1, 4)


def schedule(pieces: Int64s, row_ptr: NDArray[np.integer], piece: int = PIECE) -> Schedule:
    """Pieces in turn, small ones several at a time; sums of parts wait for all parts.

    One thread runs what is not enough for two.
    """
    n, sums = len(pieces), int((pieces[:, 0] == TOTAL).sum())
    kind, begin, end = pieces[: n - sums, :3].T
    work, whole = end - begin, kind == ROWS
    work[whole] += row_ptr[end[whole]] - row_ptr[begin[whole]]
    done = np.cumsum(work)
    # a range ends with the piece that fills it
    full = np.searchsorted(done, np.arange(piece, done[-1] if done.size else 0, piece)) + 1
    ends = distinct(np.append(full, n - sums))
    offset = np.concatenate([[0], ends, np.arange(n - sums, n) + 1]).astype(np.int64)
    phases = np.array([0, ends.size, ends.size + sums] if sums else [0, ends.size])
    turns = in_phases(offset[:-1], offset[1:], phases)
    return Schedule(turns, parallel=ends.size > 1)


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
