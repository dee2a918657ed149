"""Unique facets (or edges) of one type, and the tables from them to cells and nodes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from meshprep_runtime.errors import MeshprepError

from ..kernels import Int32s, UInt8s, kernel
from .match import first_slots, number_in_place
from .slots import Part, Slots, cell_of, corner, corners_of, part_cells, slots_of


class Facets(NamedTuple):
    """The unique facets of one type, numbered by first appearance (cell, then local facet)."""

    slots: Slots
    number: Int32s  # (n_slots,): facet of each slot
    n_cells: UInt8s  # (n_facets,): cells of each facet, 3 standing for three and more


class Selection(NamedTuple):
    """Some of the facets: ``row`` is the new number of each, -1 for those left out."""

    facets: Facets
    row: Int32s
    size: int


# How many cells make a facet one of these; None for any number.
CELLS_OF = {"all": None, "interior": 2, "boundary": 1}


def find_facets(parts: Sequence[Part], arity: int, n_nodes: int) -> Facets:
    """Unique facets with ``arity`` corners. Expected O(slots); 8 bytes a slot at the peak."""
    slots = slots_of(parts, arity)
    number = first_slots(slots, n_nodes)
    count = number_in_place(number)
    return Facets(slots, number, count)


def select(facets: Facets, which: str) -> Selection:
    """Renumber the facets of one kind (a key of ``CELLS_OF``), keeping their order. O(facets)."""
    cells = CELLS_OF[which]
    if cells is None:
        size = facets.n_cells.size
        return Selection(facets, np.arange(size, dtype=np.int32), size)
    chosen = facets.n_cells == cells
    row = np.where(chosen, np.cumsum(chosen, dtype=np.int32) - np.int32(1), np.int32(-1))
    return Selection(facets, row, int(np.count_nonzero(chosen)))


def check_manifold(facets: Facets, entity: str, other: str) -> None:
    """Raise MeshprepError where three cells share a facet; ``other`` loops would do."""
    worst = int(facets.n_cells.argmax()) if facets.n_cells.size else -1
    if worst < 0 or facets.n_cells[worst] < 3:
        return
    slot = np.flatnonzero(facets.number == worst).astype(np.int32)
    nodes = ", ".join(map(str, corners_of(facets.slots, slot[:1])[0]))
    cells = [str(cell_of(facets.slots, s)) for s in slot.tolist()]
    listed = ", ".join(cells[:6]) + (", ..." if len(cells) > 6 else "")
    one = entity.removesuffix("s")
    raise MeshprepError(
        f"the {one} with nodes {nodes} belongs to {len(cells)} cells ({listed}; counted from 0), "
        f"'{entity}->cells' allows two: use another loop, for example '{other}'"
    )


@kernel
def facets_to_cells(chosen: Selection, arity: int) -> Int32s:
    """Cells ``(size, arity)`` of each chosen facet, ascending. O(slots)."""
    slots, number = chosen.facets.slots, chosen.facets.number
    table = np.full((chosen.size, arity), -1, np.int32)
    slot = 0
    for part in range(slots.width.size):
        for cell in range(part_cells(slots, part)):
            for _ in range(slots.n_local[part]):
                r = chosen.row[number[slot]]
                slot += 1
                if r >= 0:
                    column = 0 if table[r, 0] < 0 else 1
                    table[r, column] = slots.cell_start[part] + cell
    return table


@kernel
def facets_to_nodes(chosen: Selection) -> Int32s:
    """Corner nodes ``(size, corners)``, seen from the facet's lowest cell. O(slots)."""
    slots, number = chosen.facets.slots, chosen.facets.number
    table = np.full((chosen.size, slots.local.shape[2]), -1, np.int32)
    slot = 0
    for part in range(slots.width.size):
        for cell in range(part_cells(slots, part)):
            for facet in range(slots.n_local[part]):
                r = chosen.row[number[slot]]
                slot += 1
                if r >= 0 and table[r, 0] < 0:
                    for j in range(table.shape[1]):
                        table[r, j] = corner(slots, part, cell, facet, j)
    return table


@kernel
def fill_cell_facets(chosen: Selection, base: int, table: Int32s) -> None:
    """Write the number, plus ``base``, of each facet into the row of each of its cells."""
    slots, number, slot = chosen.facets.slots, chosen.facets.number, 0
    for part in range(slots.width.size):
        for cell in range(part_cells(slots, part)):
            for facet in range(slots.n_local[part]):
                column = slots.column[part, facet]
                table[slots.cell_start[part] + cell, column] = chosen.row[number[slot]] + base
                slot += 1
