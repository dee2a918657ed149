"""Tags of lower-dimension cells, carried to the derived sets that lie on them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.maps import offsets_of

from ..mesh import Mesh, Tag
from ..mesh.cells import shape_of
from .attach import locate, lower_corners
from .facets import Facets, Selection
from .layout import Layout, lower_sets


@dataclass(frozen=True, eq=False)
class Attachment:
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
        slot = locate(types[which].slots, lower_corners(mesh, s.name), layout.n_nodes)
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
    pieces: dict[str, list[tuple[Tag, NDArray, NDArray]]] = {}
    for a in attachments:
        row = chosen[a.facets].row[a.facet]
        inside = row >= 0
        target = row[inside] + base[a.facets]
        for tag in (t for t in mesh.tags if t.set == a.set and (keep_empty or target.size)):
            piece = (tag, tag.values[a.cell[inside]], target)
            pieces.setdefault(tag.name, []).append(piece)
    return [_join(name, set_name, int(base[-1]), found) for name, found in pieces.items()]


def without_sense(name: str, ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of groups; Gmsh gives an entity -5 that is in group 5 the other way round."""
    return np.abs(ids) if name == "physical" else ids


def _join(
    name: str, set_name: str, size: int, pieces: Sequence[tuple[Tag, NDArray, NDArray]]
) -> Tag:
    """Stack the tables of groups, add an empty row for the rest, and scatter the values."""
    lengths = np.concatenate([*(np.diff(t.group_offset) for t, _, _ in pieces), [0]])
    ids = without_sense(name, np.concatenate([t.group_id for t, _, _ in pieces]))
    shift = offsets_of([t.group_offset.size - 1 for t, _, _ in pieces])
    value = np.concatenate([v + s for (_, v, _), s in zip(pieces, shift, strict=False)])
    target = np.concatenate([t for _, _, t in pieces])
    values = np.full(size, lengths.size - 1, np.int32)
    values[target] = value
    names = {k: v for t, _, _ in reversed(pieces) for k, v in t.names.items()}
    offset = offsets_of(lengths)
    tag = Tag(name, set_name, values, offset, ids, names)
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
