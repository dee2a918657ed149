"""What the text of a loop depends on: the loop's structure, never the numbers of a mesh."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...kernel.bind import Slot
from ...kernel.rows import Row
from ...plan import LoopPlan
from ...types.loops import Access, Loop
from ..strategies import Strategy

# Values that CUDA moves at once.
WIDTHS, MOST_BYTES = (2, 4, 8, 16), 16


@dataclass(frozen=True)
class SharedRow:
    """The values of one point."""

    stride: int  # bytes from one point to the next
    unit: int  # bytes that rows begin at multiples of
    offset: Mapping[int, int]  # by slot number: bytes from the begin of a row to each dat


def values_at_once(dim: int, itemsize: int) -> int:
    """How many values of a row can be moved at once: up to 16 bytes that lie together."""
    return max((w for w in WIDTHS if dim % w == 0 and w * itemsize <= MOST_BYTES), default=1)


def shared_row(slots: Mapping[int, Slot]) -> SharedRow:
    """The row of a set's staged dats by slot, larger pieces first, so that all are aligned."""
    piece = {
        i: s.dtype.itemsize * values_at_once(s.dim, s.dtype.itemsize) for i, s in slots.items()
    }
    offset: dict[int, int] = {}
    end = 0
    for i in sorted(slots, key=lambda i: -piece[i]):
        offset[i] = end
        end += slots[i].dim * slots[i].dtype.itemsize
    unit = max(piece.values())
    # An odd number of units puts the same component of neighbouring points into different banks.
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

LOCAL_TYPE, MAP_TYPE = np.dtype("u2"), np.dtype("i4")


@dataclass(frozen=True, eq=False)
class LoopShape:
    """A loop, a strategy and layouts, as the writer of the text wants them.

    In the text ``s0`` is the dat of slot 0, ``h0`` its values in shared memory, ``points0`` the
    staging list of the first to-set, ``r0`` the first row of the kernel, ``t0`` the temporary array
    for what is added to slot 0; ``map0`` and ``local0`` are pieces of an element's points, among
    all and among those of its block. ``listed`` is true for blocks that list their elements,
    ``several`` where they have more elements than threads, ``wide`` where 32 bits do not count what
    arrays hold.
    """

    plan: LoopPlan
    slots: tuple[Slot, ...]
    rows: tuple[Row, ...]
    strategy: Strategy
    commit: str
    function: str
    threads: int
    vectors: bool = True
    listed: bool = False
    several: bool = False
    wide: bool = False

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
        """How staged values lie, by number of their to-set; what has the largest unit first."""
        sets = sorted({self.set_of(i) for i in self.staged})
        found = {
            s: shared_row({i: self.slots[i] for i in self.staged if self.set_of(i) == s})
            for s in sets
        }
        return dict(sorted(found.items(), key=lambda item: -item[1].unit))

    @cached_property
    def gathered(self) -> tuple[int, ...]:
        """Slots with a value for each increment of a block in shared memory, wide types first."""
        if self.strategy.adds != "gather":
            return ()
        return tuple(sorted(self.added, key=lambda i: -self.slots[i].dtype.itemsize))

    @cached_property
    def added(self) -> tuple[int, ...]:
        """Slots that elements add to through maps."""
        every = range(len(self.slots))
        return tuple(i for i in every if any(r.adds and not r.placed for r in self.rows_to(i)))

    @cached_property
    def summed(self) -> tuple[int, ...]:
        """Slots whose sums a block begins at zero: what it adds them to is read at its end.

        Where values are staged to be read at the same points, that is read along with them.
        """
        read = [i for i in self.staged if self.slots[i].access is Access.READ]
        along = {self.set_of(i) for i in read}
        staged = () if self.strategy.collapsed else self.staged
        own = [i for i in staged if self.set_of(i) not in along]
        return tuple(i for i in self.added if i in own or i in self.gathered)

    @cached_property
    def placed(self) -> tuple[Row, ...]:
        """Rows that are added to a matrix, each value at a place of its own in global memory."""
        return tuple(r for r in self.rows if r.placed and r.table is not None)

    @cached_property
    def turned(self) -> tuple[int, ...]:
        """Slots that elements write through maps without adding: one after the other, in turns."""
        return tuple(
            i
            for i in range(len(self.slots))
            if any(r.table is not None and r.stored and not r.adds for r in self.rows_to(i))
        )

    @cached_property
    def committed(self) -> tuple[int, ...]:
        return tuple(sorted(self.added + self.turned))

    @cached_property
    def commits(self) -> dict[int, list[int]]:
        """Those of them that a block brings to global memory at its end, by to-set."""
        kept = [i for i in self.committed if i in self.staged or i in self.gathered]
        sets = sorted({self.set_of(i) for i in kept})
        return {s: [i for i in kept if self.set_of(i) == s] for s in sets}

    @cached_property
    def reduced(self) -> tuple[int, ...]:
        """Slots of globals that elements add to, lower or raise."""
        wanted = [s.rows is None and s.written for s in self.slots]
        return tuple(i for i, reduces in enumerate(wanted) if reduces)

    @cached_property
    def roles(self) -> bool:
        """True where points of one staging list are to be committed in different ways."""
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
        """True where maps and colours lie in the order in which threads take the elements."""
        return self.strategy.permutes or self.listed

    @property
    def place(self) -> str:
        """Where maps and colours of an element lie."""
        return "place" if self.permutes else "e"

    @property
    def own(self) -> str:
        """The number of a thread's element in its block."""
        return "own" if self.several else "MP_THREAD"

    def width(self, slot: int) -> int:
        """How many values of a dat are moved at once: up to 16 bytes that lie together."""
        found = self.slots[slot]
        if not self.vectors or found.rows is None or found.soa:
            return 1
        return values_at_once(found.dim, found.dtype.itemsize)

    @cached_property
    def used_sets(self) -> list[int]:
        """The to-sets whose staging lists the text goes through."""
        return sorted({self.set_of(i) for i in (*self.staged, *self.gathered)})

    @property
    def writes(self) -> bool:
        """True where elements write what other elements write, too."""
        return bool(self.committed or self.placed)

    @property
    def takes_turns(self) -> bool:
        """True where thread colours keep what elements write apart."""
        return self.strategy.adds == "colours" and self.writes

    @property
    def head(self) -> list[str]:
        """What a block is told when it begins, name by name."""
        found = ["begin", "count"]
        found += ["colours"] if self.takes_turns else []
        found += ["block"] if self.gathered else []
        return found + [f"{what}{s}" for s in self.used_sets for what in ("from", "many")]

    @property
    def head_piece(self) -> int:
        """How many of these are loaded at once."""
        return MOST_BYTES // self.index_type.itemsize

    @property
    def index_type(self) -> np.dtype:
        """Of numbers that count what arrays hold."""
        return np.dtype("i8" if self.wide else "i4")

    def near(self, rows: Callable[[Row], bool], itemsize: int) -> list[list[Row]]:
        """Rows that need a column of a map, one for each column, in pieces loaded at once."""
        left, pieces = unique(self.rows, rows), []
        while left:
            fits = [w for w in WIDTHS if w <= len(left) and w * itemsize <= MOST_BYTES]
            many = max(fits, default=1)
            pieces.append(left[:many])
            left = left[many:]
        return pieces

    @property
    def local_pieces(self) -> list[list[Row]]:
        """What an element asks of local maps."""
        return self.near(self.uses_local, LOCAL_TYPE.itemsize)

    @property
    def map_pieces(self) -> list[list[Row]]:
        """What an element asks of maps themselves."""
        return self.near(self.uses_map, MAP_TYPE.itemsize)

    def c_type(self, slot: int) -> str:
        return C_TYPES[self.slots[slot].dtype.str[1:]]

    def _stages(self, slot: int) -> bool:
        chosen = self.strategy
        if not (chosen.blocks and chosen.stages) or all(
            r.table is None for r in self.rows_to(slot)
        ):
            return False
        if self.slots[slot].access is Access.READ:
            return self.strategy.stages_reads
        return slot in self.turned or (self.strategy.adds != "gather" and slot in self.added)

    def _some_unwritten(self) -> bool:
        written = self.loop.conflict_columns
        into = {self.plan.maps[m].to_set for m in written}
        return any(
            len(written.get(m, ())) < self.plan.maps[m].arity
            for m in self.loop.maps
            if self.plan.maps[m].to_set in into
        )


def unique(rows: Sequence[Row], wanted: Callable[[Row], bool]) -> list[Row]:
    """One row for each column of a map that is needed."""
    found: dict[tuple[str | None, int], Row] = {}
    for row in rows:
        if wanted(row):
            found.setdefault((row.table, row.column), row)
    return list(found.values())
