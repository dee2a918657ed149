"""Runs a kernel with the arrays of a matrix, x and y over the ranges of a schedule."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._numba.installed import import_numba
from ..cpu.kept import KeptArrays
from ..cpu.pool import BoundCode, OneThread, Team
from ..cpu.source.text import alone, shared
from ..cpu.strategies import Schedule, in_phases
from ..errors import MeshprepError
from ..plan import Variant
from ..types.maps import distinct, read_only
from .stores import LocalMatrices

Vector = NDArray[Any]
# Matrices with fewer values take one thread.
WORTHWHILE = 1 << 16


@dataclass(frozen=True, eq=False)
class MatrixCode:
    """A kernel with the arrays of a matrix and a schedule; compiled for its first call."""

    # One of :mod:`.kernels`; it takes a range, the arrays, x and y.
    kernel: Callable[..., None]
    # The arrays of the matrix by name, in the order in which the kernel takes them.
    arrays: dict[str, NDArray[Any]]
    schedule: Schedule
    # The dofs of an element, where the last arguments of the kernel are memory for as many
    # values, and this number; else 0.
    dofs: int = 0
    # By the number of threads asked for.
    _teams: dict[int | None, Team] = field(default_factory=dict)

    def __reduce__(self) -> Any:
        """Refuses copies: the arrays are views, whose addresses the compiled code has."""
        raise MeshprepError(
            "what multiplies works on the memory of its matrix: copy the matrix, and make "
            "it anew"
        )

    def run(self, x: Vector, y: Vector, threads: int | None = None) -> None:
        """Run on arrays that were checked, on at most ``threads`` threads; None for all."""
        from ..cpu.build import words_of

        team = self._teams.setdefault(threads, Team(threads))
        code, fixed_words = self._compiled
        if not self._memory.are_as_before():
            raise MeshprepError(
                "an array of the matrix has been given other memory or another form since "
                "what multiplies was made: make it anew"
            )
        # A small matrix is one turn, since waking threads would take longer.
        turns = self.schedule.whole
        arrays = (*self._fixed, read_only(x), y)
        words = [*fixed_words, *words_of(arrays[-2:])]
        step = BoundCode(code=code, turns=turns, arrays=arrays, words=words)
        n_turns = self.schedule.n_turns if self._large else 1
        team.run(n_turns, [step], OneThread([step]))

    @cached_property
    def _memory(self) -> KeptArrays:
        """The arrays of the user, whose memory compiled code relies on."""
        return KeptArrays([_owner_of(array) for array in self.arrays.values()])

    @cached_property
    def _large(self) -> bool:
        return self.schedule.parallel and self.arrays["values"].size >= WORTHWHILE

    @cached_property
    def _fixed(self) -> list[Vector]:
        """The arrays that are the same in every call: an unused order, and the matrix's."""
        return [np.zeros(0, np.int32), *self.arrays.values()]

    @cached_property
    def _compiled(self) -> tuple[Any, list[int]]:
        """The code, and the words of the arrays that are the same in every call."""
        from ..cpu.build import Inlined, Request, build_native, words_of

        import_numba()
        y = np.zeros(0, self.arrays["values"].dtype)
        _, table, waits = self.schedule.whole
        arguments: list[Vector] = [table, waits, *self._fixed, read_only(y), y]
        types = tuple((a.dtype.str, a.ndim, a.flags.writeable) for a in arguments)
        key = (self.kernel, self.dofs, self._large, types)
        if key not in _kept:
            # Large matrices are shared among threads, turn by turn; small ones are not
            # worth it.
            names = [*self.arrays, "x", "y"]
            if self._large:
                body = shared(names)
            else:
                body = alone(names)
            kernels = (Inlined(self.kernel, False, False),)
            argument_names = ("turns", "waits", "order", *names)
            request = Request(self._text(), kernels, body=body, names=argument_names)
            _kept[key] = build_native(request, arguments)
        return _kept[key], words_of([table, waits, *self._fixed])

    def _text(self) -> str:
        """``elements``, which calls the kernel with a range of places."""
        names = ", ".join([*self.arrays, "x", "y"])
        lines = [f"def elements(start, stop, order, {names}):"]
        room = ""
        if self.dofs:
            lines.append(f"    room = stack(y, {self.dofs})")
            room = f", room, {self.dofs}"
        lines.append(f"    kernel((start, stop), {names}{room})")
        return "\n".join(lines)


def _owner_of(array: NDArray[Any]) -> NDArray[Any]:
    """The array that a view is of; an array that is no view itself."""
    return array.base if isinstance(array.base, np.ndarray) else array


# Compiled kernels of this process, by all that they depend on.
_kept: dict[Hashable, Any] = {}

# Nonzeros and rows together that a thread takes at a time.
PIECE = 1 << 14


def row_schedule(
    row_ptr: NDArray[np.integer],
    piece: int = PIECE,
    chosen: NDArray[np.bool_] | None = None,
) -> Schedule:
    """Ranges of whole rows, with about ``piece`` nonzeros and rows together each.

    ``chosen`` are the rows that run; None for all.
    """
    rows = row_ptr.size - 1
    work = row_ptr + np.arange(rows + 1, dtype=np.int64)
    cuts = np.searchsorted(work, np.arange(piece, work[-1], piece))
    offset = distinct(np.concatenate([[0], cuts, [rows]])).astype(np.int64)
    start = offset[:-1]
    stop = offset[1:]
    if chosen is not None:
        # Ranges end where rows begin or cease to be chosen, too.
        turns_of_choice = np.flatnonzero(np.diff(chosen)) + 1
        offset = distinct(np.concatenate([offset, turns_of_choice])).astype(np.int64)
        start = offset[:-1][chosen[offset[:-1]]]
        stop = offset[1:][chosen[offset[:-1]]]
    turns = in_phases(start, stop, np.array([0, start.size]))
    return Schedule(turns, parallel=len(turns) > 1)


def check_blocks(matrix: LocalMatrices, blocks: Variant) -> None:
    """Raise MeshprepError where two blocks of a colour have a common dof. O(entries)."""
    if blocks.block_offset[-1] != len(matrix.dofs):
        raise MeshprepError(
            f"the plan's loop has {blocks.block_offset[-1]} elements, the matrix "
            f"{len(matrix.dofs)}: give the plan of a loop over the elements of the matrix"
        )
    # Sort by place, in which the elements of a block stand together.
    dofs_by_place = blocks.by_place(matrix.dofs)
    block = blocks.block_of_place()
    colour = blocks.colour_of_block()[block]
    # The last block that wrote its number at a dof; dof -1 is the last entry.
    owner = np.empty(matrix.n_rows + 1, np.int32)
    for c in range(blocks.n_block_colours):
        dofs = dofs_by_place[colour == c]
        block_of_dofs = block[colour == c, None]
        owner[dofs] = block_of_dofs
        if ((owner[dofs] != block_of_dofs) & (dofs >= 0)).any():
            raise MeshprepError(
                f"blocks of colour {c} have a dof in common: give the plan of a loop that "
                "adds to the dofs of the matrix"
            )
