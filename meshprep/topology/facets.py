"""Unique facets (or edges) of one type, and the tables from them to cells and nodes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from meshprep_runtime.errors import MeshprepError

from ..kernels import Int32s, UInt8s, kernel
from .match import first_slots, number_in_place
from .slots import Part, Slots, cell_of, corner, corners_of, part_cells, slots_of


class ManyCellsError(MeshprepError):
    """A facet belongs to more than two cells: its message says so, and then what to do."""

    ADVICE = ": use another loop"

    @property
    def fact(self) -> str:
        """The message without its advice."""
        return str(self).partition(self.ADVICE)[0]


class Facets(NamedTuple):
    """The unique facets of one type, numbered by first appearance: cell, local facet."""

    slots: Slots
    number: Int32s  # (n_slots,): facet of each slot
    n_cells: UInt8s  # (n_facets,): cells of each facet, 3 standing for three and more


class Selection(NamedTuple):
    """Some of the facets: ``row`` is the new number of each, -1 for those left out."""

    facets: Facets
    row: Int32s
    size: int


# The number of cells of a facet of each kind; None for any number.
CELLS_OF = {"all": None, "interior": 2, "boundary": 1}


def find_facets(parts: Sequence[Part], arity: int, n_nodes: int) -> Facets:
    """Unique facets with ``arity`` corners. Expected O(slots), at most 8 bytes a slot."""
    slots = slots_of(parts, arity)
    number = first_slots(slots, n_nodes)
    count = number_in_place(number)
    return Facets(slots, number, count)


def select(facets: Facets, which: str) -> Selection:
    """Renumber the facets of a kind, a key of ``CELLS_OF``, in their order. O(facets)."""
    cells = CELLS_OF[which]
    if cells is None:
        size = facets.n_cells.size
        return Selection(facets, np.arange(size, dtype=np.int32), size)
    chosen = facets.n_cells == cells
    number_among_chosen = np.cumsum(chosen, dtype=np.int32) - np.int32(1)
    row = np.where(chosen, number_among_chosen, np.int32(-1))
    return Selection(facets, row, int(np.count_nonzero(chosen)))


def check_manifold(facets: Facets, entity: str, other: str) -> None:
    """Raise ManyCellsError where three cells share a facet; ``other`` loops would do."""
    if facets.n_cells.max(initial=0) < 3:
        return
    # Name the first such facet by its nodes, and the first six of its cells.
    worst = int(facets.n_cells.argmax())
    slot = np.flatnonzero(facets.number == worst).astype(np.int32)
    corners = corners_of(facets.slots, slot[:1])[0]
    nodes = ", ".join(map(str, corners))
    cells = [str(cell_of(facets.slots, s)) for s in slot.tolist()]
    listed = ", ".join(cells[:6])
    if len(cells) > 6:
        listed += ", ..."
    one = entity.removesuffix("s")
    raise ManyCellsError(
        f"the {one} with nodes {nodes} belongs to {len(cells)} cells "
        f"({listed}; counted from 0), '{entity}->cells' allows two"
        f"{ManyCellsError.ADVICE}, for example '{other}'"
    )


@kernel
def facets_to_cells(chosen: Selection, arity: int) -> Int32s:
    """Cells ``(size, arity)`` of each chosen facet, ascending. O(slots)."""
    slots = chosen.facets.slots
    number = chosen.facets.number
    table = np.full((chosen.size, arity), -1, np.int32)
    slot = 0
    for part in range(slots.width.size):
        for cell in range(part_cells(slots, part)):
            for _ in range(slots.n_local[part]):
                r = chosen.row[number[slot]]
                slot += 1
                if r >= 0:
                    # Slots go by cells, so that the lower cell comes first.
                    column = 0 if table[r, 0] < 0 else 1
                    table[r, column] = slots.cell_start[part] + cell
    return table


@kernel
def facets_to_nodes(chosen: Selection) -> Int32s:
    """Corner nodes ``(size, corners)``, seen from the facet's lowest cell. O(slots)."""
    slots = chosen.facets.slots
    number = chosen.facets.number
    table = np.full((chosen.size, slots.local.shape[2]), -1, np.int32)
    # Walk the slots in the order of the cells.
    slot = 0
    for part in range(slots.width.size):
        for cell in range(part_cells(slots, part)):
            for facet in range(slots.n_local[part]):
                r = chosen.row[number[slot]]
                slot += 1
                # The first cell that has the facet is the lowest.
                if r >= 0 and table[r, 0] < 0:
                    for j in range(table.shape[1]):
                        table[r, j] = corner(
                            slots=slots,
                            part=part,
                            cell=cell,
                            facet=facet,
                            j=j,
                        )
    return table


@kernel
def fill_cell_facets(chosen: Selection, base: int, table: Int32s) -> None:
    """Write the number, plus ``base``, of each facet into the row of each of its cells."""
    slots = chosen.facets.slots
    number = chosen.facets.number
    slot = 0
    for part in range(slots.width.size):
        for cell in range(part_cells(slots, part)):
            row = slots.cell_start[part] + cell
            for facet in range(slots.n_local[part]):
                column = slots.column[part, facet]
                table[row, column] = chosen.row[number[slot]] + base
                slot += 1
