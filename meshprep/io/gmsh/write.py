"""Writing a Gmsh file: every section in the order that Gmsh expects, in MSH 2.2 and 4.1."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import Int64s, read_only

from ...mesh import Mesh, Tag
from ...mesh.cells import shape_of
from ..text.tokens import ASCII, LITTLE
from .emit import GmshWriter
from .entities import (
    EntityAssignment,
    FileContent,
    keep_entities,
    split_entities,
    three_coordinates,
)
from .fields import write_fields
from .layout import (
    INT_LIMIT,
    KEPT_SECTIONS,
    CellBlock,
    FileLayout,
    find_layout,
    is_periodic,
    is_text,
    source,
    target,
)
from .numbering import is_range, unused
from .raw import Entity
from .sections import NOTES_SECTION, NOTES_VERSION
from .types import NUMBER_OF, TO_FILE


def write_file(
    mesh: Mesh, path: Path, *, version: str | None = None, binary: bool | None = None
) -> None:
    """Write a mesh in its order: nodes and the cells of each set one after the other.

    Version and mode are by default those of the file that the mesh came from, else 4.1 and binary.
    Raises MeshprepError where there are no coordinates or cells, or the version is unknown.
    """
    version, binary = target(mesh, version, binary)
    points = mesh.coordinates
    if points is None:
        raise MeshprepError(f"{path}: the mesh has no coordinates: a Gmsh file needs them")
    layout = find_layout(mesh, version)
    if not layout.cells:
        raise MeshprepError(
            f"{path}: the mesh has no cells that a Gmsh file can hold: use another format"
        )
    assignment = split_entities(mesh, layout) if version == "4.1" else keep_entities(mesh, layout)
    node_label = layout.node_label
    if node_label is None:
        node_label = np.arange(1, len(points) + 1, dtype=np.int64)
    cells = _cells(mesh, layout, assignment)
    content = FileContent(mesh, layout, assignment, cells, node_label)
    with path.open("wb") as file:
        sink = GmshWriter(file, LITTLE if binary else ASCII)
        sink.begin("MeshFormat")
        sink.text(f"{version} {int(sink.mode != ASCII)} 8\n")
        if sink.mode != ASCII:
            sink.ints([1])
        sink.end("MeshFormat")
        _write_names(sink, mesh, layout)
        write = write4 if version == "4.1" else write2
        write(sink, content)
        if notes := _notes(content, version):
            lines = "\n".join([NOTES_VERSION, *notes])
            sink.text(f"${NOTES_SECTION}\n{lines}\n$End{NOTES_SECTION}\n")
        for name, body in source(mesh).get("sections", ()):
            if name in KEPT_SECTIONS:
                sink.begin(name)
                sink.file.write(body)
                sink.text(f"$End{name}\n")
        labels = {"nodes": node_label, **{c.set.name: c.label for c in cells}}
        write_fields(sink, layout, labels)


def _cells(mesh: Mesh, layout: FileLayout, assignment: EntityAssignment) -> list[CellBlock]:
    """The sets in order, with their numbers: as they are, else 1, 2, ... through the file."""
    cells, start = [], 1
    for s in layout.cells:
        kind = str(s.cell_type)
        table = mesh.cell_map(s.name).table
        if kind in TO_FILE:
            table = read_only(table[:, TO_FILE[kind]])
        label = layout.cell_label.get(s.name, np.arange(start, start + s.size))
        start += s.size
        number = assignment.number[s.name]
        cells.append(CellBlock(s, NUMBER_OF[kind], shape_of(kind).dim, table, label, number))
    return cells


def _write_names(sink: GmshWriter, mesh: Mesh, layout: FileLayout) -> None:
    names: dict[int, Mapping[int, str]] = dict(source(mesh).get("names", {}))
    for s in layout.cells:
        if s.name in layout.physical:
            names[shape_of(str(s.cell_type)).dim] = layout.physical[s.name].names
    rows = [(dim, *named) for dim in sorted(names) for named in names[dim].items()]
    lines = [f'{dim} {number} "{name}"\n' for dim, number, name in rows if is_text(name)]
    if lines:
        sink.text(f"$PhysicalNames\n{len(lines)}\n{''.join(lines)}$EndPhysicalNames\n")


def _notes(content: FileContent, version: str) -> list[str]:
    """What tells the reader that something was made up for Gmsh."""
    layout = content.layout
    out = [f"entity {dim} {new} {old}" for dim, new, old in content.assignment.notes]
    if version == "4.1" and layout.node_entity is None:
        out.append("nodes")
    if layout.physical_name != "physical":
        out.append(f'physical "{layout.physical_name}"')
    if layout.cell_label and is_range(np.concatenate([c.label for c in content.cells]), 1):
        out.append("numbered")
    return out


_NONE = np.empty(0, dtype=np.int64)


def write2(sink: GmshWriter, content: FileContent) -> None:
    """Write nodes, elements and periodic links."""
    sink.begin("Nodes")
    sink.text(f"{content.node_label.size}\n")
    sink.rows(content.node_label.reshape(-1, 1), three_coordinates(content.mesh))
    sink.end("Nodes")
    _write_elements(sink, content)
    _write_periodic(sink, content.mesh, content.node_label, "2.2")


def _write_elements(sink: GmshWriter, content: FileContent) -> None:
    """Every cell once in order, then the copies of those in several groups. O(n)."""
    layout, cells, node_label = content.layout, content.cells, content.node_label
    physical = [layout.physical.get(c.set.name) for c in cells]
    copies = [_copies(tag) for tag in physical]
    n_copies = sum(rows.size for rows, _ in copies)
    fresh = unused([c.label for c in cells], n_copies, INT_LIMIT)
    sink.begin("Elements")
    sink.text(f"{sum(c.label.size for c in cells) + n_copies}\n")
    for c, tag in zip(cells, physical, strict=True):
        n = c.label.size
        group = np.zeros(n, np.int64) if tag is None else tag.first_ids()
        part = layout.partition.get(c.set.name)
        _write_runs(sink, c, part, slice(None), c.label, group, node_label)
    for c, (rows, group) in zip(cells, copies, strict=True):
        label, fresh = fresh[: rows.size], fresh[rows.size :]
        _write_runs(sink, c, layout.partition.get(c.set.name), rows, label, group, node_label)
    sink.end("Elements")


def _copies(tag: Tag | None) -> tuple[Int64s, Int64s]:
    """Cells that are in further groups, and these: all second ones first, then the third."""
    if tag is None:
        return _NONE, _NONE
    length = np.diff(tag.group_offset)
    if length.max(initial=0) < 2:
        return _NONE, _NONE
    count, start = length[tag.values], tag.group_offset[tag.values]
    found = [np.flatnonzero(count > k) for k in range(1, int(length.max()))]
    groups = [tag.group_id[start[rows] + k + 1] for k, rows in enumerate(found)]
    return np.concatenate([*found, _NONE]), np.concatenate([*groups, _NONE])


def _write_runs(
    sink: GmshWriter,
    c: CellBlock,
    part: Tag | None,
    rows: Int64s | slice,
    label: Int64s,
    group: Int64s,
    node_label: Int64s,
) -> None:
    """Write these cells, a run of equal numbers of tags at a time."""
    nodes, entity = c.nodes[rows], c.entity[rows]
    count = begin = np.zeros(label.size, np.int64)
    if part is not None:
        values = part.values[rows]
        begin, count = part.group_offset[values], np.diff(part.group_offset)[values]
    start = _runs(count)
    for some in (slice(*ends) for ends in pairwise(start.tolist())):
        columns = [label[some], group[some], entity[some]]
        if part is not None and (k := int(count[some.start])):
            columns += [count[some], *(part.group_id[begin[some] + i] for i in range(k))]
        sink.elements2(c.number, columns, nodes[some], node_label)


def _write_periodic(sink: GmshWriter, mesh: Mesh, node_label: Int64s, version: str) -> None:
    """Periodic links; in MSH 2.2 they are text in every mode."""
    found = [i for i in mesh.lists if is_periodic(i)]
    if not found:
        return
    out = GmshWriter(sink.file, ASCII) if version == "2.2" else sink
    out.begin("Periodic")
    out.ints([len(found)], size=True)
    for link in found:
        out.ints(int(link.attrs[name]) for name in ("dim", "slave", "master"))
        affine = tuple(map(float, link.attrs.get("affine", ())))
        if version == "4.1":
            out.ints([len(affine)], size=True)
            out.doubles(affine)
        elif affine:
            out.text(f"Affine {' '.join(map(repr, affine))}\n")
        out.ints([len(link.index)], size=True)
        out.rows(node_label[link.index], size=True)
    out.end("Periodic")


def write4(sink: GmshWriter, content: FileContent) -> None:
    """Write entities, nodes, elements and periodic links."""
    sink.begin("Entities")
    _write_table(sink, content.assignment.entities)
    sink.end("Entities")
    _write_nodes(sink, content)
    # A block for each run of cells of one entity; nothing is sorted. O(n).
    cells = content.cells
    starts = [_runs(c.entity) for c in cells]
    total = sum(c.label.size for c in cells)
    lowest = min(int(c.label.min()) for c in cells)
    highest = max(int(c.label.max()) for c in cells)
    sink.begin("Elements")
    sink.ints((sum(s.size - 1 for s in starts), total, lowest, highest), size=True)
    for c, start in zip(cells, starts, strict=True):
        heads = np.empty((start.size - 1, 3), dtype=np.int64)
        heads[:, 0], heads[:, 1], heads[:, 2] = c.dim, c.entity[start[:-1]], c.number
        sink.elements4(heads, start, c.label, c.nodes, content.node_label)
    sink.end("Elements")
    _write_periodic(sink, content.mesh, content.node_label, "4.1")


def _write_table(sink: GmshWriter, entities: Mapping[tuple[int, int], Entity]) -> None:
    by_dim = [[e for e in entities.values() if e.dim == dim] for dim in range(4)]
    sink.ints((len(group) for group in by_dim), size=True)
    for group in by_dim:
        for e in group:
            sink.ints([e.tag])
            sink.doubles(e.box)
            _write_list(sink, e.physical)
            if e.dim:
                _write_list(sink, e.bounding)


def _write_list(sink: GmshWriter, numbers: Sequence[int]) -> None:
    sink.ints([len(numbers)], size=True)
    sink.ints(numbers)


def _write_nodes(sink: GmshWriter, content: FileContent) -> None:
    """A block for each run of nodes of one entity; nothing is sorted. O(n)."""
    label, points = content.node_label, read_only(three_coordinates(content.mesh))
    heads, start = _node_blocks(content.layout, content.cells, len(points))
    sink.begin("Nodes")
    bounds = (int(label.min()), int(label.max())) if label.size else (0, 0)
    sink.ints((start.size - 1, label.size, *bounds), size=True)
    sink.nodes4(heads, start, label, points)
    sink.end("Nodes")


def _node_blocks(layout: FileLayout, cells: Sequence[CellBlock], n: int) -> tuple[Int64s, Int64s]:
    """Heads of the blocks (dimension, entity, 0: not parametric), and where they start."""
    if layout.node_entity is None:
        # They belong to none, but Gmsh wants one: that of the first cell of the highest dimension.
        top = max(cells, key=lambda c: c.dim)
        head = np.array([[top.dim, top.entity[0], 0]])
        return head, np.array([0, n])
    dim, tag = layout.node_entity
    start = _runs(dim, tag)
    first = start[:-1]
    head = np.zeros((first.size, 3), dtype=np.int64)
    head[:, 0], head[:, 1] = dim[first], tag[first]
    return head, start


def _runs(*columns: NDArray[np.integer]) -> Int64s:
    """Where each run of equal rows starts, and the end."""
    n = columns[0].size
    ends = np.zeros(max(n - 1, 0), dtype=bool)
    for column in columns:
        ends |= column[1:] != column[:-1]
    change = np.flatnonzero(ends) + 1
    return np.concatenate([np.zeros(min(n, 1), np.int64), change, [n]])
