"""From the cell blocks of a file, however many, to one set a cell type.

Every reader hands its blocks to :func:`assemble`, so that all meshes look alike: the set
``nodes`` with the dat ``coordinates``; the cells of the highest dimension as the set
``cells`` where they are of one type, else as one set a type and the union ``cells``; every
lower dimension as one set a type. Inside a set, cells stand in the order of the file.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import offsets_of

from .cells import check_node_count, shape_of
from .model import Dat, ElementSet, IndexList, Mesh, SetMap, Tag


@dataclass(frozen=True, eq=False)
class GroupTable:
    """The groups of the cells of a block: a row of a table for each cell, as in a Tag."""

    values: NDArray[np.int32]
    group_offset: NDArray[np.int64]
    group_id: NDArray[np.int64]

    @classmethod
    def of(
        cls, lists: Collection[tuple[int, ...]], values: NDArray[np.int32]
    ) -> "GroupTable":
        """The table of these lists of groups."""
        offset = offsets_of([len(groups) for groups in lists])
        all_groups = list(chain.from_iterable(lists))
        group_id = np.array(all_groups, np.int64)
        return cls(values, offset, group_id)

    def lists(self) -> list[tuple[int, ...]]:
        """The groups that each row of the table stands for."""
        ends = pairwise(self.group_offset.tolist())
        return [tuple(self.group_id[begin:end].tolist()) for begin, end in ends]


@dataclass(frozen=True, eq=False)
class Block:
    """Cells of one type as they stand together in a file."""

    cell_type: str  # meshio's name
    nodes: NDArray[np.integer]  # (n, k): 0-based positions of the nodes
    # (n,): the numbers that the file gives the cells.
    label: NDArray[np.int64] | None = None
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
        Numbers that the file gives the nodes; kept as the dat ``label`` unless they are
        1..n.
    tag_names : mapping of (tag name, dimension) to {group number: name}
    dats, lists, extras
        Carried into the mesh as they are.

    Returns
    -------
    Mesh
    list of CellRange
        One for each entry of ``blocks``, the empty ones included.
    """
    # Drop empty blocks; vertices alone are no mesh.
    filled = [block for block in blocks if len(block.nodes)]
    if not any(shape_of(block.cell_type).dim > 0 for block in filled):
        raise MeshprepError(
            "there are no cells: the file needs lines, faces or volumes to work on"
        )

    # Gather the blocks of each cell type, in the order in which the file has the types.
    by_type: dict[str, list[Block]] = {}
    for block in filled:
        by_type.setdefault(block.cell_type, []).append(block)
    names = set_names(by_type)

    # The nodes come first, then a set with a map to the nodes for each cell type.
    sets = [ElementSet("nodes", len(points))]
    maps = []
    all_dats = list(dats)
    tags = []
    all_dats.append(Dat("coordinates", "nodes", points))
    all_dats += _label_dat("nodes", node_label)
    for cell_type, group in by_type.items():
        name = names[cell_type]
        table = _merge_tables(name, cell_type, group)
        sets.append(ElementSet(name, len(table), cell_type))
        maps.append(
            SetMap(name=f"{name}->nodes", from_set=name, to_set="nodes", table=table)
        )
        all_dats += _label_dat(name, _merge_labels(group))
        all_dats += merge_data(name, group)
        tags += merge_tags(
            name=name,
            group=group,
            dim=shape_of(cell_type).dim,
            tag_names=tag_names or {},
        )
    sets += _union_of_cells(sets)
    mesh = Mesh(
        sets=sets,
        maps=maps,
        dats=all_dats,
        tags=tags,
        lists=lists,
        extras=extras,
    )
    return mesh, _ranges_of_blocks(blocks, names)


def set_names(types: Iterable[str]) -> dict[str, str]:
    """Names of the sets of these cell types.

    The only type of the highest dimension is ``cells``, other sets have the type's name.
    """
    types = list(types)
    highest = max(shape_of(t).dim for t in types)
    top = [t for t in types if shape_of(t).dim == highest]
    return {t: "cells" if top == [t] else t for t in types}


def _union_of_cells(sets: Sequence[ElementSet]) -> list[ElementSet]:
    """The union ``cells`` where the cells of the highest dimension are of several types."""
    if any(s.name == "cells" for s in sets):
        return []
    dim_of = {s: shape_of(s.cell_type).dim for s in sets if s.cell_type is not None}
    highest = max(dim_of.values())
    top = [s for s, dim in dim_of.items() if dim == highest]
    size = sum(s.size for s in top)
    names = tuple(s.name for s in top)
    return [ElementSet("cells", size, parts=names)]


def _merge_tables(name: str, cell_type: str, group: Sequence[Block]) -> NDArray[Any]:
    """The nodes of all cells of a type; raises MeshprepError where blocks do not fit it."""
    # Check each block against the type; errors name the first cell of the block.
    start = 0
    for b in group:
        check_node_count(f"cell {start + 1} of set '{name}'", cell_type, b.nodes.shape[1])
        start += len(b.nodes)
    # Lagrange and Bezier cells of one type may have any order, but only one in a table.
    if len({b.nodes.shape[1] for b in group}) > 1:
        raise MeshprepError(
            f"cells of type '{cell_type}' are of several orders: use one for all"
        )
    # A single block is shared, not copied.
    if len(group) == 1:
        return group[0].nodes
    return np.concatenate([b.nodes for b in group])


def _merge_labels(group: Sequence[Block]) -> NDArray[np.int64] | None:
    """The numbers that the file gives the cells; None where it gives some of them none."""
    if any(b.label is None for b in group):
        return None
    labels = [np.asarray(b.label, dtype=np.int64) for b in group]
    return np.concatenate(labels)


def _label_dat(name: str, label: NDArray[np.int64] | None) -> list[Dat]:
    """The numbers of a file as a dat; none where they count from 1."""
    if label is None:
        return []
    counting = np.arange(1, label.size + 1)
    if (label == counting).all():
        return []
    return [Dat("label", name, label)]


def merge_data(name: str, group: Sequence[Block]) -> list[Dat]:
    """One dat for each name; its index leaves out the cells of blocks without it."""
    # Cells of block i are start[i] to start[i + 1] - 1 of the set.
    start = offsets_of([len(b.nodes) for b in group])
    out = []
    for key in dict.fromkeys(chain.from_iterable(b.data for b in group)):
        having = [i for i, b in enumerate(group) if key in b.data]
        values_of_blocks = [group[i].data[key] for i in having]
        values = np.concatenate(values_of_blocks)
        if len(having) == len(group):
            index = None
        else:
            cells = [np.arange(start[i], start[i + 1], dtype=np.int32) for i in having]
            index = np.concatenate(cells)
        out.append(Dat(name=key, set=name, values=values, index=index))
    return out


def merge_tags(
    name: str,
    group: Sequence[Block],
    dim: int,
    tag_names: Mapping[tuple[str, int], Mapping[int, str]],
) -> list[Tag]:
    """One tag for each name; cells of blocks without it are in no group of it."""
    out = []
    for key in dict.fromkeys(chain.from_iterable(b.tags for b in group)):
        names = tag_names.get((key, dim), {})
        # Group 0 stands for none.
        tables: list[NDArray[np.integer] | GroupTable] = []
        for block in group:
            in_no_group = np.zeros(len(block.nodes), np.int64)
            tables.append(block.tags.get(key, in_no_group))
        # One group a cell needs no table of groups; as soon as a block has one, all do.
        if not any(isinstance(t, GroupTable) for t in tables):
            ids = np.concatenate([np.asarray(t, dtype=np.int64) for t in tables])
            out.append(Tag.from_ids(name=key, set=name, ids=ids, names=names))
            continue
        rows = [t if isinstance(t, GroupTable) else _as_table(t) for t in tables]
        out.append(_join_tables(key=key, name=name, tables=rows, names=names))
    return out


def _as_table(ids: NDArray[np.integer]) -> GroupTable:
    """The table of cells that are in one group each; 0 stands for none."""
    tag = Tag.from_ids("", "", ids)
    return GroupTable(tag.values, tag.group_offset, tag.group_id)


def _join_tables(
    key: str,
    name: str,
    tables: Sequence[GroupTable],
    names: Mapping[int, str],
) -> Tag:
    """Stack the tables, giving equal group lists one row."""
    # Number each list of groups when it is met first, over all tables.
    row_of_groups: dict[tuple[int, ...], int] = {}
    values = []
    for t in tables:
        # Translate the rows of this table to those of the joined one.
        joined_row = np.empty(t.group_offset.size - 1, np.int32)
        for row, groups in enumerate(t.lists()):
            joined_row[row] = row_of_groups.setdefault(groups, len(row_of_groups))
        values.append(joined_row[t.values])
    joined = GroupTable.of(row_of_groups, np.concatenate(values))
    return Tag(
        name=key,
        set=name,
        values=joined.values,
        group_offset=joined.group_offset,
        group_id=joined.group_id,
        names=dict(names),
    )


def _ranges_of_blocks(blocks: Sequence[Block], names: Mapping[str, str]) -> list[CellRange]:
    """The cells of each block in the sets of the mesh."""
    filled: dict[str, int] = {}
    cell_ranges = []
    for block in blocks:
        # An empty block of a type that the mesh has not keeps the name of its type.
        name = names.get(block.cell_type, block.cell_type)
        start = filled.get(name, 0)
        stop = start + len(block.nodes)
        filled[name] = stop
        cell_ranges.append(CellRange(name, start, stop))
    return cell_ranges
