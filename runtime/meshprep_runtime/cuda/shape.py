"""What the text of a loop depends on: the loop's structure, never the numbers of a mesh."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..bind import Slot
from ..kernel.rows import Row
from ..loops import Access, Loop
from ..plan import LoopPlan
from .strategies import Strategy

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

MOST_THREADS = 1024
# Values that CUDA moves at once.
WIDTHS, MOST_BYTES = (2, 4, 8, 16), 16


@dataclass(frozen=True, eq=False)
class LoopShape:
    """A loop, a strategy and layouts, as the writer of the text wants them.

    In the text ``s0`` is the dat of slot 0, ``h0`` its values in shared memory, ``m0`` the first
    map, ``points0`` the staging list of the first to-set, ``r0`` the first row of the kernel,
    ``t0`` the temporary array for what is added to slot 0. ``listed`` is true for blocks that list
    their elements.
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

    @property
    def loop(self) -> Loop:
        """The loop itself."""
        return self.plan.loop

    @cached_property
    def sets(self) -> tuple[str, ...]:
        """The to-sets, in the order of the maps."""
        return tuple(dict.fromkeys(self.plan.maps[m].to_set for m in self.loop.maps))

    @cached_property
    def staged(self) -> tuple[int, ...]:
        """Slots with a value for each point of a block in shared memory, wide types first."""
        wanted = [i for i in range(len(self.slots)) if self._stages(i)]
        return tuple(sorted(wanted, key=lambda i: -self.slots[i].dtype.itemsize))

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
        """Slots that are written through maps, in their order."""
        return tuple(sorted(self.added + self.turned))

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

    def width(self, slot: int) -> int:
        """How many values of a dat are moved at once: up to 16 bytes that lie together."""
        found = self.slots[slot]
        if not self.vectors or found.rows is None or found.soa:
            return 1
        fits = [w for w in WIDTHS if found.dim % w == 0 and w * found.dtype.itemsize <= MOST_BYTES]
        return max(fits, default=1)

    def c_type(self, slot: int) -> str:
        """The type of a dat in C."""
        return C_TYPES[self.slots[slot].dtype.str[1:]]

    def _stages(self, slot: int) -> bool:
        if not self.strategy.blocks or all(r.table is None for r in self.rows_to(slot)):
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
