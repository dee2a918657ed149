"""Cells of lower dimension (boundary triangles, lines) against the facets they lie on."""

import numpy as np

from ..kernels import Bools, Int32s, inlined, kernel
from ..kernels.parallel import each, pieces
from ..mesh import Mesh
from ..mesh.cells import shape_of
from .layout import layout_of, lower_sets
from .match import first_slots
from .slots import Slots, cells_before, corner, corners_of, plain_part, slots_of


def unattached(mesh: Mesh) -> dict[str, Int32s]:
    """Lower-dimension cells that are no face or edge of any cell of the highest dimension.

    Gives the row numbers of each set, ascending; empty where every cell of the set is attached.
    Corner nodes count, in any order; sets of single vertices are not looked at. Expected O(cells x
    facets); memory for the facets near those cells only.
    """
    layout = layout_of(mesh)
    out = {}
    for s in lower_sets(mesh, layout):
        shape = shape_of(str(s.cell_type))
        slots = slots_of(layout.entity_parts(shape.dim, shape.n_corners), shape.n_corners)
        found = locate(slots, lower_corners(mesh, s.name), layout.n_nodes)
        out[s.name] = np.flatnonzero(found < 0).astype(np.int32)
    return out


def lower_corners(mesh: Mesh, set_name: str) -> Int32s:
    """The corner nodes of a set of cells, without those of high order."""
    corners = shape_of(str(mesh.sets[set_name].cell_type)).n_corners
    return mesh.cell_map(set_name).table[:, :corners]


def locate(slots: Slots, corners: Int32s, n_nodes: int) -> Int32s:
    """For each row of corners, the lowest slot with the same nodes, or -1.

    Only slots whose every corner is a corner of some row are matched, so that a boundary costs one
    pass over the slots. Expected O(slots + rows).
    """
    flagged = np.zeros(n_nodes, np.bool_)
    flagged[corners] = True
    near = _slots_near(slots, flagged)
    # numbered among themselves, so that the other nodes cost nothing more
    number = np.cumsum(flagged, dtype=np.int32) - np.int32(1)
    both = [plain_part(number[rows]) for rows in (corners_of(slots, near), corners)]
    first = first_slots(slots_of(both, slots.arity), int(np.count_nonzero(flagged)))[near.size :]
    found = np.full(len(corners), -1, np.int32)
    hit = first < near.size
    found[hit] = near[first[hit]]
    return found


def _slots_near(slots: Slots, flagged: Bools) -> Int32s:
    """The slots whose corners are all flagged, ascending. O(slots), in parallel."""
    shares = pieces(slots.size)
    return np.concatenate(each(_near_in_share, [(slots, flagged, *share) for share in shares]))


@kernel
def _near_in_share(slots: Slots, flagged: Bools, begin: int, end: int) -> Int32s:
    """Those of the cells that start at the slots ``begin`` to ``end - 1``."""
    # room for all: pages that are never written cost nothing
    near, found = np.empty(slots.slot_start[-1], np.int32), 0
    for part in range(slots.width.size):
        for cell in range(cells_before(slots, part, begin), cells_before(slots, part, end)):
            if not _may_have(slots, part, cell, flagged):
                continue
            slot = slots.slot_start[part] + cell * slots.n_local[part]
            for facet in range(slots.n_local[part]):
                if _all_flagged(slots, part, cell, facet, flagged):
                    near[found] = slot + facet
                    found += 1
    return near[:found].copy()


@inlined
def _may_have(slots: Slots, part: int, cell: int, flagged: Bools) -> bool:
    """Whether as many nodes of a cell are flagged as a slot has: few cells have."""
    base, count = slots.flat_start[part] + cell * slots.width[part], 0
    for j in range(slots.width[part]):
        count += flagged[slots.flat[base + j]]
    return count >= slots.local.shape[2]


@inlined
def _all_flagged(slots: Slots, part: int, cell: int, facet: int, flagged: Bools) -> bool:
    j, arity = 0, slots.local.shape[2]
    while j < arity and flagged[corner(slots, part, cell, facet, j)]:
        j += 1
    return j == arity
