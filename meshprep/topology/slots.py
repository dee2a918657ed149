"""Every facet of every cell, as a number: the slot, decoded when needed instead of stored.

A slot is one (cell, local facet) pair; slots are numbered cell by cell, part after part.
The same holds for edges of 3-D cells: the table of local corners says what a slot stands
for.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import INDEX_LIMIT, offsets_of, read_only

from ..kernels import Int32s, Int64s, helper, kernel


class Part(NamedTuple):
    """Cells of one type and what to take of each."""

    table: Int32s  # (n, k): nodes of the cells
    local: Sequence[tuple[int, ...]]  # columns of ``table`` that make each local facet
    column: Sequence[int]  # place of each local facet among all facets of the cell
    cell_start: int = 0  # number of the first of these cells in the set ``cells``


class Slots(NamedTuple):
    """The slots of several parts; arrays only, so that kernels take it as it is.

    ``flat`` holds the nodes of all cells one after the other. Part ``p`` has the slots
    ``slot_start[p]`` to ``slot_start[p + 1] - 1``, its nodes from ``flat_start[p]`` on,
    ``width[p]`` a cell, and ``n_local[p]`` slots a cell, whose corners are the rows of
    ``local[p]`` and whose places among the cell's facets are ``column[p]``.
    """

    flat: Int32s
    flat_start: Int64s
    width: Int64s
    slot_start: Int64s
    cell_start: Int64s
    n_local: Int64s
    local: Int32s
    column: Int32s

    @property
    def size(self) -> int:
        return int(self.slot_start[-1])

    @property
    def arity(self) -> int:
        return int(self.local.shape[2])


def slots_of(parts: Sequence[Part], arity: int) -> Slots:
    """Number the slots of these parts.

    Nodes are shared, not copied, when one part alone has facets of this arity.

    Raises MeshprepError when there are more than 2^31-1 slots.
    """
    # The facets that each part has in a cell, in tables as wide as the part with the most.
    parts = [part for part in parts if len(part.local)]
    n_local = np.array([len(p.local) for p in parts], np.int64)
    most_local = n_local.max(initial=0)
    local = np.zeros((len(parts), most_local, arity), np.int32)
    column = np.zeros((len(parts), most_local), np.int32)
    for i, part in enumerate(parts):
        local[i, : len(part.local)] = part.local
        column[i, : len(part.local)] = part.column

    # Number the slots part after part.
    slots_of_parts = [len(part.table) * len(part.local) for part in parts]
    slot_start = offsets_of(slots_of_parts)
    if slot_start[-1] > INDEX_LIMIT:
        raise MeshprepError(
            f"the cells have {slot_start[-1]} edges or faces together, past 2^31-1: "
            "split the mesh"
        )
    tables = [part.table.reshape(-1) for part in parts]
    if len(tables) == 1:
        flat = tables[0]
    else:
        flat = np.concatenate([np.empty(0, np.int32), *tables])
    return Slots(
        # Always read-only: numba compiles once for it, whatever the mesh.
        flat=read_only(flat),
        flat_start=offsets_of([p.table.size for p in parts]),
        width=np.asarray([p.table.shape[1] for p in parts], np.int64),
        slot_start=slot_start,
        cell_start=np.asarray([p.cell_start for p in parts], np.int64),
        n_local=n_local,
        local=local,
        column=column,
    )


def plain_part(corners: Int32s) -> Part:
    """Rows of corners as they stand: each row is one slot."""
    return Part(corners, [tuple(range(corners.shape[1]))], [0])


@helper
def part_of(slots: Slots, slot: int) -> int:
    """The part that a slot belongs to."""
    part = 0
    while slot >= slots.slot_start[part + 1]:
        part += 1
    return part


@helper
def part_cells(slots: Slots, part: int) -> int:
    """Number of cells of a part.

    Loops over all slots go by part, cell and local facet, so that they need no division.
    """
    n_slots = slots.slot_start[part + 1] - slots.slot_start[part]
    return n_slots // slots.n_local[part]


@helper
def cells_before(slots: Slots, part: int, slot: int) -> int:
    """The number of cells of a part whose first slot is below this one."""
    ahead = max(slot - slots.slot_start[part], 0)
    # Rounded up: a cell with its first slot below counts, whatever the place of the others.
    begun = -(-ahead // slots.n_local[part])
    return min(begun, part_cells(slots, part))


@kernel
def cell_of(slots: Slots, slot: int) -> int:
    """The cell, as numbered in ``cells``, that a slot belongs to."""
    part = part_of(slots, slot)
    within = slot - slots.slot_start[part]
    return slots.cell_start[part] + within // slots.n_local[part]


@helper
def corner(slots: Slots, part: int, cell: int, facet: int, j: int) -> np.int32:
    """Corner ``j`` of a local facet of a cell, as numbered inside the part."""
    base = slots.flat_start[part] + cell * slots.width[part]
    return slots.flat[base + slots.local[part, facet, j]]


@helper
def read_corners(slots: Slots, part: int, slot: int, out: Int32s) -> None:
    """Write the corner nodes of a slot of this part into ``out``, as the shape has them."""
    within = slot - slots.slot_start[part]
    cell = within // slots.n_local[part]
    facet = within - cell * slots.n_local[part]
    for j in range(out.size):
        out[j] = corner(slots=slots, part=part, cell=cell, facet=facet, j=j)


@kernel
def corners_of(slots: Slots, chosen: Int32s) -> Int32s:
    """Corner nodes ``(n, arity)`` of the slots in ``chosen``. O(n)."""
    out = np.empty((chosen.size, slots.local.shape[2]), np.int32)
    for i in range(chosen.size):
        slot = chosen[i]
        read_corners(slots=slots, part=part_of(slots, slot), slot=slot, out=out[i])
    return out
