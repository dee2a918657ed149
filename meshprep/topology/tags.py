"""Tags of lower-dimension cells, carried to the derived sets that lie on them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import offsets_of

from ..kernels import Bools, Int32s, kernel
from ..kernels.parallel import in_pieces
from ..mesh import Mesh, Tag
from ..mesh.cells import shape_of
from .facets import Facets, Selection
from .layout import Layout, layout_of, lower_sets
from .match import first_slots
from .slots import Slots, cells_before, corner, corners_of, plain_part, slots_of

# A tag, rows of its table, and the elements that get them.
TagPiece = tuple[Tag, NDArray[Any], NDArray[Any]]


class Attachment(NamedTuple):
    """Cells of one lower set and where they lie: cell ``cell[i]`` on facet ``facet[i]``.

    ``facets`` is the place of the facet type in the list that :func:`attach` was given.
    """

    set: str
    facets: int
    cell: NDArray[np.int32]
    facet: NDArray[np.int32]


def attach(mesh: Mesh, layout: Layout, dim: int, types: Sequence[Facets]) -> list[Attachment]:
    """Find the facets under the tagged cells of dimension ``dim``. Expected O(slots + cells)."""
    tagged = {t.set for t in mesh.tags}
    by_arity = {f.slots.arity: i for i, f in enumerate(types)}
    out = []
    for s in lower_sets(mesh, layout):
        shape = shape_of(str(s.cell_type))
        if s.name not in tagged or shape.dim != dim or shape.n_corners not in by_arity:
            continue
        which = by_arity[shape.n_corners]
        corners = mesh.cell_map(s.name).table[:, : shape.n_corners]
        slot = locate(types[which].slots, corners, layout.n_nodes)
        cell = np.flatnonzero(slot >= 0).astype(np.int32)
        out.append(Attachment(s.name, which, cell, types[which].number[slot[cell]]))
    return out


def transfer(
    mesh: Mesh,
    set_name: str,
    chosen: Sequence[Selection],
    attachments: Sequence[Attachment],
    *,
    keep_empty: bool,
) -> list[Tag]:
    """The tags that a derived set inherits, one a name.

    ``set_name`` is the derived set: the facets of ``chosen``, one selection a facet type, one after
    another. With ``keep_empty`` a tag that no element of the set has is made all the same.
    """
    base = offsets_of([c.size for c in chosen])
    pieces: dict[str, list[TagPiece]] = {}
    for a in attachments:
        row = chosen[a.facets].row[a.facet]
        inside = row >= 0
        target = row[inside] + base[a.facets]
        for tag in mesh.tags if keep_empty or target.size else ():
            if tag.set == a.set:
                piece = (tag, tag.values[a.cell[inside]], target)
                pieces.setdefault(tag.name, []).append(piece)
    return [join_tags(name, set_name, int(base[-1]), found) for name, found in pieces.items()]


def without_sense(name: str, ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of groups; Gmsh gives an entity -5 that is in group 5 the other way round."""
    return np.abs(ids) if name == "physical" else ids


def join_tags(name: str, set_name: str, size: int, pieces: Sequence[TagPiece]) -> Tag:
    """One tag from several: their tables one after the other, and an empty row for the rest."""
    rows, rows_of, names = 0, [], dict[int, str]()
    for tag, row, _ in pieces:
        rows_of.append(row + rows)
        rows += tag.group_offset.size - 1
        names = {**tag.names, **names}
    value, target = np.concatenate(rows_of), np.concatenate([target for _, _, target in pieces])
    lengths = np.concatenate([*[np.diff(tag.group_offset) for tag, _, _ in pieces], [0]])
    ids = without_sense(name, np.concatenate([tag.group_id for tag, _, _ in pieces]))
    values = np.full(size, rows, np.int32)
    values[target] = value
    tag = Tag(name, set_name, values, offsets_of(lengths), ids, names)
    clash = np.unique(target[values[target] != value])
    return tag if clash.size == 0 else _unite(tag, clash, target, value)


def _unite(tag: Tag, clash: NDArray, target: NDArray, value: NDArray) -> Tag:
    """Give the elements in ``clash``, which several cells tag, the groups of all of these."""
    several = np.isin(target, clash)
    rows: dict[int, set[int]] = {}
    for t, v in zip(target[several].tolist(), value[several].tolist(), strict=True):
        rows.setdefault(t, set()).update(tag.groups(v))
    made: dict[tuple[int, ...], int] = {}
    values = tag.values.copy()
    for element, groups in rows.items():
        at = made.setdefault(tuple(sorted(groups)), len(made))
        values[element] = tag.group_offset.size - 1 + at
    lengths = np.concatenate([np.diff(tag.group_offset), [len(g) for g in made]])
    offset = offsets_of(lengths)
    ids = np.concatenate([tag.group_id, [i for g in made for i in g]])
    return Tag(tag.name, tag.set, values, offset, ids.astype(np.int64), tag.names)


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
        corners = mesh.cell_map(s.name).table[:, : shape.n_corners]
        found = locate(slots, corners, layout.n_nodes)
        out[s.name] = np.flatnonzero(found < 0).astype(np.int32)
    return out


def locate(slots: Slots, corners: Int32s, n_nodes: int) -> Int32s:
    """For each row of corners, the lowest slot with the same nodes, or -1.

    Only slots whose every corner is a corner of some row are matched, so that a boundary costs one
    pass over the slots. Expected O(slots + rows).
    """
    flagged = np.zeros(n_nodes, np.bool_)
    flagged[corners] = True
    near = np.concatenate(in_pieces(_near_in_share, slots.size, slots, flagged))
    # numbered among themselves, so that the other nodes cost nothing more
    number = np.cumsum(flagged, dtype=np.int32) - np.int32(1)
    both = plain_part(number[corners_of(slots, near)]), plain_part(number[corners])
    first = first_slots(slots_of(both, slots.arity), int(np.count_nonzero(flagged)))[near.size :]
    found = np.full(len(corners), -1, np.int32)
    hit = first < near.size
    found[hit] = near[first[hit]]
    return found


@kernel
def _near_in_share(slots: Slots, flagged: Bools, begin: int, end: int) -> Int32s:
    """The slots with all corners flagged, of cells that start at ``begin`` to ``end - 1``."""
    # room for all: pages that are never written cost nothing
    near, found, arity = np.empty(slots.slot_start[-1], np.int32), 0, slots.local.shape[2]
    for part in range(slots.width.size):
        for cell in range(cells_before(slots, part, begin), cells_before(slots, part, end)):
            # few cells have as many flagged nodes as a slot has corners
            base, count = slots.flat_start[part] + cell * slots.width[part], 0
            for j in range(slots.width[part]):
                count += flagged[slots.flat[base + j]]
            if count < arity:
                continue
            slot = slots.slot_start[part] + cell * slots.n_local[part]
            for facet in range(slots.n_local[part]):
                j = 0
                while j < arity and flagged[corner(slots, part, cell, facet, j)]:
                    j += 1
                if j == arity:
                    near[found] = slot + facet
                    found += 1
    return near[:found].copy()
