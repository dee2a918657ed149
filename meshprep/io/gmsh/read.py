"""Reading a Gmsh file: its sections one after the other, then the mesh."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...kernels import Float64s, Int64s, UInt8s, kernel
from ...kernels.parallel import each, pieces
from ...mesh import Mesh
from ..text.tokens import ASCII, Mode, next_int, skip_tokens, take_doubles
from . import read2, read4, sections
from .build import build
from .info import KEPT_SECTIONS
from .numbering import Lookup, make_lookup
from .raw import RawField, RawMesh, RawNodes
from .scan import GmshCursor, read_format
from .sections import quoted

Reader = Callable[[GmshCursor], Any]
# By version: section, the attribute of RawMesh that holds it, and its reader.
_READERS: dict[str, dict[str, tuple[str, Reader]]] = {
    "2.2": {
        "PhysicalNames": ("names", sections.read_names),
        "Nodes": ("nodes", read2.read_nodes),
        "Elements": ("elements", read2.read_elements),
        "Periodic": ("periodic", read2.read_periodic),
        sections.NOTES_SECTION: ("notes", sections.read_notes),
    },
    "4.1": {
        "PhysicalNames": ("names", sections.read_names),
        "Entities": ("entities", sections.read_entities),
        "PartitionedEntities": ("partitioned", sections.read_partitioned),
        "Nodes": ("nodes", read4.read_nodes),
        "Elements": ("elements", read4.read_elements),
        "Periodic": ("periodic", sections.read_periodic),
        "GhostElements": ("ghosts", sections.read_ghosts),
        sections.NOTES_SECTION: ("notes", sections.read_notes),
    },
}
_FIELDS = ("NodeData", "ElementData", "ElementNodeData")
_REFUSED = {
    "NOD": "MSH 1.0 is not supported: save the file as MSH 4.1 or 2.2",
    "ELM": "MSH 1.0 is not supported: save the file as MSH 4.1 or 2.2",
    "ParametricNodes": "parametric nodes of MSH 2 are not supported: save the file as MSH 4.1",
}


def read_file(path: Path) -> Mesh:
    """Read a Gmsh mesh, MSH 2.2 or 4.1, text or binary.

    ``path`` is a regular file; :mod:`meshprep.io.gmsh` says what the mesh holds. Raises
    MeshprepError with the line (of text) or the byte (of a binary file) where it is damaged.
    """
    path = Path(path)
    try:
        data = _content(path)
    except OSError as error:
        raise MeshprepError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    cursor = GmshCursor(path, data)
    raw = _read_sections(cursor)
    return build(raw, cursor)


def _content(path: Path) -> NDArray[np.uint8]:
    """The bytes of a file: a core alone copies them more slowly than memory takes them."""
    data = np.empty(path.stat().st_size, np.uint8)

    def fill(begin: int, end: int) -> int:
        with path.open("rb") as file:
            file.seek(begin)
            return file.readinto(data[begin:end].data)

    if sum(each(fill, pieces(data.size))) < data.size:
        raise MeshprepError(f"{path}: became shorter while it was read: read it again")
    return data


def _read_sections(cursor: GmshCursor) -> RawMesh:
    raw = RawMesh()
    seen: set[str] = set()
    while (name := _next(cursor)) is not None:
        readers = _READERS.get(cursor.version, {})
        if name in seen and (name in readers or name == "MeshFormat"):
            raise cursor.error("the section is there twice: remove one")
        seen.add(name)
        if name in _REFUSED:
            raise cursor.error(_REFUSED[name])
        if name == "MeshFormat":
            read_format(cursor)
        elif name in readers:
            attribute, reader = readers[name]
            setattr(raw, attribute, reader(cursor))
            if name == "Nodes":
                cursor.nodes = _lookup(raw.nodes, cursor)
        elif name in _FIELDS and cursor.version:
            raw.fields.append(read_field(cursor))
        else:
            body = cursor.skip_section()
            raw.sections.append((name, body if name in KEPT_SECTIONS else b""))
        cursor.end_section()
    for name in ("MeshFormat", "Nodes", "Elements"):
        if name not in seen:
            what = "this is no Gmsh mesh" if name == "MeshFormat" else "the mesh is not there"
            raise MeshprepError(f"{cursor.path}: section ${name} is missing: {what}")
    return raw


def _next(cursor: GmshCursor) -> str | None:
    """The next section; before the header it may only be one that is skipped."""
    try:
        name = cursor.next_section()
    except MeshprepError:
        if cursor.version:
            raise
        raise MeshprepError(
            f"{cursor.path}: does not begin with $MeshFormat: this is no Gmsh mesh"
        ) from None
    known = name in _FIELDS or any(name in readers for readers in _READERS.values())
    if name is not None and not cursor.version and known:
        raise cursor.error("the section stands before $MeshFormat: this is no Gmsh mesh")
    return name


def _lookup(nodes: RawNodes | None, cursor: GmshCursor) -> Lookup:
    """Positions of the nodes; raises MeshprepError where numbers or coordinates are none."""
    assert nodes is not None
    where = f"{cursor.path}: $Nodes: node number"
    lookup, twice = make_lookup(nodes.label)
    if twice >= 0:
        raise MeshprepError(f"{where} {nodes.label[twice]} occurs twice: renumber one")
    if nodes.label.size and nodes.label.min() < 0:
        raise MeshprepError(f"{where} {nodes.label.min()} is negative: renumber it")
    good = np.isfinite(nodes.points)
    if not good.all():
        row = int(np.argmin(good.all(axis=1)))
        place = " ".join(f"{x:g}" for x in nodes.points[row])
        raise MeshprepError(
            f"{where} {nodes.label[row]} has the coordinates {place}: they must be finite numbers"
        )
    return lookup


_NONE = np.empty(0, dtype=np.int64)


def read_field(cursor: GmshCursor) -> RawField:
    """The body of a section of values. O(bytes)."""
    section = cursor.section
    strings = _strings(cursor)
    n = _few(cursor, "real tags")
    reals = tuple(cursor.text_double("a real tag") for _ in range(n))
    n = _few(cursor, "integer tags")
    integers = tuple(cursor.text_int("an integer tag") for _ in range(n))
    cursor.end_line()
    if len(integers) < 3:
        raise cursor.error(
            f"has {len(integers)} integer tags, but step, components and entries are needed"
        )
    components, entries = integers[1:3]
    if components < 1 or entries < 0:
        raise cursor.error(f"declares {entries} entries of {components} components: repair it")
    header = (section, strings, reals, integers)
    if section == "ElementNodeData":
        return RawField(*header, *_element_nodes(cursor, entries, components))
    cursor.need(components, 1, 1, "components")
    label, values = cursor.rows(entries, 1, components, what="entries")
    return RawField(*header, label[:, 0], values, _NONE)


def _few(cursor: GmshCursor, what: str) -> int:
    n = cursor.text_int(f"the number of {what}")
    if n < 0 or 2 * n > cursor.left + 1:
        raise cursor.error(f"declares {n} {what}, which the file does not hold: repair it")
    return n


def _strings(cursor: GmshCursor) -> tuple[str, ...]:
    n = _few(cursor, "string tags")
    cursor.end_line()
    return tuple(quoted(cursor)[0] for _ in range(n))


def _element_nodes(cursor: GmshCursor, n: int, components: int) -> tuple[Int64s, Float64s, Int64s]:
    """Labels, flat values and nodes of each row."""
    cursor.need(n, 4, 8, "entries")
    cursor.need(components, 1, 1, "components")
    rows = np.empty((n, 2), dtype=np.int64)
    start, mode = cursor.pos, cursor.mode
    pos, total = _scan_rows(cursor.data, start, mode, components, rows)
    if pos < 0:
        raise cursor.no_number(int(pos), "an entry")
    values = np.empty(total)
    hard = cursor.hard_list(values.size)
    pos, found = _fill_rows(cursor.data, start, mode, components, rows, values, hard)
    if pos < 0:
        raise cursor.no_number(int(pos), "a value")
    cursor.settle(values, hard[:found])
    cursor.pos = int(pos)
    return rows[:, 0].copy(), values, rows[:, 1].copy()


@kernel
def _scan_rows(
    data: UInt8s, pos: int, mode: Mode, components: int, rows: Int64s
) -> tuple[int, int]:
    """Read label and number of nodes of every row; returns the position and how many values."""
    total = 0
    for i in range(len(rows)):
        rows[i, 0], pos = next_int(data, pos, mode, 4)
        if pos < 0:
            return pos, 0
        start = pos
        rows[i, 1], pos = next_int(data, pos, mode, 4)
        if pos < 0:
            return pos, 0
        left = (data.size - pos) // components
        if rows[i, 1] < 0 or rows[i, 1] > left:
            return -1 - (data.size if rows[i, 1] > left else start), 0
        n = rows[i, 1] * components
        total += n
        if mode == ASCII:
            pos = skip_tokens(data, pos, n)
        elif 8 * n > data.size - pos:
            pos = -1 - data.size
        else:
            pos += 8 * n
        if pos < 0:
            return pos, 0
    return pos, total


@kernel
def _fill_rows(
    data: UInt8s,
    pos: int,
    mode: Mode,
    components: int,
    rows: Int64s,
    values: Float64s,
    hard: Int64s,
) -> tuple[int, int]:
    at, found = 0, 0
    for i in range(len(rows)):
        _, pos = next_int(data, pos, mode, 4)
        _, pos = next_int(data, pos, mode, 4)
        end = at + rows[i, 1] * components
        pos, found = take_doubles(data, pos, mode, values, at, end, hard, found)
        if pos < 0:
            break
        at = end
    return pos, found
