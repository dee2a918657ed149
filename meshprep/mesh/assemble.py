"""From the cell blocks of a file, however many, to one set a cell type.

Every reader hands its blocks to :func:`assemble`, so that all meshes look alike: the set
``nodes`` with the dat ``coordinates``; the cells of the highest dimension as the set ``cells``
where they are of one type, else as one set a type and the union ``cells``; every lower dimension
as one set a type. Inside a set, cells stand in the order of the file.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import offsets_of

from .cells import check_node_count, shape_of
from .model import Dat, ElementSet, IndexList, Mesh, SetMap, Tag


@dataclass(frozen=True, eq=False)
class GroupTable:
    """Groups of the cells of a block: row of each cell in a table of group lists (see Tag)."""

    values: NDArray[np.int32]
    group_offset: NDArray[np.int64]
    group_id: NDArray[np.int64]

    @classmethod
    def of(cls, lists: Collection[tuple[int, ...]], values: NDArray[np.int32]) -> "GroupTable":
        """The table of these lists of groups."""
        offset = offsets_of([len(one) for one in lists])
        return cls(values, offset, np.array([i for groups in lists for i in groups], np.int64))

    def lists(self) -> list[tuple[int, ...]]:
        """The groups that each row of the table stands for."""
        ends = pairwise(self.group_offset.tolist())
        return [tuple(self.group_id[begin:end].tolist()) for begin, end in ends]


@dataclass(frozen=True, eq=False)
class Block:
    """Cells of one type as they stand together in a file."""

    cell_type: str  # meshio's name
    nodes: NDArray[np.integer]  # (n, k): 0-based positions of the nodes
    label: NDArray[np.int64] | None = None  # (n,): the numbers that the file gives the cells
    # By tag name, (n,): integers mean one group a cell, 0 for none.
    tags: Mapping[str, NDArray[np.integer] | GroupTable] = field(default_factory=dict)
    data: Mapping[str, NDArray] = field(default_factory=dict)  # by name, (n, ...)


@dataclass(frozen=True)
class CellRange:
    """Where a block went: its cells are ``start`` to ``stop - 1`` of ``set``."""

    set: str
    start: int
    stop: int


def assemble(
    points: NDArray[np.float64],
    blocks: Sequence[Block],
    *,
    node_label: NDArray[np.int64] | None = None,
    tag_names: Mapping[tuple[str, int], Mapping[int, str]] | None = None,
    dats: Iterable[Dat] = (),
    lists: Iterable[IndexList] = (),
    extras: Mapping[str, Any] | None = None,
) -> tuple[Mesh, list[CellRange]]:
    """Merge blocks by cell type into a Mesh.

    Raises MeshprepError where there are no cells, or a block does not fit its type.

    Parameters
    ----------
    points : (n, 2 or 3) float64
    blocks : sequence of Block
        Empty ones are dropped.
    node_label : (n,) int64, optional
        Numbers that the file gives the nodes; kept as the dat ``label`` unless they are 1..n.
    tag_names : mapping of (tag name, dimension) to {group number: name}
    dats, lists, extras
        Carried into the mesh as they are.

    Returns
    -------
    Mesh
    list of CellRange
        One for each entry of ``blocks``, the empty ones included.
    """
    kept = [b for b in blocks if len(b.nodes)]
    if not any(shape_of(b.cell_type).dim > 0 for b in kept):
        raise MeshprepError("there are no cells: the file needs lines, faces or volumes to work on")
    by_type: dict[str, list[Block]] = {}
    for block in kept:
        by_type.setdefault(block.cell_type, []).append(block)
    names = set_names(by_type)
    sets, maps, found, tags = [ElementSet("nodes", len(points))], [], list(dats), []
    found.append(Dat("coordinates", "nodes", points))
    found += _label_dat("nodes", node_label)
    for cell_type, group in by_type.items():
        name = names[cell_type]
        table = _merge_tables(name, cell_type, group)
        sets.append(ElementSet(name, len(table), cell_type))
        maps.append(SetMap(f"{name}->nodes", name, "nodes", table))
        found += _label_dat(name, _merge_labels(group))
        found += merge_data(name, group)
        tags += merge_tags(name, group, shape_of(cell_type).dim, tag_names or {})
    sets += _union(sets)
    mesh = Mesh(sets, maps, found, tags, lists, extras)
    return mesh, _places(blocks, names)


def set_names(types: Iterable[str]) -> dict[str, str]:
    """Names of the sets of these types: ``cells`` for the only one of the highest dimension."""
    types = list(types)
    highest = max(shape_of(t).dim for t in types)
    top = [t for t in types if shape_of(t).dim == highest]
    return {t: "cells" if top == [t] else t for t in types}


def _union(sets: Sequence[ElementSet]) -> list[ElementSet]:
    if any(s.name == "cells" for s in sets):
        return []
    cells = [s for s in sets if s.cell_type is not None]
    highest = max(shape_of(str(s.cell_type)).dim for s in cells)
    top = [s for s in cells if shape_of(str(s.cell_type)).dim == highest]
    return [ElementSet("cells", sum(s.size for s in top), parts=tuple(s.name for s in top))]


def _merge_tables(name: str, cell_type: str, group: Sequence[Block]) -> NDArray[Any]:
    start = 0
    for b in group:
        check_node_count(f"cell {start + 1} of set '{name}'", cell_type, b.nodes.shape[1])
        start += len(b.nodes)
    if len({b.nodes.shape[1] for b in group}) > 1:
        raise MeshprepError(f"cells of type '{cell_type}' are of several orders: use one for all")
    return group[0].nodes if len(group) == 1 else np.concatenate([b.nodes for b in group])


def _merge_labels(group: Sequence[Block]) -> NDArray[np.int64] | None:
    if any(b.label is None for b in group):
        return None
    return np.concatenate([np.asarray(b.label, dtype=np.int64) for b in group])


def _label_dat(name: str, label: NDArray[np.int64] | None) -> list[Dat]:
    if label is None or (label == np.arange(1, label.size + 1)).all():
        return []
    return [Dat("label", name, label)]


def merge_data(name: str, group: Sequence[Block]) -> list[Dat]:
    """One dat a name; blocks without it leave a gap, which the dat's index tells."""
    start = offsets_of([len(b.nodes) for b in group])
    out = []
    for key in dict.fromkeys(k for b in group for k in b.data):
        having = [i for i, b in enumerate(group) if key in b.data]
        values = np.concatenate([group[i].data[key] for i in having])
        rows = [np.arange(start[i], start[i + 1], dtype=np.int32) for i in having]
        index = None if len(having) == len(group) else np.concatenate(rows)
        out.append(Dat(key, name, values, index))
    return out


def merge_tags(
    name: str,
    group: Sequence[Block],
    dim: int,
    tag_names: Mapping[tuple[str, int], Mapping[int, str]],
) -> list[Tag]:
    out = []
    for key in dict.fromkeys(k for b in group for k in b.tags):
        names = tag_names.get((key, dim), {})
        tables = [b.tags.get(key, np.zeros(len(b.nodes), np.int64)) for b in group]
        if not any(isinstance(t, GroupTable) for t in tables):
            ids = np.concatenate([np.asarray(t, dtype=np.int64) for t in tables])
            out.append(Tag.from_ids(key, name, ids, names))
            continue
        rows = [t if isinstance(t, GroupTable) else _as_table(t) for t in tables]
        out.append(_join_tables(key, name, rows, names))
    return out


def _as_table(ids: NDArray[np.integer]) -> GroupTable:
    tag = Tag.from_ids("", "", ids)
    return GroupTable(tag.values, tag.group_offset, tag.group_id)


def _join_tables(
    key: str, name: str, tables: Sequence[GroupTable], names: Mapping[int, str]
) -> Tag:
    """Stack the tables, giving equal group lists one row."""
    rows: dict[tuple[int, ...], int] = {}
    values = []
    for t in tables:
        renamed = [rows.setdefault(groups, len(rows)) for groups in t.lists()]
        values.append(np.asarray(renamed, dtype=np.int32)[t.values])
    made = GroupTable.of(rows, np.concatenate(values))
    return Tag(key, name, made.values, made.group_offset, made.group_id, dict(names))


def _places(blocks: Sequence[Block], names: Mapping[str, str]) -> list[CellRange]:
    filled: dict[str, int] = {}
    out = []
    for block in blocks:
        name = names.get(block.cell_type, block.cell_type)
        start = filled.get(name, 0)
        filled[name] = start + len(block.nodes)
        out.append(CellRange(name, start, filled[name]))
    return out
