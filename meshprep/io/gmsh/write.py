"""Writing a Gmsh file: every section in the order that Gmsh expects."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.maps import read_only

from ...mesh import Mesh
from ...mesh.cells import shape_of
from ..text.tokens import ASCII, LITTLE
from . import write2, write4
from .emit import GmshWriter
from .entities import EntityAssignment, FileContent, keep_entities, split_entities
from .info import source, target
from .layout import INT_LIMIT, CellBlock, FileLayout, find_layout, is_text, keeps_section
from .numbering import is_range, unused
from .sections import NOTES_SECTION, NOTES_VERSION
from .types import NUMBER_OF, TO_FILE
from .write_fields import write_fields


def write_file(
    mesh: Mesh, path: Path, *, version: str | None = None, binary: bool | None = None
) -> None:
    """Write a mesh in its order: nodes and the cells of each set one after the other.

    ``version`` is ``"2.2"`` or ``"4.1"``; it and ``binary`` are by default those of the file that
    the mesh came from, else 4.1 and True. Raises MeshprepError when there are no coordinates or
    cells, or the version is unknown.
    """
    version, binary = target(mesh, version, binary)
    points = mesh.coordinates
    if points is None:
        raise MeshprepError(f"{path}: the mesh has no coordinates: a Gmsh file needs them")
    layout = find_layout(mesh, version, binary)
    if not layout.cells:
        raise MeshprepError(
            f"{path}: the mesh has no cells that a Gmsh file can hold: use another format"
        )
    assignment = split_entities(mesh, layout) if version == "4.1" else keep_entities(layout)
    node_label = layout.node_label
    if node_label is None:
        node_label = np.arange(1, len(points) + 1, dtype=np.int64)
    cells, numbers = _cells(mesh, layout, assignment)
    content = FileContent(mesh, layout, assignment, cells, node_label)
    try:
        with Path(path).open("wb") as file:
            sink = GmshWriter(file, LITTLE if binary else ASCII)
            sink.plain_nodes = layout.node_label is None
            _write_format(sink, version)
            _write_names(sink, mesh, layout)
            module = write4 if version == "4.1" else write2
            notes = module.write_mesh(sink, content)
            _write_notes(sink, [*notes, *_notes(layout, assignment, version), *numbers])
            _write_kept(sink, mesh, version, binary)
            labels = {"nodes": node_label, **{c.set.name: c.label for c in cells}}
            write_fields(sink, layout, labels, {c.set.name: c.set for c in cells})
    except OSError as error:
        raise MeshprepError(f"{path}: {(error.strerror or 'cannot be written').lower()}") from None


def _cells(
    mesh: Mesh, layout: FileLayout, assignment: EntityAssignment
) -> tuple[list[CellBlock], list[str]]:
    """The sets in order, and what the reader must be told about their numbers."""
    labels, notes = _cell_labels(layout)
    start, plain = 1, bool(layout.cell_label)
    for s in layout.cells:
        plain = plain and bool(is_range(labels[s.name], start))
        start += s.size
    cells = []
    for s in layout.cells:
        kind = str(s.cell_type)
        table = mesh.cell_map(s.name).table
        if kind in TO_FILE:
            table = read_only(table[:, TO_FILE[kind]])
        dim = shape_of(kind).dim
        cells.append(
            CellBlock(s, NUMBER_OF[kind], dim, table, labels[s.name], assignment.number[s.name])
        )
    return cells, [*notes, "numbered"] if plain else notes


def _cell_labels(layout: FileLayout) -> tuple[dict[str, NDArray[np.int64]], list[str]]:
    """Numbers of all cells: as they are, else 1, 2, ... through the file.

    Where only some sets have numbers, those of the others follow the highest of them, or fill
    the gaps where that is too high.
    """
    given = layout.cell_label
    missing = [s for s in layout.cells if s.name not in given]
    out = dict(given)
    lowest = min((int(v.min()) for v in given.values() if v.size), default=1)
    if given and len(missing) == 1 and missing[0].size < lowest:
        # As they were numbered in the file, which needs no note.
        return {**out, missing[0].name: np.arange(1, missing[0].size + 1)}, []
    free = unused(list(given.values()), sum(s.size for s in missing), INT_LIMIT)
    for s in missing:
        out[s.name], free = free[: s.size], free[s.size :]
    return out, [f"unnumbered {s.cell_type}" for s in missing] if given else []


def _write_format(sink: GmshWriter, version: str) -> None:
    sink.begin("MeshFormat")
    sink.text(f"{version} {int(sink.mode != ASCII)} 8\n")
    if sink.mode != ASCII:
        sink.ints([1])
    sink.end("MeshFormat")


def _write_names(sink: GmshWriter, mesh: Mesh, layout: FileLayout) -> None:
    names: dict[int, Mapping[int, str]] = dict(source(mesh).get("names", {}))
    for s in layout.cells:
        if s.name in layout.physical:
            names[shape_of(str(s.cell_type)).dim] = layout.physical[s.name].names
    rows = [
        (dim, number, name)
        for dim in sorted(names)
        for number, name in names[dim].items()
        if is_text(name)
    ]
    if not rows:
        return
    sink.begin("PhysicalNames")
    sink.text(f"{len(rows)}\n")
    for dim, number, name in rows:
        sink.text(f'{dim} {number} "{name}"\n')
    sink.text("$EndPhysicalNames\n")


def _notes(layout: FileLayout, assignment: EntityAssignment, version: str) -> list[str]:
    """What tells the reader that something was made up for Gmsh."""
    out = [f"entity {dim} {new} {old}" for dim, new, old in assignment.notes]
    if version == "4.1" and layout.node_entity is None:
        out.append("nodes")
    if layout.physical_name != "physical":
        out.append(f'physical "{layout.physical_name}"')
    return out


def _write_notes(sink: GmshWriter, notes: list[str]) -> None:
    if notes:
        lines = "\n".join([NOTES_VERSION, *notes])
        sink.text(f"${NOTES_SECTION}\n{lines}\n$End{NOTES_SECTION}\n")


def _write_kept(sink: GmshWriter, mesh: Mesh, version: str, binary: bool) -> None:
    for name, body in source(mesh).get("sections", ()):
        if keeps_section(mesh, name, version, binary):
            sink.begin(name)
            sink.file.write(body)
            sink.text(f"$End{name}\n")
