"""Writing a Gmsh file: every section in the order that Gmsh expects, in MSH 2.2 and 4.1."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import Float64s, Int64s, read_only

from ...mesh import Mesh, Tag
from ...mesh.cells import shape_of
from ..text.tokens import ASCII, LITTLE
from .emit import GmshWriter, real_text
from .entities import (
    EntityAssignment,
    FileContent,
    assign_entities,
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
from .tables import PARAMETRIC_DIMS
from .types import NUMBER_OF, TO_FILE


def write_file(
    mesh: Mesh, path: Path, *, version: str | None = None, binary: bool | None = None
) -> None:
    """Write a mesh in its order: nodes and the cells of each set one after the other.

    Version and mode are by default those of the file that the mesh came from, else 4.1 and
    binary. Raises MeshprepError where there are no coordinates or cells, or the version is
    unknown.
    """
    version, binary = target(mesh, version, binary)
    points = mesh.coordinates
    if points is None:
        raise MeshprepError(f"{path}: the mesh has no coordinates: a Gmsh file needs them")
    # Decide where everything goes, and number nodes and cells, before a byte is written.
    layout = find_layout(mesh, version)
    if not layout.cells:
        raise MeshprepError(
            f"{path}: the mesh has no cells that a Gmsh file can hold: use another format"
        )
    assignment = assign_entities(mesh, layout, version)
    node_label = layout.node_label
    if node_label is None:
        node_label = np.arange(1, len(points) + 1, dtype=np.int64)
    cells = _number_cells(mesh, layout, assignment)
    content = FileContent(
        mesh=mesh, layout=layout, assignment=assignment, cells=cells, node_label=node_label
    )
    with path.open("wb") as file:
        sink = GmshWriter(file, LITTLE if binary else ASCII)
        sink.begin("MeshFormat")
        sink.text(f"{version} {int(sink.mode != ASCII)} 8\n")
        if sink.mode != ASCII:
            # this number tells readers the order of bytes
            sink.ints([1])
        sink.end("MeshFormat")
        _write_physical_names(sink, mesh, layout)
        # before what they are about
        if notes := _marks_for_reading(content, version):
            lines = "\n".join([NOTES_VERSION, *notes])
            sink.text(f"${NOTES_SECTION}\n{lines}\n$End{NOTES_SECTION}\n")
        write = write4 if version == "4.1" else write2
        write(sink, content)
        for name, body in source(mesh).get("sections", ()):
            if name in KEPT_SECTIONS:
                sink.begin(name)
                sink.file.write(body)
                sink.text(f"$End{name}\n")
        labels = {"nodes": node_label, **{c.set.name: c.label for c in cells}}
        write_fields(sink, layout, labels)


def cell_groups(mesh: Mesh) -> dict[str, Int64s]:
    """By set, the entity of each cell in a file: Gmsh hands cells out entity by entity."""
    version, _ = target(mesh, None, None)
    return assign_entities(mesh, find_layout(mesh, version), version).number


def _number_cells(
    mesh: Mesh, layout: FileLayout, assignment: EntityAssignment
) -> list[CellBlock]:
    """The sets in order and their numbers: the file's, else 1, 2, ... throughout."""
    cells = []
    start = 1
    for cell_set in layout.cells:
        kind = str(cell_set.cell_type)
        table = mesh.cell_map(cell_set.name).table
        if kind in TO_FILE:
            table = read_only(table[:, TO_FILE[kind]])
        # Elements without numbers of their own count through all types.
        label = layout.cell_label.get(
            cell_set.name, np.arange(start, start + cell_set.size)
        )
        start += cell_set.size
        number = assignment.number[cell_set.name]
        cells.append(
            CellBlock(
                set=cell_set,
                number=NUMBER_OF[kind],
                dim=shape_of(kind).dim,
                nodes=table,
                label=label,
                entity=number,
            )
        )
    return cells


def _write_physical_names(sink: GmshWriter, mesh: Mesh, layout: FileLayout) -> None:
    names: dict[int, Mapping[int, str]] = dict(source(mesh).get("names", {}))
    for s in layout.cells:
        if s.name in layout.physical:
            names[shape_of(str(s.cell_type)).dim] = layout.physical[s.name].names
    # Names are those of the file that was read, and those of the groups of each dimension
    # now.
    lines = []
    for dim in sorted(names):
        for number, name in sorted(names[dim].items()):
            if is_text(name):
                lines.append(f'{dim} {number} "{name}"\n')
    if lines:
        sink.text(f"$PhysicalNames\n{len(lines)}\n{''.join(lines)}$EndPhysicalNames\n")


def _marks_for_reading(content: FileContent, version: str) -> list[str]:
    """What tells the reader that something was made up for Gmsh."""
    layout = content.layout
    out = [f"entity {dim} {new} {old}" for dim, new, old in content.assignment.notes]
    if version == "4.1" and layout.node_entity is None:
        out.append("nodes")
    labels = layout.node_label
    if version == "4.1" and labels is not None and is_range(np.sort(labels), 1):
        # else they would be read in the order of these numbers
        out.append("placed")
    if layout.physical_name != "physical":
        out.append(f'physical "{layout.physical_name}"')
    if layout.cell_label and is_range(np.concatenate([c.label for c in content.cells]), 1):
        out.append("numbered")
    return out


_NONE = np.empty(0, dtype=np.int64)


def write2(sink: GmshWriter, content: FileContent) -> None:
    """Write nodes, elements and periodic links."""
    # A line is the number of a node and three coordinates.
    label = content.node_label
    points = three_coordinates(content.mesh)
    if content.layout.parametric is None:
        sink.begin("Nodes")
        sink.text(f"{label.size}\n")
        sink.rows(label.reshape(-1, 1), points)
        sink.end("Nodes")
    else:
        _write_parametric(sink=sink, layout=content.layout, label=label, points=points)
    _write_elements_once(sink, content)
    _write_periodic(
        sink=sink, mesh=content.mesh, node_label=content.node_label, version="2.2"
    )


def _write_elements_once(sink: GmshWriter, content: FileContent) -> None:
    """Every cell once in order, then the copies of those in several groups. O(n)."""
    layout = content.layout
    cells = content.cells
    node_label = content.node_label
    # An element of several groups stands once for each; copies have numbers of their own.
    physical = [layout.physical.get(block.set.name) for block in cells]
    copies = [_copies(tag) for tag in physical]
    n_copies = sum(rows.size for rows, _ in copies)
    fresh = unused([block.label for block in cells], n_copies, INT_LIMIT)
    sink.begin("Elements")
    sink.text(f"{sum(block.label.size for block in cells) + n_copies}\n")
    for block, tag in zip(cells, physical, strict=True):
        n = block.label.size
        if tag is None:
            group = np.zeros(n, np.int64)
        else:
            group = tag.first_ids()
        part = layout.partition.get(block.set.name)
        _write_runs(
            sink=sink,
            c=block,
            part=part,
            rows=slice(None),
            label=block.label,
            group=group,
            node_label=node_label,
        )
    for block, (rows, group) in zip(cells, copies, strict=True):
        label = fresh[: rows.size]
        fresh = fresh[rows.size :]
        _write_runs(
            sink=sink,
            c=block,
            part=layout.partition.get(block.set.name),
            rows=rows,
            label=label,
            group=group,
            node_label=node_label,
        )
    sink.end("Elements")


def _copies(tag: Tag | None) -> tuple[Int64s, Int64s]:
    """The cells in further groups, and these: all second ones, then all third ones."""
    if tag is None:
        return _NONE, _NONE
    length = np.diff(tag.group_offset)
    if length.max(initial=0) < 2:
        return _NONE, _NONE
    count = length[tag.values]
    start = tag.group_offset[tag.values]
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
    nodes = c.nodes[rows]
    entity = c.entity[rows]
    count = begin = np.zeros(label.size, np.int64)
    if part is not None:
        values = part.values[rows]
        begin = part.group_offset[values]
        count = np.diff(part.group_offset)[values]
    # Binary blocks have elements of equally many tags: cut where that number changes.
    start = _runs_of_rows(count)
    for run in (slice(*ends) for ends in pairwise(start.tolist())):
        # The tags are physical group, entity, and with partitions their number and these.
        columns = [label[run], group[run], entity[run]]
        if part is not None and (k := int(count[run.start])):
            columns += [count[run], *(part.group_id[begin[run] + i] for i in range(k))]
        sink.elements2(c.number, columns, nodes[run], node_label)


def _write_periodic(sink: GmshWriter, mesh: Mesh, node_label: Int64s, version: str) -> None:
    """Periodic links; in MSH 2.2 they are text in every mode."""
    periodic = [i for i in mesh.lists if is_periodic(i)]
    if not periodic:
        return
    if version == "2.2":
        out = GmshWriter(sink.file, ASCII)
    else:
        out = sink
    out.begin("Periodic")
    out.ints([len(periodic)], size=True)
    for link in periodic:
        out.ints(int(link.attrs[name]) for name in ("dim", "slave", "master"))
        # The transformation from the master to the slave entity, a matrix of 16
        # numbers.
        affine = tuple(map(float, link.attrs.get("affine", ())))
        if version == "4.1":
            _write_affine(out, affine)
        elif affine:
            out.text(f"Affine {' '.join(map(real_text, affine))}\n")
        out.ints([len(link.index)], size=True)
        out.rows(node_label[link.index], size=True)
    out.end("Periodic")


def _write_affine(out: GmshWriter, affine: Sequence[float]) -> None:
    """How many numbers a transformation has, and these: one line in text."""
    if out.mode == ASCII:
        out.text(" ".join([str(len(affine)), *map(real_text, affine)]) + "\n")
    else:
        out.ints([len(affine)], size=True)
        out.doubles(affine)


def write4(sink: GmshWriter, content: FileContent) -> None:
    """Write entities, nodes, elements and periodic links."""
    # Entities with partitions have a section of their own, behind the others.
    entities = content.assignment.entities.values()
    sink.begin("Entities")
    _write_table(sink, [e for e in entities if not e.partitions])
    sink.end("Entities")
    if pieces := [e for e in entities if e.partitions]:
        sink.begin("PartitionedEntities")
        sink.ints([max(max(e.partitions) for e in pieces)], size=True)
        # ghost entities are not read
        sink.ints([0], size=True)
        _write_table(sink, pieces)
        sink.end("PartitionedEntities")
    _write_nodes_by_entity(sink, content)
    # A block for each run of cells of one entity; nothing is sorted. O(n).
    cells = content.cells
    starts = [_runs_of_rows(block.entity) for block in cells]
    total = sum(block.label.size for block in cells)
    lowest = min(int(block.label.min()) for block in cells)
    highest = max(int(block.label.max()) for block in cells)
    sink.begin("Elements")
    sink.ints((sum(s.size - 1 for s in starts), total, lowest, highest), size=True)
    for block, start in zip(cells, starts, strict=True):
        heads = np.empty((start.size - 1, 3), dtype=np.int64)
        heads[:, 0] = block.dim
        heads[:, 1] = block.entity[start[:-1]]
        heads[:, 2] = block.number
        sink.elements4(heads, start, block.label, block.nodes, content.node_label)
    sink.end("Elements")
    _write_periodic(
        sink=sink, mesh=content.mesh, node_label=content.node_label, version="4.1"
    )


def _write_table(sink: GmshWriter, entities: Sequence[Entity]) -> None:
    """The table of entities: one record, and in text one line, for each."""
    # The table has the numbers of points, curves, surfaces and volumes, then their
    # records in this order.
    by_dim: list[list[Entity]] = [[], [], [], []]
    for entity in entities:
        by_dim[entity.dim].append(entity)
    sink.ints((len(group) for group in by_dim), size=True)
    for group in by_dim:
        for e in sorted(group, key=lambda e: e.tag):
            sink.words([e.tag])
            if e.partitions:
                sink.words(e.parent)
                _write_list(sink, e.partitions)
            sink.real_words(e.box)
            _write_list(sink, e.physical)
            if e.dim:
                _write_list(sink, e.bounding)
            sink.end_record()


def _write_list(sink: GmshWriter, numbers: Sequence[int]) -> None:
    sink.words([len(numbers)], size=True)
    sink.words(numbers)


def _write_parametric(
    sink: GmshWriter, layout: FileLayout, label: Int64s, points: Float64s
) -> None:
    """Nodes of MSH 2 with the entity of each, and where they lie on curves and surfaces."""
    assert layout.node_entity is not None
    dim, tag = layout.node_entity
    values = _parametric_of_all(layout, label.size)
    sink.begin("ParametricNodes")
    sink.text(f"{label.size}\n")
    for i in range(label.size):
        # Nodes on points and in volumes have no parameters.
        n_parameters = dim[i] if dim[i] in PARAMETRIC_DIMS else 0
        on_it = values[i, :n_parameters]
        if sink.mode == ASCII:
            where = " ".join(map(real_text, points[i]))
            words = [f"{label[i]} {where} {dim[i]} {tag[i]}", *map(real_text, on_it)]
            sink.text(" ".join(words) + "\n")
        else:
            sink.ints([label[i]])
            sink.doubles(points[i])
            sink.ints([dim[i], tag[i]])
            sink.doubles(on_it)
    sink.end("ParametricNodes")


def _parametric_of_all(layout: FileLayout, n: int) -> Float64s:
    """Three coordinates of each node on its entity, 0 where it has none."""
    values = np.zeros((n, 3))
    if layout.parametric is not None:
        held = layout.parametric.index
        values[slice(None) if held is None else held] = layout.parametric.values
    return values


def _write_nodes_by_entity(sink: GmshWriter, content: FileContent) -> None:
    """The nodes, entity by entity as Gmsh has them, and by their numbers inside each.

    Their numbers tell the order of the mesh. Numbers that a mesh brings along do not: then
    its order is kept, with a block for each run of nodes of one entity. O(n).
    """
    layout = content.layout
    label = content.node_label
    points = three_coordinates(content.mesh)
    n = len(points)
    parametric = _parametric_of_all(layout, n)
    if layout.node_entity is None:
        # Gmsh wants an entity all the same: that of the first cell of the highest dimension
        top = max(content.cells, key=lambda c: c.dim)
        heads = np.array([[top.dim, top.entity[0], 0]])
        start = np.array([0, n])
    else:
        dim, tag = layout.node_entity
        flag = np.zeros(n, dtype=np.int64)
        if layout.parametric is not None:
            held = layout.parametric.index
            flag[slice(None) if held is None else held] = 1
        # A block of nodes is of one entity, and all or none of them have coordinates on
        # it.
        columns = [dim, tag, flag]
        if layout.node_label is None:
            order = np.lexsort((flag, tag, dim))
            columns = [column[order] for column in columns]
            label = label[order]
            points = points[order]
            parametric = parametric[order]
        start = _runs_of_rows(*columns)
        heads = np.stack([column[start[:-1]] for column in columns], axis=1)
    sink.begin("Nodes")
    if label.size:
        bounds = (int(label.min()), int(label.max()))
    else:
        bounds = (0, 0)
    sink.ints((start.size - 1, label.size, *bounds), size=True)
    sink.nodes4(heads.astype(np.int64), start, label, points, parametric)
    sink.end("Nodes")


def _runs_of_rows(*columns: NDArray[np.integer]) -> Int64s:
    """Where each run of equal rows starts, and the end."""
    n = columns[0].size
    ends = np.zeros(max(n - 1, 0), dtype=bool)
    for column in columns:
        ends |= column[1:] != column[:-1]
    change = np.flatnonzero(ends) + 1
    return np.concatenate([np.zeros(min(n, 1), np.int64), change, [n]])
