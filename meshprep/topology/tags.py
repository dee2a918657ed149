"""Tags of lower-dimension cells, carried to the derived sets that lie on them."""

from collections.abc import Sequence
from itertools import chain
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


def attach(
    mesh: Mesh,
    layout: Layout,
    dim: int,
    types: Sequence[Facets],
) -> list[Attachment]:
    """Find the facets under tagged cells of this dimension. Expected O(slots + cells)."""
    # Take cells that have tags, and as many corners as some facets.
    tagged = {t.set for t in mesh.tags}
    by_arity = {f.slots.arity: i for i, f in enumerate(types)}
    attachments = []
    for s in lower_sets(mesh, layout):
        shape = shape_of(str(s.cell_type))
        if s.name not in tagged or shape.dim != dim or shape.n_corners not in by_arity:
            continue
        # Cells without a slot of the same nodes lie on no facet.
        which = by_arity[shape.n_corners]
        facets = types[which]
        corners = mesh.cell_map(s.name).table[:, : shape.n_corners]
        slot = locate(facets.slots, corners, layout.n_nodes)
        cell = np.flatnonzero(slot >= 0).astype(np.int32)
        facet = facets.number[slot[cell]]
        attachments.append(Attachment(set=s.name, facets=which, cell=cell, facet=facet))
    return attachments


def transfer(
    mesh: Mesh,
    set_name: str,
    chosen: Sequence[Selection],
    attachments: Sequence[Attachment],
    *,
    keep_empty: bool,
) -> list[Tag]:
    """The tags that a derived set inherits, one a name.

    ``set_name`` is the derived set: the facets of ``chosen``, one selection a facet type,
    one after another. With ``keep_empty`` a tag that no element of the set has is made all
    the same.
    """
    # For each tag, its rows on the tagged cells and the elements on which these lie.
    base = offsets_of([c.size for c in chosen])
    pieces: dict[str, list[TagPiece]] = {}
    for attachment in attachments:
        # Keep the tagged cells whose facet was selected for the set.
        row = chosen[attachment.facets].row[attachment.facet]
        selected = row >= 0
        target = row[selected] + base[attachment.facets]
        if not target.size and not keep_empty:
            continue
        cells = attachment.cell[selected]
        for tag in mesh.tags:
            if tag.set == attachment.set:
                piece = (tag, tag.values[cells], target)
                pieces.setdefault(tag.name, []).append(piece)
    size = int(base[-1])
    return [
        join_tags(name=name, set_name=set_name, size=size, pieces=of_name)
        for name, of_name in pieces.items()
    ]


def without_sense(name: str, ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of groups without their sign.

    Gmsh gives an entity that is in group 5 the other way round the number -5.
    """
    if name == "physical":
        return np.abs(ids)
    return ids


def join_tags(
    name: str,
    set_name: str,
    size: int,
    pieces: Sequence[TagPiece],
) -> Tag:
    """One tag from several: their tables one after the other, then a row without groups.

    Elements that none of them tags have the last row.
    """
    # Stack the tables; the first tag that names a group gives the name.
    n_rows = 0
    values = []
    lengths = []
    ids = []
    names = dict[int, str]()
    for tag, row, _ in pieces:
        values.append(row + n_rows)
        lengths.append(np.diff(tag.group_offset))
        ids.append(tag.group_id)
        n_rows += tag.group_offset.size - 1
        names = {**tag.names, **names}
    without_groups = n_rows
    lengths.append(np.zeros(1, np.int64))

    # Give each element its row; of several that tag it, the last.
    value = np.concatenate(values)
    target = np.concatenate([target for _, _, target in pieces])
    value_of_element = np.full(size, without_groups, np.int32)
    value_of_element[target] = value
    tag = Tag(
        name=name,
        set=set_name,
        values=value_of_element,
        group_offset=offsets_of(np.concatenate(lengths)),
        group_id=without_sense(name, np.concatenate(ids)),
        names=names,
    )

    # Elements that cells tag differently are in the groups of them all.
    clash = np.unique(target[value_of_element[target] != value])
    if clash.size == 0:
        return tag
    return _unite(tag=tag, clash=clash, target=target, value=value)


def _unite(tag: Tag, clash: NDArray, target: NDArray, value: NDArray) -> Tag:
    """Give elements that several cells tag, those in ``clash``, the groups of them all."""
    # The groups of each of these elements together.
    several = np.isin(target, clash)
    elements = target[several].tolist()
    rows = value[several].tolist()
    groups_of: dict[int, set[int]] = {}
    for element, row in zip(elements, rows, strict=True):
        groups_of.setdefault(element, set()).update(tag.groups(row))

    # A new row behind the table for each list of groups, the same for equal lists.
    n_rows = tag.group_offset.size - 1
    new_rows: dict[tuple[int, ...], int] = {}
    values = tag.values.copy()
    for element, groups in groups_of.items():
        new_row = new_rows.setdefault(tuple(sorted(groups)), len(new_rows))
        values[element] = n_rows + new_row
    lengths = [len(groups) for groups in new_rows]
    old_lengths = np.diff(tag.group_offset)
    offset = offsets_of(np.concatenate([old_lengths, lengths]))
    new_ids = list(chain.from_iterable(new_rows))
    ids = np.concatenate([tag.group_id, new_ids])
    return Tag(
        name=tag.name,
        set=tag.set,
        values=values,
        group_offset=offset,
        group_id=ids.astype(np.int64),
        names=tag.names,
    )


def unattached(mesh: Mesh) -> dict[str, Int32s]:
    """Lower-dimension cells that are no face or edge of any cell of the highest dimension.

    Gives the row numbers of each set, ascending; empty where every cell of the set is
    attached. Corner nodes count, in any order; sets of single vertices are not looked at.
    Expected O(cells x facets); memory for the facets near those cells only.
    """
    layout = layout_of(mesh)
    out = {}
    for s in lower_sets(mesh, layout):
        shape = shape_of(str(s.cell_type))
        parts = layout.entity_parts(shape.dim, shape.n_corners)
        slots = slots_of(parts, shape.n_corners)
        corners = mesh.cell_map(s.name).table[:, : shape.n_corners]
        slot = locate(slots, corners, layout.n_nodes)
        out[s.name] = np.flatnonzero(slot < 0).astype(np.int32)
    return out


def locate(slots: Slots, corners: Int32s, n_nodes: int) -> Int32s:
    """For each row of corners, the lowest slot with the same nodes, or -1.

    Only slots whose every corner is a corner of some row are matched, so that a boundary
    costs one pass over the slots. Expected O(slots + rows).
    """
    # The slots whose every corner is a corner of some row.
    flagged = np.zeros(n_nodes, np.bool_)
    flagged[corners] = True
    near = np.concatenate(in_pieces(_near_in_share, slots.size, slots, flagged))

    # Number the flagged nodes among themselves: the others cost nothing more.
    number = np.cumsum(flagged, dtype=np.int32) - np.int32(1)
    n_flagged = int(np.count_nonzero(flagged))

    # Match the slots and, after them, the rows: the first slots of the rows are wanted.
    of_slots = plain_part(number[corners_of(slots, near)])
    of_rows = plain_part(number[corners])
    matched = first_slots(slots_of((of_slots, of_rows), slots.arity), n_flagged)
    first = matched[near.size :]

    # A row whose first slot is one of the mesh lies on that.
    slot_of_row = np.full(len(corners), -1, np.int32)
    on_mesh = first < near.size
    slot_of_row[on_mesh] = near[first[on_mesh]]
    return slot_of_row


@kernel
def _near_in_share(
    slots: Slots,
    flagged: Bools,
    begin: int,
    end: int,
) -> Int32s:
    """Slots with all corners flagged, of cells that start at ``begin`` to ``end - 1``."""
    # room for all: pages that are never written cost nothing
    near = np.empty(slots.slot_start[-1], np.int32)
    n_near = 0
    arity = slots.local.shape[2]
    for part in range(slots.width.size):
        first = cells_before(slots, part, begin)
        stop = cells_before(slots, part, end)
        for cell in range(first, stop):
            # Few cells have as many flagged nodes as a slot has corners.
            base = slots.flat_start[part] + cell * slots.width[part]
            count = 0
            for j in range(slots.width[part]):
                count += flagged[slots.flat[base + j]]
            if count < arity:
                continue
            # Of those, look at the corners of each slot.
            slot = slots.slot_start[part] + cell * slots.n_local[part]
            for facet in range(slots.n_local[part]):
                n_flagged = 0
                for j in range(arity):
                    node = corner(slots=slots, part=part, cell=cell, facet=facet, j=j)
                    n_flagged += flagged[node]
                if n_flagged == arity:
                    near[n_near] = slot + facet
                    n_near += 1
    return near[:n_near].copy()
