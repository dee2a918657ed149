"""Increments across parts: executed on both sides, or sent back, by the bytes counted."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.loops import Access, Arg, Loop
from meshprep_runtime.types.maps import Int32s, Int64s, SetMap, distinct

from ..owners.inherit import Owners
from ..ranks import ALONE, Ranks
from ..subject import SplitSubject
from .ghosts import mark_boundary

WAYS = ("exec", "reverse", "auto")
# Bytes of memory that could be moved in the time of a message of increments: 16 us
# under MPI between two ranks of one machine, and more with more neighbours
# (docs/research/ranks.md).
EXCHANGE = 1 << 17


@dataclass(frozen=True)
class IncrementCost:
    """Cost of a call beyond the owned elements, summed over all parts."""

    increments: str  # the way chosen: ``"exec"`` or ``"reverse"``
    why: str
    elements: int  # ghosts that ``exec`` executes
    # Bytes that ``exec`` receives, where all dats are out of date, and that the ghosts
    # touch.
    exec_bytes: int
    reverse_bytes: int  # bytes that ``reverse`` receives, and sends back, and adds up
    exchanges: int  # parts that send increments back with ``reverse``


def increment_cost(
    subject: SplitSubject,
    owners: Owners,
    loop: Loop,
    way: str,
    parts: int,
    ranks: Ranks = ALONE,
) -> IncrementCost:
    """Count the bytes of both ways and choose one.

    Only increments of dats can be sent back; what is written otherwise is executed. Raises
    MeshprepError where ``way``, one of :data:`WAYS`, is ``"reverse"`` and the loop writes
    otherwise than by increments. Owners below ``parts`` are counted; ``ranks`` count the
    other parts.
    """
    # Count both ways on every rank, and add up.
    check_way(loop, way)
    border = _BorderElements.of(subject=subject, owners=owners, loop=loop, parts=parts)
    counts = ranks.allgather((*border.executed(), *border.sent_back()))
    elements, executed, sent, exchanges = map(sum, zip(*counts, strict=True))
    # Choose by bytes; messages decide where reverse saves fewer bytes than they cost.
    chosen = way
    why = "asked for"
    if _only_executed(loop) or not loop.conflict_columns:
        chosen = "exec"
        why = "no increments of dats"
    elif way == "auto" and executed <= sent:
        chosen = "exec"
        why = "fewer bytes"
    elif way == "auto" and executed <= sent + EXCHANGE * exchanges:
        chosen = "exec"
        why = "saves messages"
    elif way == "auto":
        chosen = "reverse"
        why = "fewer bytes"
    return IncrementCost(
        increments=chosen,
        why=why,
        elements=elements,
        exec_bytes=executed,
        reverse_bytes=sent,
        exchanges=exchanges,
    )


def check_way(loop: Loop, way: str) -> None:
    """Raise MeshprepError for ``reverse`` where a loop writes more than increments."""
    only_exec = _only_executed(loop)
    if way == "reverse" and only_exec:
        raise MeshprepError(
            f"loop '{loop.name}' writes '{only_exec[0]}' through a map otherwise than by "
            "increments of a dat, which cannot be sent back: use exec or auto"
        )


def _only_executed(loop: Loop) -> list[str]:
    """The arguments written through a map otherwise than by increments of a dat."""
    return [
        a.name
        for a in loop.args
        if a.conflicts and (a.access is not Access.INC or a.columns is not None)
    ]


@dataclass(frozen=True, eq=False)
class _BorderElements:
    """Elements of a loop that reach another part, and the owners of their points."""

    loop: Loop
    rows: Int64s  # (n,): the elements
    owner: Int32s  # (n,): their owners
    maps: dict[str, SetMap]  # by map name
    # By map name: (n, arity), owners of the points of their rows.
    reached: dict[str, Int32s]
    parts: int  # parts below it are counted

    @classmethod
    def of(
        cls,
        subject: SplitSubject,
        owners: Owners,
        loop: Loop,
        parts: int,
    ) -> "_BorderElements":
        """Find these elements of a loop by a pass over its maps."""
        owner = owners[loop.over]
        maps = {name: subject.maps[name] for name in loop.maps}
        crosses = np.zeros(owner.size, np.bool_)
        for m in maps.values():
            mark_boundary(
                table=m.table,
                owner=owner,
                owner_of_point=owners[m.to_set],
                boundary=crosses,
            )
        rows = np.flatnonzero(crosses)
        reached = {}
        for name, m in maps.items():
            owner_of_point = owners[m.to_set]
            reached[name] = owner_of_point[m.table[rows]]
        return cls(
            loop=loop,
            rows=rows,
            owner=owner[rows],
            maps=maps,
            reached=reached,
            parts=parts,
        )

    def executed(self) -> tuple[int, int]:
        """Ghosts that ``exec`` executes, and the bytes that this costs."""
        part, row = self._executing()
        args = self.loop.args
        # A ghost is computed, and what it reads directly is received with it.
        bytes_touched = sum(
            _touched(a) * max(1, len(a.index)) for a in args if not a.is_global
        )
        bytes_direct = sum(a.nbytes for a in args if _is_read(a) and a.map is None)
        # Points that owned border elements or ghosts read are received.
        counted = self._counted_rows()
        parts = np.concatenate([self.owner[counted], part])
        rows = np.concatenate([counted, row])
        bytes_of_points = self._read_bytes(parts, rows)
        bytes_of_ghosts = part.size * (bytes_touched + bytes_direct)
        return part.size, bytes_of_ghosts + bytes_of_points

    def sent_back(self) -> tuple[int, int]:
        """Bytes that ``reverse`` moves, and parts that send increments back."""
        # Ghosts that owned elements read are received.
        counted = self._counted_rows()
        part = self.owner[counted]
        reads = self._read_bytes(part, counted)
        # Increments are sent, and read again to be added up.
        written = (a for a in self.loop.args if a.conflicts)
        back = self._ghost_bytes(part, counted, written)
        # A part sends where one of its elements writes to a point of another part.
        senders = [part[:0]]
        for name, columns in self.loop.conflict_columns.items():
            reached = self.reached[name][counted]
            senders += [part[reached[:, column] != part] for column in columns]
        return reads + 2 * back, distinct(np.concatenate(senders)).size

    def _counted_rows(self) -> Int64s:
        """Border elements that a counted part owns."""
        return np.flatnonzero(self.owner < self.parts)

    def _executing(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Distinct pairs (part, border row of another part that it executes)."""
        n_rows = self.rows.size
        keys = [np.empty(0, np.int64)]
        for name, columns in self.loop.conflict_columns.items():
            for column in columns:
                part = self.reached[name][:, column]
                row = np.flatnonzero((part != self.owner) & (part < self.parts))
                keys.append(part[row] * np.int64(n_rows) + row)
        part, row = np.divmod(distinct(np.concatenate(keys)), max(1, n_rows))
        return part, row

    def _read_bytes(self, part: NDArray[np.integer], row: Int64s) -> int:
        """Bytes of the ghosts that these rows read."""
        read_args = [a for a in self.loop.args if _is_read(a)]
        return self._ghost_bytes(part, row, read_args)

    def _ghost_bytes(
        self, part: NDArray[np.integer], row: Int64s, args: Iterable[Arg]
    ) -> int:
        """Bytes of the distinct ghosts that these rows reach in these arguments."""
        # By dat and its set: the columns by map, and the bytes of an element.
        dats: dict[tuple[str, str], dict[str, set[int]]] = {}
        size: dict[tuple[str, str], int] = {}
        for a in args:
            if a.map is not None:
                key = (a.name, self.maps[a.map].to_set)
                dats.setdefault(key, {}).setdefault(a.map, set()).update(a.index)
                size[key] = max(size.get(key, 0), a.nbytes)
        # Count the pairs of a part and a point that it does not own, as keys whose upper
        # 32 bits are the part.
        total = 0
        upper_bits = part.astype(np.int64) << 32
        elements = self.rows[row]
        for key, columns in dats.items():
            pairs = [np.empty(0, np.int64)]
            for name, index in columns.items():
                for column in sorted(index):
                    points = self.maps[name].table[elements, column].astype(np.int64)
                    elsewhere = self.reached[name][row, column] != part
                    pairs.append((upper_bits | points)[elsewhere])
            total += distinct(np.concatenate(pairs)).size * size[key]
        return total


def _is_read(arg: Arg) -> bool:
    """Whether a loop reads the values of a dat in this argument."""
    return not arg.is_global and arg.access in (Access.READ, Access.RW)


def _touched(arg: Arg) -> int:
    """Bytes that an element moves for an argument: twice where it reads and writes it."""
    if arg.access in (Access.READ, Access.WRITE):
        return arg.nbytes
    return 2 * arg.nbytes
