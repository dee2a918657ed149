"""The structure of a loop, on which its text depends; the text never depends on a mesh."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...kernel.bind import Slot
from ...kernel.rows import Row
from ...plan import LoopPlan
from ...types.loops import Access, Loop
from ..strategies import Strategy

# Numbers of values that CUDA loads or stores at once.
WIDTHS = (2, 4, 8, 16)
# Bytes that CUDA loads or stores at once, at most.
MOST_BYTES = 16


@dataclass(frozen=True)
class SharedRow:
    """The staged values of a point: a row in shared memory."""

    stride: int  # bytes from one row to the next
    unit: int  # rows begin at multiples of so many bytes
    offset: Mapping[int, int]  # bytes from the start of a row to each dat, by slot number


def values_at_once(dim: int, itemsize: int) -> int:
    """The number of values of a row that can be moved at once: up to 16 bytes."""
    fits = [w for w in WIDTHS if dim % w == 0 and w * itemsize <= MOST_BYTES]
    return max(fits, default=1)


def shared_row(slots: Mapping[int, Slot]) -> SharedRow:
    """The row of a set's staged dats, by slot number."""
    # Larger pieces come first, so that all are aligned.
    piece = {}
    for i, slot in slots.items():
        itemsize = slot.dtype.itemsize
        piece[i] = itemsize * values_at_once(slot.dim, itemsize)
    offset: dict[int, int] = {}
    end = 0
    for i in sorted(slots, key=lambda i: -piece[i]):
        offset[i] = end
        end += slots[i].dim * slots[i].dtype.itemsize
    unit = max(piece.values())
    # With an odd number of units, the same component of neighbouring points lies in
    # different banks of shared memory.
    units = -(-end // unit) | 1
    return SharedRow(units * unit, unit, offset)


C_TYPES = {
    "f4": "float",
    "f8": "double",
    "i1": "signed char",
    "i2": "short",
    "i4": "int",
    "i8": "long long",
    "u1": "unsigned char",
    "u2": "unsigned short",
    "u4": "unsigned int",
    "u8": "unsigned long long",
}

LOCAL_TYPE = np.dtype("u2")  # of local maps
MAP_TYPE = np.dtype("i4")  # of maps


@dataclass(frozen=True, eq=False)
class LoopShape:
    """A loop, a strategy and layouts, with the properties on which the text depends.

    In the text ``s0`` is the dat of slot 0, ``h0`` its values in shared memory, ``points0``
    the staging list of the first to-set, ``r0`` the first row of the kernel, ``t0`` the
    temporary array of the increments of slot 0; ``map0`` and ``local0`` are pieces of an
    element's points, among all points and among those of its block.
    """

    plan: LoopPlan
    slots: tuple[Slot, ...]
    rows: tuple[Row, ...]
    strategy: Strategy
    commit: str
    function: str
    threads: int
    vectors: bool = True  # load and store rows as vectors
    listed: bool = False  # blocks list their elements
    several: bool = False  # blocks have more elements than threads
    wide: bool = False  # arrays may hold more values than 32 bits count

    @property
    def loop(self) -> Loop:
        return self.plan.loop

    @cached_property
    def sets(self) -> tuple[str, ...]:
        """The to-sets, in the order of the maps."""
        return tuple(dict.fromkeys(self.plan.maps[m].to_set for m in self.loop.maps))

    @cached_property
    def staged(self) -> tuple[int, ...]:
        """Slots with a value for each point of a block in shared memory."""
        return tuple(i for i in range(len(self.slots)) if self._stages(i))

    @cached_property
    def shared_rows(self) -> dict[int, SharedRow]:
        """The row of staged values of each to-set, by its number; largest unit first."""
        rows: dict[int, SharedRow] = {}
        for s in sorted({self.set_of(i) for i in self.staged}):
            staged = {i: self.slots[i] for i in self.staged if self.set_of(i) == s}
            rows[s] = shared_row(staged)
        return dict(sorted(rows.items(), key=lambda item: -item[1].unit))

    @cached_property
    def gathered(self) -> tuple[int, ...]:
        """Slots whose increments a block leaves in shared memory, wide types first."""
        if self.strategy.adds != "gather":
            return ()
        return tuple(sorted(self.added, key=lambda i: -self.slots[i].dtype.itemsize))

    @cached_property
    def added(self) -> tuple[int, ...]:
        """Slots that elements add to through maps."""
        slots = range(len(self.slots))
        return tuple(i for i in slots if any(r.summed for r in self.rows_to(i)))

    @cached_property
    def summed(self) -> tuple[int, ...]:
        """Slots whose sums a block starts from zero, and adds to the dat at its end.

        Other sums start from the values of the dat: they are staged along with dats that
        are read at the same points.
        """
        read = [i for i in self.staged if self.slots[i].access is Access.READ]
        sets_read = {self.set_of(i) for i in read}
        staged_alone = []
        if not self.strategy.collapsed:
            staged_alone = [i for i in self.staged if self.set_of(i) not in sets_read]
        return tuple(i for i in self.added if i in staged_alone or i in self.gathered)

    @cached_property
    def placed(self) -> tuple[Row, ...]:
        """Rows that are added to a matrix, each value at its place in global memory."""
        return tuple(r for r in self.rows if r.placed and r.table is not None)

    @cached_property
    def turned(self) -> tuple[int, ...]:
        """Slots that elements write through maps without adding: in turn."""
        turned = []
        for i in range(len(self.slots)):
            rows = [r for r in self.rows_to(i) if r.table is not None and not r.adds]
            if any(r.stored for r in rows):
                turned.append(i)
        return tuple(turned)

    @cached_property
    def committed(self) -> tuple[int, ...]:
        """Slots that elements write through maps."""
        return tuple(sorted(self.added + self.turned))

    @cached_property
    def commits(self) -> dict[int, list[int]]:
        """The slots that a block brings to global memory at its end, by to-set."""
        slots_of_set: dict[int, list[int]] = {}
        for i in self.committed:
            if i in self.staged or i in self.gathered:
                slots_of_set.setdefault(self.set_of(i), []).append(i)
        return dict(sorted(slots_of_set.items()))

    @cached_property
    def reduced(self) -> tuple[int, ...]:
        """Slots of globals that elements add to, lower or raise."""
        return tuple(i for i, s in enumerate(self.slots) if s.rows is None and s.written)

    @cached_property
    def roles(self) -> bool:
        """True where points of a staging list are committed in different ways."""
        return self.commit == "atomics" or self._some_unwritten()

    def rows_to(self, slot: int) -> list[Row]:
        """The rows that reach a dat."""
        return [r for r in self.rows if r.array == f"s{slot}"]

    def set_of(self, slot: int) -> int:
        """The number of the to-set that a dat lies on."""
        return self.sets.index(str(self.slots[slot].rows))

    def uses_local(self, row: Row) -> bool:
        """True for rows found in shared memory, by the local map."""
        return row.table is not None and int(row.array[1:]) in self.staged

    def uses_map(self, row: Row) -> bool:
        """True for rows found in global memory, by the map itself."""
        if row.table is None or row.placed or self.uses_local(row):
            return False
        return not (row.adds and self.strategy.adds in ("gather", "apart"))

    @property
    def permutes(self) -> bool:
        """True where maps and colours have the order in which threads take elements."""
        return self.strategy.permutes or self.listed

    @property
    def place(self) -> str:
        """The variable with the row of an element in maps and colours."""
        if self.permutes:
            return "place"
        return "e"

    @property
    def own(self) -> str:
        """The variable with the number of a thread's element in its block."""
        if self.several:
            return "own"
        return "MP_THREAD"

    def width(self, slot: int) -> int:
        """The number of values of a dat that are moved at once: up to 16 bytes."""
        dat = self.slots[slot]
        if not self.vectors or dat.rows is None or dat.soa:
            return 1
        return values_at_once(dat.dim, dat.dtype.itemsize)

    @cached_property
    def used_sets(self) -> list[int]:
        """The to-sets whose staging lists the text goes through."""
        return sorted({self.set_of(i) for i in (*self.staged, *self.gathered)})

    @property
    def writes(self) -> bool:
        """True where several elements may write the same values."""
        return bool(self.committed or self.placed)

    @property
    def takes_turns(self) -> bool:
        """True where thread colours keep the writes of elements apart."""
        return self.strategy.adds == "colours" and self.writes

    @property
    def head(self) -> list[str]:
        """The names of the numbers that a block loads when it begins."""
        names = ["begin", "count"]
        if self.takes_turns:
            names.append("colours")
        if self.gathered:
            names.append("block")
        for s in self.used_sets:
            names += [f"from{s}", f"many{s}"]
        return names

    @property
    def head_piece(self) -> int:
        """The number of these numbers that are loaded at once."""
        return MOST_BYTES // self.index_type.itemsize

    @property
    def index_type(self) -> np.dtype:
        """The dtype of numbers that count the values of arrays."""
        return np.dtype("i8" if self.wide else "i4")

    def near(self, rows: Callable[[Row], bool], itemsize: int) -> list[list[Row]]:
        """Some rows, one for each column of a map, in pieces that are loaded at once."""
        remaining = unique(self.rows, rows)
        pieces = []
        while remaining:
            # Take the widest load that the remaining columns fill.
            fits = [w for w in WIDTHS if w <= len(remaining) and w * itemsize <= MOST_BYTES]
            width = max(fits, default=1)
            pieces.append(remaining[:width])
            remaining = remaining[width:]
        return pieces

    @property
    def local_pieces(self) -> list[list[Row]]:
        """The rows of an element that need a column of a local map, in pieces."""
        return self.near(self.uses_local, LOCAL_TYPE.itemsize)

    @property
    def map_pieces(self) -> list[list[Row]]:
        """The rows of an element that need a column of a map, in pieces."""
        return self.near(self.uses_map, MAP_TYPE.itemsize)

    def c_type(self, slot: int) -> str:
        return C_TYPES[self.slots[slot].dtype.str[1:]]

    def _stages(self, slot: int) -> bool:
        """True for a dat that blocks stage in shared memory."""
        if not (self.strategy.blocks and self.strategy.stages):
            return False
        if all(r.table is None for r in self.rows_to(slot)):
            return False
        if self.slots[slot].access is Access.READ:
            return self.strategy.stages_reads
        return slot in self.turned or (
            self.strategy.adds != "gather" and slot in self.added
        )

    def _some_unwritten(self) -> bool:
        """True where a staging list has points that its block may only read."""
        written = self.loop.conflict_columns
        into = {self.plan.maps[m].to_set for m in written}
        return any(
            len(written.get(m, ())) < self.plan.maps[m].arity
            for m in self.loop.maps
            if self.plan.maps[m].to_set in into
        )


def unique(rows: Sequence[Row], wanted: Callable[[Row], bool]) -> list[Row]:
    """The first wanted row of each column of a map."""
    row_of_column: dict[tuple[str | None, int], Row] = {}
    for row in rows:
        if wanted(row):
            row_of_column.setdefault((row.table, row.column), row)
    return list(row_of_column.values())
